/** Two servers that want one session, for longer: a hundred rounds of each kind. */
import { describe, it } from 'vitest';
import { testSeed } from '../support/random.ts';
import { ownerRaces } from '../support/two-servers.ts';

describe('two servers and one session, for longer', () => {
  const first = testSeed();
  it.each([
    [first, { kills: false, locks: false }] as const,
    [first + 1, { kills: true, locks: false }] as const,
    [first + 2, { kills: false, locks: true }] as const,
    [first + 3, { kills: true, locks: true }] as const,
  ])('[LE1][LE3][AD1][AD3][DB7] a hundred rounds (seed %i, %o)', { timeout: 1_200_000 }, async (seed, kind) => {
    await ownerRaces({ seed, rounds: 100, ...kind });
  });
});
