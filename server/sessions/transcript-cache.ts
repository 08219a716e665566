/** What is kept in memory: entries by session, within a bound, the least recently used given up first. */

export interface BoundedCache<Entry> {
  /** The entry, which counts as used now. */
  get(sessionId: string): Entry | undefined;
  set(sessionId: string, entry: Entry): void;
  delete(sessionId: string): void;
}

/**
 * @param maxBytes most bytes of all entries together; the one that was set last stays, whatever its size
 * @param sizeOf bytes of an entry
 * @param isPinned whether an entry must stay, for something works with it
 */
export function createBoundedCache<Entry>(
  maxBytes: number,
  sizeOf: (entry: Entry) => number,
  isPinned: (sessionId: string) => boolean,
): BoundedCache<Entry> {
  /** Least recently used first. */
  const kept = new Map<string, { entry: Entry; bytes: number }>();
  let total = 0;

  const remove = (sessionId: string): void => {
    total -= kept.get(sessionId)?.bytes ?? 0;
    kept.delete(sessionId);
  };

  return {
    get(sessionId) {
      const found = kept.get(sessionId);
      if (!found) return undefined;
      kept.delete(sessionId);
      kept.set(sessionId, found);
      return found.entry;
    },

    set(sessionId, entry) {
      remove(sessionId);
      const bytes = sizeOf(entry);
      kept.set(sessionId, { entry, bytes });
      total += bytes;
      for (const oldest of kept.keys()) {
        if (total <= maxBytes) break;
        if (oldest !== sessionId && !isPinned(oldest)) remove(oldest);
      }
    },

    delete: remove,
  };
}
