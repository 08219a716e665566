/**
 * One reader: an SSE response or a socket. Owns its backlog and its deadline; frees them when it ends.
 *
 * Nobody waits for it (SU1). While its socket is full its events wait in a bounded backlog, in which neighbouring
 * deltas are merged and nothing else is ever dropped; past the bound or the send deadline this reader alone is closed,
 * and may resume from its cursor.
 */
import { canMerge, type LiveEvent, mergeDeltas } from './live-event.ts';

/** `revoked`: the credential that it was opened with stands no more. */
export type CloseReason = 'finished' | 'overflow' | 'send_deadline' | 'shutdown' | 'revoked' | 'gone';

/** The way to a reader: made by a route, encodes and writes. */
export interface Sink {
  /** Sends all in one write. False when the socket is full: nothing more should be sent before `drained`. */
  send(events: readonly LiveEvent[]): boolean;
  /** Resolves when there is room again or the connection is gone. */
  drained(): Promise<void>;
  /** Ends the connection. */
  close(reason: CloseReason): void;
}

export interface SubscriberLimits {
  backlogEvents: number;
  backlogBytes: number;
  /** Seconds that a full socket may take to drain. */
  sendDeadlineS: number;
}

export interface Subscriber {
  /** Sends as they come; never waits. */
  offer(events: readonly LiveEvent[]): void;
  /** Sends at the pace of the socket: for snapshots and catch-up, which do not count against the backlog. */
  paced(events: readonly LiveEvent[]): Promise<void>;
  /** Sends a sign of life, unless the socket is full anyway. */
  heartbeat(event: LiveEvent): void;
  /** Ends it from our side. */
  close(reason: CloseReason): void;
  /** The connection is gone: called by the route. */
  gone(): void;
  /** Runs when it has ended, and is told why; at once if it has already. */
  onEnd(release: (reason: CloseReason) => void): void;
  readonly ended: boolean;
}

export function createSubscriber(sink: Sink, limits: SubscriberLimits): Subscriber {
  /** Groups of events that go out as one: deltas to be merged, or a single other event. */
  let backlog: LiveEvent[][] = [];
  let backlogBytes = 0;
  let full = false;
  let ended = false;
  let endedBy: CloseReason = 'gone';
  let deadline: NodeJS.Timeout | null = null;
  let draining: Promise<void> = Promise.resolve();
  const releases: ((reason: CloseReason) => void)[] = [];

  const end = (reason: CloseReason): void => {
    if (ended) return;
    ended = true;
    endedBy = reason;
    backlog = [];
    if (deadline) clearTimeout(deadline);
    if (reason !== 'gone') sink.close(reason);
    for (const release of releases.splice(0)) release(reason);
  };

  const waitForRoom = async (): Promise<void> => {
    deadline = setTimeout(() => end('send_deadline'), limits.sendDeadlineS * 1000);
    deadline.unref();
    await sink.drained();
    clearTimeout(deadline);
    full = false;
    if (ended || backlog.length === 0) return;
    const events = backlog.map(mergeDeltas);
    backlog = [];
    backlogBytes = 0;
    send(events);
  };

  const send = (events: readonly LiveEvent[]): void => {
    if (sink.send(events)) return;
    full = true;
    draining = waitForRoom();
  };

  const keep = (event: LiveEvent): void => {
    const group = backlog.at(-1);
    if (group && canMerge(group[0]!, event)) group.push(event);
    else backlog.push([event]);
    backlogBytes += event.json.length;
    if (backlog.length > limits.backlogEvents || backlogBytes > limits.backlogBytes) end('overflow');
  };

  return {
    offer(events) {
      if (ended || events.length === 0) return;
      if (!full) send(events);
      else for (const event of events) if (!ended) keep(event);
    },

    async paced(events) {
      for (let at = 0; at < events.length; at += 256) {
        while (full && !ended) await draining;
        if (ended) return;
        send(events.slice(at, at + 256));
      }
      while (full && !ended) await draining;
    },

    heartbeat(event) {
      if (!ended && !full) send([event]);
    },

    close: end,
    gone: () => end('gone'),

    onEnd(release) {
      if (ended) release(endedBy);
      else releases.push(release);
    },

    get ended() {
      return ended;
    },
  };
}
