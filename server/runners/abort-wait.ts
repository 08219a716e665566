/** Waiting for the abort of a turn beside other things. */

export interface AbortWait {
  /** Resolves when the signal aborts, at once if it has. */
  happened: Promise<null>;
  /** Nobody waits any more: the signal, which lives as long as its turn, is let go. */
  release(): void;
}

export function waitForAbort(signal: AbortSignal): AbortWait {
  let release = (): void => {};
  const happened = new Promise<null>((resolve) => {
    const give = (): void => resolve(null);
    signal.addEventListener('abort', give, { once: true });
    release = () => signal.removeEventListener('abort', give);
    if (signal.aborted) give();
  });
  return { happened, release: () => release() };
}
