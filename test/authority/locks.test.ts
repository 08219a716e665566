/** A state DB that somebody else holds while a queue runs. For seconds here, for half a minute in test/long. */
import { it } from 'vitest';
import { lockRounds } from '../support/lock-rounds.ts';

it('[CL3][DB7][AD4] held from outside in the middle of a queue, it only delays it', async () => {
  await lockRounds([100, 300, 1_500]);
});
