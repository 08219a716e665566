/** A state DB in a temporary folder, and what its options are in tests. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StateDbOptions } from '../../db/client.ts';
import { temporaryFolder } from './home.ts';

/** A name for a state DB that is not there yet; its folder is removed when the test has finished. */
export const newStateFile = async (): Promise<string> => path.join(await temporaryFolder(), 'state.db');

/** Options with the real clock, half a second of patience and no jitter. */
export const stateDbOptions = (file: string, part: Partial<StateDbOptions> = {}): StateDbOptions => ({
  file,
  sleep: (ms) => sleep(ms),
  random: () => 0,
  monotonic: () => performance.now(),
  patienceMs: 500,
  now: () => 1_772_542_802.5,
  ...part,
});
