/**
 * The model of many clients for longer: the seeds that failed once, and twenty-five more or as many as
 * TURNKEEP_MODEL_SEEDS says (`npm run test:fuzz`). They stand in the titles; with TURNKEEP_TEST_SEED the same ones run again.
 */
import { describe, expect, it } from 'vitest';
import { operations } from '../gateway/model/operations.ts';
import { CLIENTS, KEPT_SEEDS, type Play, playAll } from '../gateway/model/run-model.ts';
import { testSeed } from '../support/random.ts';

const SEEDS = Number(process.env.TURNKEEP_MODEL_SEEDS ?? 25);
/** They wait for most of their time: about so many have room beside each other. */
const AT_ONCE = 5;

describe('many clients and many sessions, for longer', () => {
  const first = testSeed() % 1_000_000;
  const kinds = Object.keys(CLIENTS) as (keyof typeof CLIENTS)[];
  const more = Array.from({ length: SEEDS }, (_, n): Play => ({ seed: first + n, clients: kinds[n % kinds.length]! }));
  const plays = [...KEPT_SEEDS, ...more];
  const count = Math.max(1, Math.floor(plays.length / AT_ONCE));
  const groups = Array.from({ length: count }, (_, n) => plays.filter((_play, at) => at % count === n));

  it.each(groups.map((group) => [group.map(({ seed }) => seed).join(', '), group] as const))(
    '[AD1][EV1][EV2][EV3][GW1][GW3][GW4][GW5][GW6][GW7] seeds %s',
    { timeout: 600_000 },
    async (_seeds, group) => {
      const done = await playAll(group);
      for (const name of Object.keys(operations)) expect(done.get(name), name).toBeGreaterThanOrEqual(group.length);
    },
  );
});
