/** A signal ends a command in order: its work is told, and finishes or undoes what it was at. A second one ends the process at once. */

/**
 * Does work that SIGINT and SIGTERM abort.
 * @param reason what the aborted signal carries; without it the default
 * @throws what the work throws
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>, reason?: () => Error): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    free();
    controller.abort(reason?.());
  };
  const free = (): void => {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } finally {
    free();
  }
}
