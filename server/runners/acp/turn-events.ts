/** The events of a turn on their way from the agent to whoever reads them, bounded: an agent that is faster waits (AC6). */
import type { RunnerEvent } from '../runner.ts';

export interface TurnEvents {
  tell(events: readonly RunnerEvent[]): void;
  /** Null when there is room for more; otherwise what to wait for. */
  room(): Promise<void> | null;
  /** Resolves as soon as there is something to take, or whoever waits is woken. */
  some(): Promise<void>;
  wake(): void;
  /** What there is, oldest first. */
  take(): RunnerEvent[];
  /** Nobody reads any more: what is told is dropped, and nobody waits. */
  close(): void;
}

const MOST = 1000;

export function createTurnEvents(): TurnEvents {
  let kept: RunnerEvent[] = [];
  let closed = false;
  let wake = (): void => {};
  let free = (): void => {};
  return {
    tell(events) {
      if (closed || events.length === 0) return;
      kept.push(...events);
      wake();
    },
    room: () =>
      kept.length < MOST
        ? null
        : new Promise((resolve) => {
            free = resolve;
          }),
    some: () =>
      new Promise((resolve) => {
        wake = resolve;
        if (kept.length > 0) wake();
      }),
    wake: () => wake(),
    take() {
      const taken = kept;
      kept = [];
      free();
      return taken;
    },
    close() {
      closed = true;
      kept = [];
      free();
    },
  };
}
