/**
 * Whether this server has more to do than it can (LI3): its event loop was late for some seconds on end, or too many
 * requests are being answered. Owns the count of these and the watch on the loop.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface Load {
  isTooHigh(): boolean;
  /** A request has arrived whole. @returns to be called once, when it has been answered */
  enter(): () => void;
  stop(): void;
}

export interface LoadParts {
  /** Requests that may be answered at once. */
  mostInFlight: number;
  loop: EventLoopWatch;
  /** Begins to call something every second; returns what ends that. */
  everySecond(look: () => void): () => void;
}

export interface EventLoopWatch {
  /** How late the event loop was in the mean since this was asked last, in milliseconds. */
  lateness(): number;
  stop(): void;
}

/** A person waits that long for any click then. */
const LATE_MS = 1_000;
/** One long step, such as a large document, is no overload. */
const LATE_SECONDS = 3;

export function createLoad({ mostInFlight, loop, everySecond }: LoadParts): Load {
  let inFlight = 0;
  let late = 0;
  const leave = everySecond(() => {
    late = loop.lateness() > LATE_MS ? late + 1 : 0;
  });
  return {
    isTooHigh: () => late >= LATE_SECONDS || inFlight >= mostInFlight,
    enter() {
      inFlight += 1;
      return () => {
        inFlight -= 1;
      };
    },
    stop() {
      leave();
      loop.stop();
    },
  };
}

const RESOLUTION_MS = 20;

/** Watches the event loop of this process. */
export function watchEventLoop(): EventLoopWatch {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  return {
    lateness() {
      // The pause between two looks is in each of them; without any there is no mean.
      const late = delays.mean / 1e6 - RESOLUTION_MS;
      delays.reset();
      return late;
    },
    stop: () => void delays.disable(),
  };
}
