/**
 * Notes kept in a session. The transcript is their only storage: a successful call of `notes_add` or `notes_remove`
 * in it is the record, and the notes are the fold of these calls. So they survive what the session survives, and a
 * rewound, cleared or forked session has the notes of what is left of it. Pure.
 */
import type { Message } from '../../core/terms.ts';

export const NOTES_ADD = 'notes_add';
export const NOTES_REMOVE = 'notes_remove';

/** Longest note (characters). */
export const MAX_NOTE = 2000;

export interface Note {
  /** From 1 in the order of adding; a number is not given again. */
  number: number;
  text: string;
  /** Epoch seconds. */
  timestamp: number;
}

export interface Notes {
  notes: Note[];
  /** The number of the next note. */
  next: number;
}

/** The notes of a transcript, oldest first. Rows that are not ours, or damaged, change nothing. */
export function foldNotes(history: readonly Message[]): Notes {
  const notes = new Map<number, Note>();
  let next = 1;
  for (const [index, row] of history.entries()) {
    for (const call of row.role === 'assistant' ? (row.tool_calls ?? []) : []) {
      const { name } = call.function;
      if (name !== NOTES_ADD && name !== NOTES_REMOVE) continue;
      if (!succeeded(history, index, call.id)) continue;
      const args = argumentsOf(call.function.arguments);
      if (name === NOTES_ADD) {
        if (typeof args.text !== 'string') continue;
        notes.set(next, { number: next, text: args.text, timestamp: row.timestamp });
        next++;
      } else if (args.all === true) notes.clear();
      else if (typeof args.number === 'number') notes.delete(args.number);
    }
  }
  return { notes: [...notes.values()], next };
}

/**
 * Whether a call has a result that is no error. Looked for in the tool rows right behind the call's own row only: ids
 * are unique within a run, not within a session.
 */
function succeeded(history: readonly Message[], callIndex: number, callId: string): boolean {
  for (let index = callIndex + 1; history[index]?.role === 'tool'; index++) {
    const row = history[index]!;
    if (row.tool_call_id === callId) return row.is_error !== true;
  }
  return false;
}

function argumentsOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
