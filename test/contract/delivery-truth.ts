/** What is true of a session's runs, what a reader was shown of it, and that the two are the same. */
import { expect } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
type Json = any;

/** An event of a run as its journal has it. */
export interface Truth {
  runId: string;
  seq: number;
  type: string;
  payload: Json;
  /** The envelope as it was written. */
  bytes: string;
}

/** An event of a run as a reader was shown it. */
export interface Shown {
  runId: string;
  type: string;
  payload: Json;
  /** How many events it stands for: more than one for merged deltas. */
  count: number;
  /** The envelope as it came. */
  bytes: string;
}

/** What a reader was told when it came, instead of events. */
export interface Told {
  /** The last event that is in it; `seq` is infinite for a run that is over. Null: nothing has happened yet. */
  after: { runId: string; seq: number } | null;
  /** All text of the running turn so far; null when none runs. */
  text: string | null;
}

/** The number of true events that a reader was told of otherwise when it came. */
export function toldOf(truth: readonly Truth[], { after }: Told): number {
  if (after === null) return 0;
  const begin = truth.findIndex(({ runId }) => runId === after.runId);
  return begin + truth.filter(({ runId, seq }) => runId === after.runId && seq <= after.seq).length;
}

/** How many events one that came stands for. */
export const shownCount = ({ seq = 0, first_seq = seq }: { seq?: number; first_seq?: number }): number =>
  seq - first_seq + 1;

/** How many events those that came stand for. */
export const countOf = (shown: readonly Shown[]): number => shown.reduce((sum, { count }) => sum + count, 0);

/**
 * The shown events are the true ones: each once, in order, nothing between them and nothing left out, from `from` to the
 * end. Merged deltas count as what they stand for.
 */
export function expectExactly(truth: readonly Truth[], shown: readonly Shown[], from = 0): void {
  let at = from;
  for (const event of shown) {
    const own = truth.slice(at, at + event.count);
    const where = `event ${at} of ${truth.length}`;
    expect(own.length, `${where} exists`).toBe(event.count);
    expect([...new Set(own.map(({ runId, type }) => `${runId} ${type}`))], where).toEqual([
      `${event.runId} ${event.type}`,
    ]);
    const payload =
      own.length === 1 ? own[0]!.payload : { ...own[0]!.payload, text: own.map((one) => one.payload.text).join('') };
    expect(JSON.stringify(event.payload) === JSON.stringify(payload), `${where} has its payload`).toBe(true);
    at += event.count;
  }
  expect(at, 'the last event shown is the last one there is').toBe(truth.length);
}

/** What a reader was told of a running turn is true: its text up to the place that was named. */
export function expectTold(truth: readonly Truth[], told: Told): void {
  if (told.text === null) return;
  const run = truth.slice(0, toldOf(truth, told)).filter(({ runId }) => runId === told.after?.runId);
  const texts = run.filter(({ type }) => type === 'message.delta').map(({ payload }) => payload.text);
  expect(told.text).toBe(texts.join(''));
}

/** A reader was shown what it had not been told, and all of it. */
export function expectWhole(truth: readonly Truth[], reader: { told: Told | null; shown(): Shown[] }): void {
  expectTold(truth, reader.told!);
  expectExactly(truth, reader.shown(), toldOf(truth, reader.told!));
}
