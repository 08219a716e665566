/** Turns in a list of rows of either store: a prompt, and everything up to the next one. */
import type { Keyed } from './keys.ts';
import { callsTools, isMarkerRow, isPartialRow } from './row.ts';

export interface Turns {
  /** Index of the prompt of the turn that a row is in (of a prompt: its own); -1 before the first prompt. */
  readonly promptOf: readonly number[];
  /** Index behind the last row of the turn of a prompt; of -1, of the first prompt. */
  endOf(prompt: number): number;
}

export function turnsOf(rows: readonly Keyed[]): Turns {
  const promptOf: number[] = [];
  const ends = new Map<number, number>();
  let prompt = -1;
  for (const { role, index } of rows) {
    if (role === 'user') prompt = index;
    promptOf.push(prompt);
    ends.set(prompt, index + 1);
  }
  return { promptOf, endOf: (at) => ends.get(at) ?? at + 1 };
}

/** What is known of one turn of the sidecar. */
export interface TurnState {
  /** Behind the last row that is no notice: where more of the turn belongs. */
  readonly tail: number;
  /** Whether an answer closes it. One that was cut short, or only brought back from a journal, does not. */
  readonly answered: boolean;
  readonly markers: readonly number[];
}

/** Looks at the turn of a prompt. */
export function turnState(rows: readonly Keyed[], prompt: number, end: number): TurnState {
  let tail = prompt + 1;
  const markers: number[] = [];
  for (let at = prompt + 1; at < end; at += 1) {
    const row = rows[at]!;
    if (isMarkerRow(row.row)) markers.push(at);
    if (!row.notice) tail = at + 1;
  }
  const last = tail > prompt + 1 ? rows[tail - 1]!.row : null;
  const answered = last?.role === 'assistant' && !callsTools(last) && !isPartialRow(last);
  return { tail, answered, markers };
}
