/**
 * Signals of the process: the first asks it to stop in order, a second one at once.
 *
 * Ctrl-C in a terminal reaches every process of the group, and npm passes it on besides: so one key press is two signals
 * within milliseconds, and only one that comes later is a second wish.
 */
export interface SignalParts {
  /** Stops in order; resolves when everything is done. */
  close(): Promise<void>;
  exit(code: number): void;
  /** Milliseconds that a monotonic clock shows. */
  monotonic(): number;
  log: { info(fields: object, message: string): void; error(fields: object, message: string): void };
}

/** So long after the first signal another one is the same key press. */
const SAME_WISH_MS = 1_000;

/** Returns what to do on SIGTERM and SIGINT. */
export function createSignalHandler({ close, exit, monotonic, log }: SignalParts): (signal: string) => void {
  let first: number | null = null;
  return (signal) => {
    if (first !== null) {
      if (monotonic() - first > SAME_WISH_MS) exit(1);
      return;
    }
    first = monotonic();
    log.info({ signal, hint: 'running turns may end; the same signal again stops at once' }, 'stopping');
    close().then(
      () => exit(0),
      (error) => {
        log.error({ err: error }, 'stopping failed');
        exit(1);
      },
    );
  };
}
