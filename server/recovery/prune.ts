/** Journals of ended runs are deleted after their time; a cursor into one gets reset and snapshot from then on. */
import type { JournalStore } from '../../db/files/journal.ts';
import type { Stores } from '../../db/stores.ts';

export interface PruningParts {
  stores: Pick<Stores, 'admissions'>;
  journals: JournalStore;
  /** Seconds that a journal is kept after its run has settled. */
  keepS: number;
  now(): number;
  log: { info(fields: object, message: string): void };
}

/** Returns the work of one round; safe to run at any time. */
export function createPruning({ stores, journals, keepS, now, log }: PruningParts): () => Promise<void> {
  return async () => {
    let removed = 0;
    for (;;) {
      const old = await stores.admissions.withJournalBefore(now() - keepS, 200);
      for (const { session_id, run_id, admission_id } of old) {
        // Marked first: a reader must never be promised a journal that is gone.
        await stores.admissions.journalPruned(admission_id);
        await journals.remove(session_id, run_id);
        removed += 1;
      }
      if (old.length === 0) break;
    }
    if (removed) log.info({ removed }, 'old journals removed');
  };
}
