/**
 * Whether this server has more to do than it can (LI3): its event loop was late for some seconds on end, or too many
 * requests are being answered. Owns the count of these and the watch on the loop.
 */
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
      let isIn = true;
      return () => {
        if (isIn) inFlight -= 1;
        isIn = false;
      };
    },
    stop() {
      leave();
      loop.stop();
    },
  };
}

const TICK_MS = 100;

/**
 * Watches the event loop of this process, by a timer of its own: `monitorEventLoopDelay` leaves out the first delay behind
 * each reset, and a loop that is held up has no more than that one in a second.
 * @param monotonic milliseconds that only grow
 */
export function watchEventLoop(monotonic: () => number): EventLoopWatch {
  let ticks = 0;
  let since = monotonic();
  const timer = setInterval(() => {
    ticks += 1;
  }, TICK_MS).unref();
  return {
    lateness() {
      const at = monotonic();
      const mean = (at - since) / Math.max(1, ticks);
      ticks = 0;
      since = at;
      return mean - TICK_MS;
    },
    stop: () => clearInterval(timer),
  };
}
