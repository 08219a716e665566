/** The authority for longer: many random commands against the plain model, and databases that are held for long. */
import { describe, it } from 'vitest';
import { runModel } from '../support/authority-commands.ts';
import { lockRounds } from '../support/lock-rounds.ts';
import { testSeed } from '../support/random.ts';

/** Seeds that failed once, with their cap of sessions, and the one run that failed where it is known. */
const KEPT = [
  { seed: 528240531, cap: 1, runs: 6 },
  { seed: 2132726713, cap: 1, runs: 1, failed: '3' },
  { seed: 2132726715, cap: 1, runs: 1, failed: '2' },
];

describe('the authority and its model', () => {
  const first = testSeed();
  const more = Array.from({ length: 4 }, (_, index) => ({ seed: first + index, cap: index % 2 ? 1 : null, runs: 4 }));
  it.each<{ seed: number; cap: number | null; runs: number; failed?: string }>([...KEPT, ...more])(
    '[AD1][AD2][AD3][AD4][AD5][CL1][CL3][CL4][CL5][CL6][LE1][LE3][LE4][LE5][LE7][LE8] random commands come to what the model says (seed $seed, cap $cap)',
    { timeout: 600_000 },
    async (kept) => {
      await runModel({ maxCommands: 40, ...kept });
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
