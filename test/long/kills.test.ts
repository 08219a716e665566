/** The kills of test/recovery for longer, with more sessions and other seeds. */
import { describe, it } from 'vitest';
import { killRounds } from '../support/kill-rounds.ts';
import { testSeed } from '../support/random.ts';

describe('kill -9, for longer', () => {
  const first = testSeed();
  it.each([first, first + 1, first + 2])(
    '[AD1][RE1][RE2][EV1] twenty random moments with eight sessions (seed %i)',
    { timeout: 600_000 },
    async (seed) => {
      await killRounds({ seed, rounds: 20, sessionCount: 8 });
    },
  );
});
