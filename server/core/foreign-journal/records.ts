/**
 * Lines of run journals that another program wrote (record version 1): which are there, which belong to a run, and how
 * that run ended (JO5). The format is that of hermes-webui: one JSON object a line with `version`, `event_id`, `seq`,
 * `run_id`, `session_id`, `event` (again as `type`), `created_at`, `terminal`, `terminal_state` and `payload`.
 */
import { isRecord } from '../text.ts';

/** How its writer says that a run ended. */
export type ForeignTerminal =
  | 'completed'
  | 'interrupted-by-user'
  | 'interrupted-by-crash'
  | 'errored'
  | 'tool_limit_reached';

/** The run that a journal is read for. */
export interface ForeignPlace {
  sessionId: string;
  runId: string;
}

/** One line that belongs to the run. */
export interface ForeignRecord {
  seq: number;
  event: string;
  /** Epoch seconds; null when the line has no usable time. */
  at: number | null;
  payload: Readonly<Record<string, unknown>>;
  terminalState: unknown;
}

/** What the text of a journal holds. */
export type ForeignText =
  | { kind: 'empty' }
  /** `version` of its first good line, null when it has none; `records` only of version 1. */
  | { kind: 'there'; version: number | null; records: unknown[] };

const STATES: ReadonlySet<unknown> = new Set<ForeignTerminal>([
  'completed',
  'interrupted-by-user',
  'interrupted-by-crash',
  'errored',
  'tool_limit_reached',
]);

const TERMINAL_EVENTS: ReadonlySet<string> = new Set(['done', 'cancel', 'apperror', 'error', 'stream_end']);

/** Whether an event ends a run, and with it the text that is being said. */
export const isTerminalEvent = (event: string): boolean => TERMINAL_EVENTS.has(event);

/** The text in a field of a foreign payload; empty when there is none. */
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A time or a length of time in a foreign line; null when it is none. */
export const secondsIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;

/**
 * The lines of a journal as far as they are JSON objects with a version. A line that is none is passed over: its writer
 * appends whole lines and never looks back, so that what follows a broken one is good (JO4, JO5).
 */
export function parseForeign(text: string): ForeignText {
  if (text.trim() === '') return { kind: 'empty' };
  const good = text
    .split('\n')
    .map(parseLine)
    .filter((line) => line !== null);
  const version = good[0]?.version ?? null;
  return { kind: 'there', version, records: version === 1 ? good : [] };
}

function parseLine(line: string): { version: number } | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) && Number.isInteger(value.version) ? (value as { version: number }) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The record in a line, or null when the line does not name this run, this session and a place of its own in it. */
export function ownRecord(line: unknown, { sessionId, runId }: ForeignPlace): ForeignRecord | null {
  if (!isRecord(line) || line.version !== 1 || line.session_id !== sessionId || line.run_id !== runId) return null;
  const { seq, event_id, payload, terminal_state: terminalState } = line;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 1 || event_id !== `${runId}:${seq}`) return null;
  const event = textIn(line.event) || textIn(line.type);
  if (event === '') return null;
  return { seq, event, at: secondsIn(line.created_at), payload: isRecord(payload) ? payload : {}, terminalState };
}

/**
 * The record that says how the run ended: the last terminal one. `stream_end` only says that the stream was closed, so
 * it counts where it stands alone. Null when the journal has no end.
 */
export function lastTerminal(records: readonly ForeignRecord[]): ForeignRecord | null {
  const ends = records.filter((record) => isTerminalEvent(record.event));
  return ends.findLast((record) => record.event !== 'stream_end') ?? ends.at(-1) ?? null;
}

/** How a terminal record says that its run ended. */
export function terminalOf({ event, payload, terminalState }: ForeignRecord): ForeignTerminal {
  if (event === 'stream_end') return 'completed';
  for (const state of [terminalState, payload.terminal_state]) {
    if (STATES.has(state)) return state as ForeignTerminal;
  }
  switch (event) {
    case 'done':
      return 'completed';
    case 'cancel':
      return 'interrupted-by-user';
    default:
      return stateOfType(payload.type);
  }
}

/** An error line without a state of its own: its type tells. */
function stateOfType(type: unknown): ForeignTerminal {
  if (type === 'cancelled') return 'interrupted-by-user';
  if (type === 'interrupted') return 'interrupted-by-crash';
  return type === 'tool_limit_reached' ? type : 'errored';
}
