/**
 * The event log of one running run: stamps events, appends them to the journal, then publishes them (JO1, JO2).
 *
 * All events of a tick go to the journal in one write and to the subscribers as one batch. A boundary event (run.start,
 * tool.complete, message.complete) is published only after its fsync; later events wait behind it. The fold moves with
 * what is published, so a snapshot never shows what a reader at its cursor could not have. The terminal event is
 * sealed first and published last of all, when everything else about the turn is durable (EV3, JO3).
 */

import type { JournalWriter } from '../../db/files/journal.ts';
import {
  isBoundary,
  journalLine,
  type MessageComplete,
  type RunEvent,
  type StampedEvent,
  serialiseEnvelope,
  stampEvent,
} from '../core/events.ts';
import { createFold, type Fold } from '../core/fold.ts';
import type { Message } from '../core/terms.ts';
import { type LiveEvent, runLiveEvent } from './live-event.ts';

export interface RunLogParts {
  sessionId: string;
  runId: string;
  journal: JournalWriter;
  /** Epoch seconds. */
  now(): number;
  /** Also fsync after every write, not only at boundaries (`journal.fsync: eager`). */
  eager: boolean;
  /** Tries a write until it succeeds; rejects only when the server gives up. */
  persist<T>(what: string, write: () => Promise<T>): Promise<T>;
  publish(events: readonly LiveEvent[]): void;
  /** Rows that published events closed, oldest first. */
  onRows(rows: Message[]): void;
  /** Most bytes of events that are kept in memory for readers that catch up. */
  ringBytes: number;
  /** Events were handed to all their readers. @param seconds since the agent gave the first of them */
  onDelivered?(seconds: number): void;
}

export interface RunLog {
  readonly runId: string;
  readonly fold: Fold;
  /** The last `seq` that subscribers were given. */
  published(): number;
  append(event: RunEvent): void;
  /** Resolves when few enough events wait, so that an agent faster than the disk is held back. */
  room(): Promise<void>;
  /** Resolves when everything appended so far is published. */
  flushed(): Promise<void>;
  /** Writes the terminal line and makes it durable; nobody is told yet. */
  seal(complete: MessageComplete): Promise<StampedEvent>;
  /** Tells everybody the terminal event. */
  publishTerminal(): void;
  /** Whether everybody was told its end. */
  ended(): boolean;
  /** Published events after `seq`; null when they are no longer all in memory. */
  recent(after: number): readonly LiveEvent[] | null;
  /** Closes the journal; what was published stays readable. */
  close(): Promise<void>;
}

const MOST_WAITING = 2_000;

interface Entry {
  event: StampedEvent;
  json: string;
}

export function createRunLog(parts: RunLogParts): RunLog {
  const { sessionId, runId, journal } = parts;
  const fold = createFold(runId);
  const waiting: Entry[] = [];
  let pumping: Promise<void> | null = null;
  let seq = 0;
  let published = 0;
  let sealed: Entry | null = null;
  let isOver = false;
  const ring: LiveEvent[] = [];
  let ringStart = 0;
  let ringBytes = 0;

  const stamp = (event: RunEvent): Entry => {
    seq += 1;
    const stamped = stampEvent(event, { session_id: sessionId, run_id: runId, seq }, parts.now());
    return { event: stamped, json: serialiseEnvelope(stamped) };
  };

  const write = async (batch: readonly Entry[], sync: boolean): Promise<void> => {
    const lines = batch.map(({ event, json }) => `${journalLine(event, json)}\n`).join('');
    await parts.persist('journal append', () => journal.append(lines));
    if (sync || parts.eager) await parts.persist('journal fsync', () => journal.sync());
  };

  const publish = (batch: readonly Entry[]): void => {
    const events: LiveEvent[] = [];
    const closed: Message[] = [];
    for (const { event, json } of batch) {
      closed.push(...fold.apply(event, event.created_at));
      const live = runLiveEvent(event, json);
      events.push(live);
      ring.push(live);
      ringBytes += json.length;
    }
    for (; ringBytes > parts.ringBytes && ringStart < ring.length - 1; ringStart += 1) {
      ringBytes -= ring[ringStart]!.json.length;
    }
    // Forget evicted events in steps, so that a long run does not move the array for every event.
    if (ringStart > 4096) {
      ring.splice(0, ringStart);
      ringStart = 0;
    }
    published = batch.at(-1)!.event.seq;
    parts.publish(events);
    parts.onDelivered?.(Math.max(0, parts.now() - batch[0]!.event.created_at));
    if (closed.length) parts.onRows(closed);
  };

  const pump = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve)); // Let the tick finish: its events go in one write.
    while (waiting.length) {
      const boundary = waiting.findIndex(({ event }) => isBoundary(event.type));
      const batch = boundary < 0 ? waiting.slice() : waiting.slice(0, boundary + 1);
      // Taken out only when it is written: a batch that could not be is tried again, never skipped (JO1).
      await write(batch, boundary >= 0);
      waiting.splice(0, batch.length);
      publish(batch);
    }
  };

  const start = (): Promise<void> => {
    pumping ??= pump().finally(() => {
      pumping = null;
    });
    return pumping;
  };

  const flushed = async (): Promise<void> => {
    while (pumping || waiting.length) await start();
  };

  return {
    runId,
    fold,
    published: () => published,

    append(event) {
      waiting.push(stamp(event));
      // A failure is seen by whoever waits for `flushed`; here it must only not go unhandled.
      start().catch(() => {});
    },

    async room() {
      if (waiting.length > MOST_WAITING) await flushed();
    },

    flushed,

    async seal(complete) {
      await flushed();
      sealed = stamp({ type: 'message.complete', payload: complete });
      await write([sealed], true);
      return sealed.event;
    },

    publishTerminal() {
      if (sealed) publish([sealed]);
      sealed = null;
      isOver = true;
    },

    ended: () => isOver,

    recent(after) {
      const first = ring[ringStart]?.place?.seq ?? published + 1;
      if (after + 1 < first) return null;
      return ring.slice(ringStart + (after + 1 - first));
    },

    close: () => journal.close(),
  };
}
