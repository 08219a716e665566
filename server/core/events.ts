/**
 * Run events: what a run tells its readers, and the exact bytes of it.
 *
 * An event is stamped and serialised once. Its journal line is the same JSON with five fields of bookkeeping put
 * before it, so that a replayed frame has the bytes of the live one (EV1, JO2).
 */
import type { MarkerCause, Outcome, Todo, TurnError, Usage } from './terms.ts';

export interface ToolStart {
  tool_id: string;
  name: string;
  args: unknown;
  /** One short line for the head of a tool card. */
  preview: string;
}

export interface ToolComplete {
  tool_id: string;
  name: string;
  result: string;
  is_error: boolean;
  duration_s: number;
  /** What the tool changed in a file, as a unified diff. */
  diff?: string;
  /** The person said no to it. */
  denied?: true;
}

export interface RunStart {
  admission_id: string;
  input: string;
  generation: number;
  /** Epoch seconds of the claim: the time of the prompt's row. */
  timestamp: number;
  model: string;
  attachments?: string[];
}

/** What a person says to an agent that works: a prompt of its own that became a part of this run. */
export interface MessageInput {
  kind: 'steer';
  admission_id: string;
  input: string;
  /** Epoch seconds. */
  timestamp: number;
  attachments?: string[];
}

export interface MessageComplete {
  text: string;
  status: 'complete' | 'interrupted' | 'error';
  outcome: Outcome;
  admission_id: string;
  message_id: string | null;
  usage: Usage | null;
  error?: TurnError;
  /** Of a turn that died with its process: what recovery could say. */
  cause?: MarkerCause;
}

export type RunEvent =
  | { type: 'run.start'; payload: RunStart }
  | { type: 'message.start'; payload: Record<string, never> }
  | { type: 'message.input'; payload: MessageInput }
  | { type: 'message.delta'; payload: { text: string } }
  | { type: 'reasoning.delta'; payload: { text: string } }
  | { type: 'tool.start'; payload: ToolStart }
  | { type: 'tool.output'; payload: { tool_id: string; text: string } }
  | { type: 'tool.complete'; payload: ToolComplete }
  | { type: 'todo.updated'; payload: { todos: Todo[] } }
  | { type: 'usage'; payload: Usage }
  | { type: 'status'; payload: { kind: string; text: string } }
  | { type: 'message.complete'; payload: MessageComplete };

export type RunEventType = RunEvent['type'];

/** One event with its place in its run. */
export type StampedEvent = RunEvent & { session_id: string; run_id: string; seq: number; created_at: number };

/** Journal states of a terminal line; null on all other lines. */
export type TerminalState = 'completed' | 'interrupted-by-user' | 'interrupted-by-crash' | 'errored';

/** These are published only after their journal line is on the disk itself (fsync), and later events wait behind them. */
const BOUNDARIES = new Set<RunEventType>(['run.start', 'message.input', 'tool.complete', 'message.complete']);

export const isBoundary = (type: RunEventType): boolean => BOUNDARIES.has(type);

/** The time of a journal line: epoch seconds, to the millisecond. */
export const journalTime = (now: number): number => Math.round(now * 1000) / 1000;

/** Gives an event its place in its run. @param now epoch seconds */
export function stampEvent(
  event: RunEvent,
  place: Pick<StampedEvent, 'session_id' | 'run_id' | 'seq'>,
  now: number,
): StampedEvent {
  return { ...event, ...place, created_at: journalTime(now) } as StampedEvent;
}

/** The public envelope of a run event as JSON text: the `data:` of its SSE frame. */
export function serialiseEnvelope(event: StampedEvent): string {
  const { type, session_id, run_id, seq, payload } = event;
  return JSON.stringify({ type, session_id, run_id, seq, payload });
}

/** How the terminal line names the end of a run. */
export function terminalState(complete: MessageComplete): TerminalState {
  if (complete.status === 'complete') return 'completed';
  if (complete.status === 'error') return 'errored';
  return complete.cause ? 'interrupted-by-crash' : 'interrupted-by-user';
}

/**
 * The journal line of an event, without its newline (record version 2).
 * @param envelope the text of `serialiseEnvelope(event)`
 */
export function journalLine(event: StampedEvent, envelope: string): string {
  const state = event.type === 'message.complete' ? `"${terminalState(event.payload)}"` : 'null';
  const terminal = event.type === 'message.complete';
  return `{"version":2,"created_at":${event.created_at},"terminal":${terminal},"terminal_state":${state},${envelope.slice(1)}`;
}

/** The envelope text inside a journal line of version 2: the inverse of `journalLine`. */
export function envelopeOfLine(line: string): string {
  return `{${line.slice(line.indexOf('"type":'))}`;
}
