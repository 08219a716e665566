/** The files of imported sessions, written beside what comes next: a disk that syncs many is hardly slower than for one. */

export interface FileWrites {
  /**
   * Begins to write, once there is room among those that are being written.
   * @throws what an earlier one failed with
   */
  add(sessionId: string, write: () => Promise<void>): Promise<void>;
  /** Sessions that have all their files since this was last asked. */
  finished(): string[];
  /** Waits for all of them, whatever becomes of them. */
  settle(): Promise<void>;
  /** @throws what one failed with, if one did */
  check(): void;
}

/** Sessions whose files are written at the same time. */
const AT_ONCE = 16;

export function createFileWrites(): FileWrites {
  let done: string[] = [];
  let failure: { error: unknown } | null = null;
  const writing = new Set<Promise<void>>();

  const check = (): void => {
    if (failure) throw failure.error;
  };

  return {
    async add(sessionId, write) {
      while (writing.size >= AT_ONCE) await Promise.race(writing);
      check();
      const task: Promise<void> = write()
        .then(() => void done.push(sessionId))
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => writing.delete(task));
      writing.add(task);
    },

    finished() {
      const finished = done;
      done = [];
      return finished;
    },

    async settle() {
      await Promise.all(writing);
    },

    check,
  };
}
