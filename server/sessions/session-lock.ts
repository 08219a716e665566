/** One writer at a time for a session's files within this process; callers queue up in order. */
export interface SessionLock {
  <T>(sessionId: string, work: () => Promise<T>): Promise<T>;
  /** Whether somebody writes now or waits to: who only heals on the way comes again another time (RE3). */
  isHeld(sessionId: string): boolean;
}

export function createSessionLock(): SessionLock {
  const tails = new Map<string, Promise<unknown>>();
  const lock = <T>(sessionId: string, work: () => Promise<T>): Promise<T> => {
    const before = tails.get(sessionId) ?? Promise.resolve();
    const result = before.then(work, work);
    const tail = result.catch(() => {});
    tails.set(sessionId, tail);
    void tail.then(() => {
      if (tails.get(sessionId) === tail) tails.delete(sessionId);
    });
    return result;
  };
  return Object.assign(lock, { isHeld: (sessionId: string): boolean => tails.has(sessionId) });
}
