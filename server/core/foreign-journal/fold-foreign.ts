/**
 * What a run journal of another program says (JO5): the rows of the run, how it ended, and its error. Pure; nothing of
 * ours writes such a journal.
 */
import type { Message } from '../terms.ts';
import { errorOf, type ForeignError } from './error.ts';
import { type ForeignPlace, type ForeignTerminal, lastTerminal, ownRecord, terminalOf } from './records.ts';
import { rowsOf } from './rows.ts';

export interface ForeignRun {
  /** Assistant and tool rows of the run, `<run id>.1` first; without its prompt and without a marker. */
  rows: Message[];
  /** How it ended; null when its journal does not say. */
  terminal: ForeignTerminal | null;
  /** Its error, where its own words are known: stands behind `rows` instead of a marker. */
  error: ForeignError | null;
}

/**
 * Reads the lines of a version 1 journal as their writer meant them. Lines that are not of this run are passed over.
 * @param lines parsed lines in the order of the file, as `parseForeign` gives them
 */
export function foldForeign(lines: readonly unknown[], place: ForeignPlace): ForeignRun {
  const records = lines.flatMap((line) => ownRecord(line, place) ?? []);
  const last = lastTerminal(records);
  const terminal = last && terminalOf(last);
  const rows = rowsOf(records, place.runId, terminal === 'completed');
  const firstAt = records.find((record) => record.at !== null)?.at ?? 0;
  return { rows, terminal, error: last && errorOf(last, place, firstAt) };
}
