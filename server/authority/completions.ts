/** Who waits for the end of an admission within this process, and their release. */
export interface Completions {
  /** Resolves when the admission has ended, or when `signal` aborts. */
  wait(admissionId: string, signal: AbortSignal): Promise<void>;
  /** The admission has ended (or is left unknown): everyone who waits for it is told. */
  settle(admissionId: string): void;
  /** Everyone is told to look: the server stops, or a queue was paused. */
  wakeAll(): void;
}

export function createCompletions(): Completions {
  const waiting = new Map<string, Set<() => void>>();
  const settle = (admissionId: string): void => {
    const told = waiting.get(admissionId);
    waiting.delete(admissionId);
    for (const tell of told ?? []) tell();
  };
  return {
    wait(admissionId, signal) {
      return new Promise((resolve) => {
        const set = waiting.get(admissionId) ?? new Set();
        waiting.set(admissionId, set);
        const tell = (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          set.delete(tell);
          if (set.size === 0 && waiting.get(admissionId) === set) waiting.delete(admissionId);
          resolve();
        };
        set.add(tell);
        if (signal.aborted) leave();
        else signal.addEventListener('abort', leave, { once: true });
      });
    },
    settle,
    wakeAll() {
      for (const admissionId of [...waiting.keys()]) settle(admissionId);
    },
  };
}
