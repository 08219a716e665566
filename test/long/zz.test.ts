import { it } from 'vitest';
import { ownerRaces } from '../support/two-servers.ts';
it.each([443303336, 1, 2, 3, 4, 5])('x %i', async (seed) => { await ownerRaces({ seed, rounds: 4, kills: false, locks: true }); });
