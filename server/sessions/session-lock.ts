/** One writer at a time for a session's files within this process; callers queue up in order. */
export type SessionLock = <T>(sessionId: string, work: () => Promise<T>) => Promise<T>;

export function createSessionLock(): SessionLock {
  const tails = new Map<string, Promise<unknown>>();
  return (sessionId, work) => {
    const before = tails.get(sessionId) ?? Promise.resolve();
    const result = before.then(work, work);
    const tail = result.catch(() => {});
    tails.set(sessionId, tail);
    void tail.then(() => {
      if (tails.get(sessionId) === tail) tails.delete(sessionId);
    });
    return result;
  };
}
