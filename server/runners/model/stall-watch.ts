/**
 * The watchdog of one request: gives it up when nothing came for too long, and stops it when the turn is interrupted.
 * Owns one timer and one listener; `release` frees both.
 */
import { timerMs } from '../../core/timer-ms.ts';

export interface StallWatch {
  /** For the request. Aborted without a reason: with one, the SDK turns an abort into an error of the provider. */
  signal: AbortSignal;
  /** Why the request was stopped; null while nobody stopped it. */
  stopped(): 'stalled' | 'aborted' | null;
  /** The provider is waited for from now on: the time that a reader took for the last event does not count. */
  waiting(): void;
  /** The event came. */
  arrived(): void;
  /** Called once, when the request is stopped. */
  onStop(listener: () => void): void;
  /** Ends the watch; stops the request if it still runs. */
  release(): void;
}

/**
 * Starts a watch.
 * @param turn the signal of the turn
 * @param timeoutS seconds without an event
 */
export function createStallWatch(turn: AbortSignal, timeoutS: number): StallWatch {
  const controller = new AbortController();
  let why: 'stalled' | 'aborted' | null = null;
  let isWaiting = false;
  let released = false;
  let listener: (() => void) | null = null;

  const stop = (cause: 'stalled' | 'aborted'): void => {
    if (why || released) return;
    why = cause;
    controller.abort();
    listener?.();
  };
  const onAbort = (): void => stop('aborted');
  const timer = setTimeout(() => (isWaiting ? stop('stalled') : timer.refresh()), timerMs(timeoutS));

  turn.addEventListener('abort', onAbort, { once: true });
  if (turn.aborted) onAbort();

  return {
    signal: controller.signal,
    stopped: () => why,
    waiting() {
      isWaiting = true;
      timer.refresh();
    },
    arrived() {
      isWaiting = false;
    },
    onStop(given) {
      listener = given;
      if (why) given();
    },
    release() {
      released = true;
      clearTimeout(timer);
      turn.removeEventListener('abort', onAbort);
      controller.abort();
    },
  };
}
