/**
 * What becomes of a conversation that was imported before: whether it is as it was, has grown there, or has parted ways
 * (IM3). Pure.
 */
import type { ImportRecord, OwnState } from '../../db/import-store.ts';
import { digestOf } from './transcript.ts';

export type Verdict =
  /** Nothing new there. */
  | { kind: 'unchanged' }
  /**
   * Only longer there, or a prompt was accepted there, and nobody went on here: the rows from `from` on are added. `settled` are rows by which recovery
   * settled, here, a turn whose end is told there by now.
   */
  | { kind: 'grown'; from: number; settled: string[] }
  /** It went on here as well, or its beginning is another one there now. */
  | { kind: 'parted' };

/**
 * @param rows the transcript there
 * @param openRun the run of a prompt that was accepted there and is in no row; null for none
 * @param own how it stands here
 */
export function judgeKnown(
  record: ImportRecord,
  rows: readonly { shape: string }[],
  openRun: string | null,
  own: OwnState,
): Verdict {
  const { row_count: count, digest } = record;
  const isSameBeginning = rows.length >= count && digestOf(rows, count) === digest;
  // Without its files nothing could settle it here.
  const hasNewTurn = openRun !== null && record.files_done && !own.later.some((row) => row.runId === openRun);
  if (isSameBeginning && rows.length === count && !hasNewTurn) return { kind: 'unchanged' };
  if (!isSameBeginning || !isUntouched(record, own) || own.ids.length !== count) return { kind: 'parted' };
  return { kind: 'grown', from: count, settled: own.later.flatMap((row) => (row.active ? [row.id!] : [])) };
}

/** The generation of a session that was made with its transcript, and of which no prompt was ever run. */
const FIRST_GENERATION = 1;

/** Whether nobody has gone on with a session here, nor edited it. What recovery makes of a dead turn is no going on. */
export function isUntouched({ edit_number }: ImportRecord, { session, later }: OwnState): boolean {
  if (session.generation !== FIRST_GENERATION || session.open.length > 0 || session.edit_number !== edit_number) {
    return false;
  }
  return later.every((row) => !row.active || (row.runId !== null && row.id !== null));
}
