/** Edits of a transcript as decisions over values: whether one may be made now, and where it cuts (ED1, ED2). */
import type { AdmissionStatus } from './terms.ts';

export interface EditFacts {
  /** Admissions of the session that have not ended. */
  open: readonly { status: AdmissionStatus }[];
  /** The revision now, and the one at which the transcript was looked at. */
  revision: number;
  expected: number;
}

export type EditVerdict = 'edit' | 'unknown_execution' | 'session_busy' | 'revision_conflict';

/** The verdict on an edit: never under a turn, and never of a transcript that the editor has not seen. */
export function judgeEdit({ open, revision, expected }: EditFacts): EditVerdict {
  if (open.some((row) => row.status === 'unknown')) return 'unknown_execution';
  if (open.length > 0) return 'session_busy';
  return revision === expected ? 'edit' : 'revision_conflict';
}

/** What the place of a cut depends on. */
export interface PlacedRow {
  id: string;
  role: string;
  runId: string | null;
}

/**
 * How many rows stay when one is kept: those up to it, and the tool results that follow it, for a call without its
 * results is not a conversation that goes on. Kept is therefore the whole block, whichever of its rows is named.
 * @returns the number of rows that stay; 0 when there is no such row
 */
export function keptUpTo(rows: readonly PlacedRow[], id: string): number {
  const at = rows.findIndex((row) => row.id === id);
  if (at < 0) return 0;
  let kept = at + 1;
  while (rows[kept]?.role === 'tool') kept += 1;
  return kept;
}

/** Where turns begin: at each prompt. What a person adds to a turn that runs is a part of it. */
export function turnStarts(rows: readonly PlacedRow[]): number[] {
  const starts: number[] = [];
  for (const [at, row] of rows.entries()) {
    const before = rows[at - 1];
    const within = before !== undefined && row.runId !== null && before.runId === row.runId;
    if (row.role === 'user' && !within) starts.push(at);
  }
  return starts;
}
