/** A reader of a session inside this process: one for all gateway clients of it. */
import type { LiveEvent } from './live-event.ts';
import type { CloseReason, Subscriber } from './subscriber.ts';

/**
 * Passes on what it is given. It has no socket, so nothing waits for it.
 * @param failed it was ended, although nobody here has let go of it
 */
export function createFeed(deliver: (events: readonly LiveEvent[]) => void, failed: () => void): Subscriber {
  const releases: ((reason: CloseReason) => void)[] = [];
  let endedBy: CloseReason | null = null;
  const end = (reason: CloseReason): void => {
    endedBy = reason;
    for (const release of releases.splice(0)) release(reason);
  };
  return {
    offer(events) {
      if (endedBy === null && events.length) deliver(events);
    },
    async paced(events) {
      if (endedBy === null && events.length) deliver(events);
    },
    heartbeat() {},
    close(reason) {
      if (endedBy !== null) return;
      end(reason);
      failed();
    },
    gone() {
      if (endedBy === null) end('gone');
    },
    onEnd(release) {
      if (endedBy !== null) release(endedBy);
      else releases.push(release);
    },
    get ended() {
      return endedBy !== null;
    },
  };
}
