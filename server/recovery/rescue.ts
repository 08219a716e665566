/**
 * Before a server opens its home (RE6): a state DB that is damaged, or of which only the WAL is left, is made sound, so that a
 * start succeeds with everything that any store still has; the old one is kept in `doctor-<time>` in the home. What stands in
 * the place of a folder is moved aside.
 */
import { StateDbRefused } from '../../db/client.ts';
import { readKnownSchema } from '../../db/doctor-schema.ts';
import { clearPlace } from '../../db/files/atomic.ts';
import { createHomeCopies, stampOf } from '../../db/files/home-copies.ts';
import type { Paths } from '../../db/files/paths.ts';
import type { SidecarStore } from '../../db/files/sidecar-store.ts';
import { soundnessOf } from '../../db/soundness.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { makeSound } from '../doctor/make-sound.ts';

export interface RescueParts {
  paths: Paths;
  sidecars: Pick<SidecarStore, 'readHeader' | 'ids'>;
  /** Epoch seconds. */
  now(): number;
  /** Resolves after so many milliseconds. */
  sleep(ms: number): Promise<void>;
  log: Record<'error' | 'warn', (fields: object, message: string) => void>;
}

/** How often another server that mends the same state DB right now is waited for, and the pause, in milliseconds. */
const [TRIES, PAUSE_MS] = [20, 250];

/** Moves aside what is no folder where one must be. One that nobody may look at costs a start nothing. */
export async function rescuePlaces({ paths, log }: Pick<RescueParts, 'paths' | 'log'>): Promise<void> {
  for (const folder of paths.folders) {
    try {
      const aside = await clearPlace(folder);
      if (aside !== null) log.error({ file: folder, aside }, 'a file stood where a folder must be: it is moved aside');
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      log.warn({ file: folder, err: error }, 'a folder of the home cannot be looked at');
    }
  }
}

/**
 * Makes the state DB sound if it is not.
 * @throws StateDbRefused when somebody else has the damaged one open, or nothing can be made of it; a storage error
 */
export async function rescueStateDb({ paths, sidecars, now, sleep, log }: RescueParts): Promise<void> {
  const known = readKnownSchema();
  if (!known) return; // Opening says so.
  const { home, stateDb } = paths;
  const copies = createHomeCopies(home, stampOf(now()));
  let isMended = false;
  try {
    for (let tries = 0; ; tries += 1) {
      const look = soundnessOf(stateDb);
      if (look.kind !== 'damaged') return;
      // Something that never was ours, in a folder that has nothing of ours: opening it is refused.
      if (!look.isOurs && !isMended && (await sidecars.ids()).length === 0) return;
      const refuse = (why: string) => new StateDbRefused(refusal(stateDb, look.reason, why));
      if (tries === TRIES) throw refuse('another process has it open');
      if (tries === 0) log.error({ file: stateDb, reason: look.reason }, 'the state DB is damaged: it is mended first');
      const parts = { copies, stateDb, known, headerOf: sidecars.readHeader, now: now() };
      // What was mended and is damaged still is not for another try of the same.
      const made = await makeSound(parts, isMended);
      if (made.kind === 'failed') throw refuse(made.message);
      if (made.kind === 'mended') {
        isMended = true;
        log.warn({ file: stateDb, copies: copies.folder() }, `the state DB was mended: ${made.message}`);
        continue;
      }
      if (!isMended) await copies.discard();
      await sleep(PAUSE_MS);
    }
  } finally {
    // Nothing was changed: then there is nothing to keep.
    if (!isMended) await copies.discard();
  }
}

const refusal = (file: string, reason: string, why: string): string =>
  `${file} is damaged (${reason}), and it cannot be mended now: ${why}. ` +
  'Stop whatever else uses it, then start again, or restore a backup ("turnkeep doctor" tells more).';
