/** Three clients, many sessions and every misfortune, over real sockets with a real server (test/gateway/model/model). */
import { describe, expect, it } from 'vitest';
import { operations } from './operations.ts';
import { playAll } from './run-model.ts';

describe('many clients and many sessions', () => {
  it('[AD1][EV1][EV2][EV3][GW1][GW3][GW4][GW5][GW6][GW7] over the gateway, and over it and REST', {
    timeout: 120_000,
  }, async () => {
    // They wait for most of their time, and have room beside each other. More are played in test/long.
    const done = await playAll([
      { seed: 11, clients: 'gateway' },
      { seed: 53, clients: 'rest' },
    ]);
    for (const name of Object.keys(operations)) expect(done.get(name), name).toBeGreaterThanOrEqual(1);
  });
});
