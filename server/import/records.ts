/** What was imported before, and whether it is still here: by it a second import brings only what is new (IM3). */
import type { ImportRecord } from '../../db/import-store.ts';
import type { Conversation, Loaded } from './conversation.ts';
import { digestOf } from './transcript.ts';

export type Known = ImportRecord & { isThere: boolean };

export interface Records {
  /** What is known of a conversation of this home. */
  find(originalId: string): Known | null;
  remember(record: ImportRecord): void;
  /**
   * What was imported from another place under the same id, and begins with the same rows: a home may have moved. Where
   * several did, one that is still here.
   */
  elsewhere(conversation: Conversation, loaded: Loaded): Known | 'deleted' | null;
}

/** @param home the one that is imported */
export function createRecords(all: readonly Known[], home: string): Records {
  const known = new Map<string, Known>();
  const elsewhere = new Map<string, Known[]>();
  for (const record of all) {
    if (record.home === home) known.set(record.original_id, record);
    else elsewhere.set(record.original_id, [...(elsewhere.get(record.original_id) ?? []), record]);
  }

  return {
    find: (originalId) => known.get(originalId) ?? null,
    remember: (record) => void known.set(record.original_id, { ...record, isThere: true }),

    elsewhere({ id, keepsId }, { rows }) {
      if (!keepsId) return null;
      const same = (elsewhere.get(id) ?? []).filter(
        ({ row_count: count, digest }) => count > 0 && rows.length >= count && digestOf(rows, count) === digest,
      );
      const there = same.find((record) => record.isThere);
      if (there) return { ...there, home };
      return same.length > 0 ? 'deleted' : null;
    },
  };
}
