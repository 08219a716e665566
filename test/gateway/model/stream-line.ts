/** A stream of one session that comes back with its cursor, on whichever server runs then. */
import { openSse, type SseReader } from '../../support/sse.ts';
import type { ModelSession } from './conn.ts';
import { type Line, type Shown, shownOf, streamFaults } from './line.ts';
import type { World } from './world.ts';

export interface StreamLine extends Line {
  /** Connects again, behind the last event that it has. */
  again(): Promise<void>;
  drop(): void;
  pause(): void;
  resume(): void;
}

/** Begins with a snapshot. */
export async function openStream(world: World, name: string, { key, turns }: ModelSession): Promise<StreamLine> {
  const known: Shown[] = [];
  /** How many events of this connection are among them. */
  let taken = 0;
  let reader: SseReader | null = null;
  let cursor: string | null = null;

  function all(): readonly Shown[] {
    const news = reader?.events.slice(taken) ?? [];
    taken += news.length;
    known.push(...news.map(({ json }) => shownOf(json)));
    return known;
  }

  async function connect(): Promise<void> {
    const headers: Record<string, string> = cursor === null ? {} : { 'last-event-id': cursor };
    const opened = await openSse(`${world.server().url}/api/sessions/${key}/events`, { headers });
    if (opened.status !== 200) throw new Error(`${name} was refused with ${opened.status}: ${opened.text()}`);
    reader = opened;
    taken = 0;
    void opened.ended.then(() => {
      if (reader === opened) drop();
    });
    // It is attached when it has been told where it stands.
    const first = cursor === null ? 'session.snapshot' : 'session.info';
    await opened.next(({ type }) => type === first || type === 'session.reset');
  }

  function drop(): void {
    const last = reader?.events.findLast(({ id }) => id !== null);
    cursor = last?.id ?? cursor;
    all();
    const old = reader;
    reader = null;
    old?.drop();
  }

  await connect();
  const snapshot = all()[0]!.payload;
  const waits = (canary: string): boolean => snapshot.queue.some(({ text }: { text: string }) => text.includes(canary));
  const isEnded = ({ runId, canary }: (typeof turns)[number]): boolean =>
    snapshot.run?.run_id !== runId && !waits(canary);
  return {
    name: `${name} of ${key}`,
    key,
    runtimeId: null,
    endedBefore: new Set(turns.filter(isEnded).map(({ runId }) => runId)),
    begun: snapshot.run && { runId: snapshot.run.run_id, text: snapshot.run.text },
    isOpen: () => reader !== null,
    shown: all,
    faults: () => streamFaults(all()),
    again: connect,
    drop,
    pause: () => reader?.pause(),
    resume: () => reader?.resume(),
  };
}
