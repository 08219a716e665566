/** The kills of test/recovery for longer, with more sessions and other seeds. */
import { describe, it } from 'vitest';
import { editKills } from '../support/edit-kills.ts';
import { killRounds } from '../support/kill-rounds.ts';
import { testSeed } from '../support/random.ts';

describe('kill -9, for longer', () => {
  const first = testSeed();
  it.each(Array.from({ length: 10 }, (_, index) => first + index))(
    '[AD1][RE1][RE2][EV1][EV3] twenty random moments with eight sessions (seed %i)',
    { timeout: 600_000 },
    async (seed) => {
      await killRounds({ seed, rounds: 20, sessionCount: 8 });
    },
  );
});

describe('kill -9 around edits', () => {
  const first = testSeed();
  it.each([first, first + 1, first + 2])(
    '[ED1][ED2][ED3][RE1] twenty-five random moments (seed %i)',
    { timeout: 600_000 },
    async (seed) => {
      await editKills({ seed, rounds: 25 });
    },
  );
});
