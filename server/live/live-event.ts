/**
 * What subscribers are sent. Made once, serialised once; an encoding (SSE, WebSocket) of it is made once too and kept
 * with it, whoever asks first.
 */
import { type RunEventType, type StampedEvent, serialiseEnvelope } from '../core/events.ts';

export interface LiveEvent {
  readonly type: string;
  /** Empty for events of no session. */
  readonly sessionId: string;
  /** Of a run event: its place. Such an event has an id, others have none. */
  readonly place: { runId: string; seq: number } | null;
  /** Of a snapshot: the position that it stands for. */
  readonly cursor: string | null;
  /** The envelope as JSON text. */
  readonly json: string;
  /** Whether it may be merged with its neighbours for a reader that lags. */
  readonly mergeable: boolean;
  /** Encodings of it by name. */
  readonly encoded: Map<string, string>;
}

const DELTAS = new Set(['message.delta', 'reasoning.delta', 'tool.output']);
const isDelta = (type: string): boolean => DELTAS.has(type);

/** A run event as it was written to the journal. */
export function runLiveEvent(event: StampedEvent, json: string = serialiseEnvelope(event)): LiveEvent {
  return {
    type: event.type,
    sessionId: event.session_id,
    place: { runId: event.run_id, seq: event.seq },
    cursor: null,
    json,
    mergeable: isDelta(event.type),
    encoded: new Map(),
  };
}

const TYPE = /^\{"type":"([a-z.]+)"/;
const SEQ = /"seq":(\d+),/;

/** A run event read back from its journal: the same bytes as the live one. @param envelope JSON text */
export function replayedLiveEvent(sessionId: string, runId: string, envelope: string): LiveEvent {
  const type = (TYPE.exec(envelope)?.[1] ?? '') as RunEventType;
  const seq = Number(SEQ.exec(envelope)?.[1] ?? 0);
  return {
    type,
    sessionId,
    place: { runId, seq },
    cursor: null,
    json: envelope,
    mergeable: isDelta(type),
    encoded: new Map(),
  };
}

/** An event of a session or of the list: not part of a run, not kept, without an id. */
export function plainLiveEvent(
  type: string,
  sessionId: string,
  payload: unknown,
  more: { cursor?: string | null; run_id?: string; admission_id?: string } = {},
): LiveEvent {
  const { cursor = null, ...envelope } = more;
  return {
    type,
    sessionId,
    place: null,
    cursor,
    json: JSON.stringify({ type, session_id: sessionId, ...envelope, payload }),
    mergeable: false,
    encoded: new Map(),
  };
}

/** Joins neighbouring deltas of one run into one with the place of the last; `first_seq` says where it begins. */
export function mergeDeltas(deltas: readonly LiveEvent[]): LiveEvent {
  const last = deltas.at(-1)!;
  if (deltas.length === 1) return last;
  const { payload, ...envelope } = JSON.parse(last.json);
  const text = deltas.map((delta) => JSON.parse(delta.json).payload.text).join('');
  const merged = { ...envelope, first_seq: deltas[0]!.place!.seq, payload: { ...payload, text } };
  return { ...last, json: JSON.stringify(merged), encoded: new Map() };
}

/** Whether `mergeDeltas` may join these. */
export const canMerge = (first: LiveEvent, second: LiveEvent): boolean =>
  first.mergeable &&
  second.mergeable &&
  first.type === second.type &&
  first.place?.runId === second.place?.runId &&
  (first.type !== 'tool.output' || toolOf(first) === toolOf(second));

const toolOf = (event: LiveEvent): string => JSON.parse(event.json).payload.tool_id;
