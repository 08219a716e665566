/** A reader of a session inside this process: one for all gateway clients of it. */
import type { LiveEvent } from './live-event.ts';
import type { Subscriber } from './subscriber.ts';

/**
 * Passes on what it is given. It has no socket, so nothing waits for it.
 * @param failed it was ended, although nobody here has let go of it
 */
export function createFeed(deliver: (events: readonly LiveEvent[]) => void, failed: () => void): Subscriber {
  const releases: (() => void)[] = [];
  let ended = false;
  const end = (): void => {
    ended = true;
    for (const release of releases.splice(0)) release();
  };
  return {
    offer(events) {
      if (!ended && events.length) deliver(events);
    },
    async paced(events) {
      if (!ended && events.length) deliver(events);
    },
    heartbeat() {},
    close() {
      if (ended) return;
      end();
      failed();
    },
    gone() {
      if (!ended) end();
    },
    onEnd(release) {
      if (ended) release();
      else releases.push(release);
    },
    get ended() {
      return ended;
    },
  };
}
