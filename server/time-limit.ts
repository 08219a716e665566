/** Waiting that ends after a while, also when it is one of several ends. */
import { timerMs } from './core/timer-ms.ts';

/** Aborts after so many seconds, or with the first of the signals. */
export function withTimeLimit(seconds: number, ...signals: AbortSignal[]): AbortSignal {
  const limit = AbortSignal.timeout(timerMs(seconds));
  // Node 20 collects a timeout that nothing but a combined signal listens to, and then it never comes.
  limit.addEventListener('abort', () => {}, { once: true });
  return AbortSignal.any([...signals, limit]);
}
