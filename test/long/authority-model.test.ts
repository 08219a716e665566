/** The authority for longer: many random commands against the plain model, and databases that are held for long. */
import { describe, it } from 'vitest';
import { runModel } from '../support/authority-commands.ts';
import { lockRounds } from '../support/lock-rounds.ts';
import { testSeed } from '../support/random.ts';

describe('the authority and its model', () => {
  const first = testSeed();
  it.each(Array.from({ length: 3 }, (_, index) => first + index))(
    '[AD1][AD2][AD3][AD4][AD5][CL1][CL3][CL4][CL5][CL6] random commands come to what the model says (seed %i)',
    { timeout: 600_000 },
    async (seed) => {
      await runModel({ seed, runs: 6, maxCommands: 40 });
    },
  );
});

describe('a database that is held from outside', () => {
  it.each([[100, 1_000, 10_000], [30_000]])(
    '[CL3][DB7][AD4] it only delays the queue',
    {
      timeout: 300_000,
    },
    async (...holds) => {
      await lockRounds(holds);
    },
  );
});
