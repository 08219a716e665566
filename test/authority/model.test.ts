/** The authority against a plain model: random commands, two server processes, crashes. Few runs; many in test/long. */
import { it } from 'vitest';
import { runModel } from '../support/authority-commands.ts';
import { testSeed } from '../support/random.ts';

/** Seeds that have found something once stay here. */
const KEPT: number[] = [];

it.each([...KEPT, testSeed()])(
  '[AD1][AD2][AD3][AD4][AD5][CL1][CL3][CL4][CL5][CL6][LE1][LE3][LE4][LE5][LE8] random commands come to what the model says (seed %i)',
  { timeout: 180_000 },
  async (seed) => {
    await runModel({ seed, runs: 2, maxCommands: 14 });
  },
);
