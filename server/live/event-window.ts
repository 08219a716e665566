/**
 * The events of one live session as gateway clients count them: one `seq` over its runs and session events, from 1 and
 * without a gap (GW3). Keeps the newest ones for whoever asks what it has missed; what is no longer kept is said to be.
 * Bounds: contract of the gateway, 512 events and 4 MiB for a session, 64 sessions and 64 MiB for a process.
 */
import type { LiveEvent } from './live-event.ts';

export interface WindowLimits {
  events: number;
  bytes: number;
  /** Of all windows together. */
  sessions: number;
  processBytes: number;
}

export const WINDOW_LIMITS: WindowLimits = {
  events: 512,
  bytes: 4 * 1024 * 1024,
  sessions: 64,
  processBytes: 64 * 1024 * 1024,
};

/** What a client has missed. */
export interface Missed {
  /** `params` of event frames as JSON texts, oldest first. */
  events: string[];
  latestSeq: number;
  /** Not everything after the asked place is there, or the place was never reached. */
  truncated: boolean;
}

export interface EventWindow {
  /** The event in the gateway's envelope, with the next `seq`; kept while there is room. */
  stamp(event: LiveEvent): LiveEvent;
  since(lastSeen: number): Missed;
  latest(): number;
  /** Frees what it keeps. */
  close(): void;
}

export interface EventWindows {
  /** @param runtimeId goes into each event as its `session_id` */
  open(runtimeId: string): EventWindow;
  stats(): { sessions: number; events: number; bytes: number };
}

interface Kept {
  seq: number;
  json: string;
}

interface Ring {
  kept: Kept[];
  bytes: number;
  /** The last `seq` that is no longer kept. */
  lostThrough: number;
}

export function createEventWindows(limits: WindowLimits = WINDOW_LIMITS): EventWindows {
  /** Those that keep something, the one that began first in front. */
  const rings = new Set<Ring>();
  let total = 0;

  const dropOldest = (ring: Ring, count: number): void => {
    const dropped = ring.kept.splice(0, count);
    const last = dropped.at(-1);
    if (!last) return;
    const bytes = dropped.reduce((sum, { json }) => sum + json.length, 0);
    ring.bytes -= bytes;
    total -= bytes;
    ring.lostThrough = last.seq;
  };

  const empty = (ring: Ring): void => {
    dropOldest(ring, ring.kept.length);
    rings.delete(ring);
  };

  function trim(ring: Ring): void {
    if (ring.kept.length > limits.events) dropOldest(ring, ring.kept.length - limits.events);
    let excess = 0;
    for (let over = ring.bytes - limits.bytes; over > 0 && excess < ring.kept.length; excess += 1) {
      over -= ring.kept[excess]!.json.length;
    }
    dropOldest(ring, excess);
    for (const other of rings) {
      if (rings.size <= limits.sessions && total <= limits.processBytes) return;
      if (other !== ring) empty(other);
    }
  }

  return {
    open(runtimeId) {
      const ring: Ring = { kept: [], bytes: 0, lostThrough: 0 };
      let seq = 0;
      return {
        stamp(event) {
          seq += 1;
          const json = paramsOf(event, runtimeId, seq);
          rings.add(ring);
          ring.kept.push({ seq, json });
          ring.bytes += json.length;
          total += json.length;
          trim(ring);
          const place = event.place && { runId: event.place.runId, seq };
          return { ...event, sessionId: runtimeId, place, json, encoded: new Map() };
        },
        since(lastSeen) {
          const events = ring.kept.filter((one) => one.seq > lastSeen).map(({ json }) => json);
          return { events, latestSeq: seq, truncated: lastSeen < ring.lostThrough || lastSeen > seq };
        },
        latest: () => seq,
        close: () => empty(ring),
      };
    },

    stats: () => ({
      sessions: rings.size,
      events: [...rings].reduce((sum, ring) => sum + ring.kept.length, 0),
      bytes: total,
    }),
  };
}

const RUN_ID = /"run_id":"([^"]*)"/;
const ADMISSION_ID = /"admission_id":"([^"]*)"/;

/** `params` of an event frame. The payload is taken over as it was serialised, not made again. */
function paramsOf({ type, json, place }: LiveEvent, runtimeId: string, seq: number): string {
  const at = json.indexOf('"payload":');
  const head = json.slice(0, at);
  const runId = place?.runId ?? RUN_ID.exec(head)?.[1];
  const admissionId = place ? undefined : ADMISSION_ID.exec(head)?.[1];
  const ids =
    (runId === undefined ? '' : `"run_id":"${runId}",`) +
    (admissionId === undefined ? '' : `"admission_id":"${admissionId}",`);
  return `{"type":"${type}","session_id":"${runtimeId}","seq":${seq},${ids}${json.slice(at)}`;
}
