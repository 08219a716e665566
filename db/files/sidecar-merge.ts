/**
 * Rows of other programs, on either side, as one list of rows: what `reconcile` says, written as a sidecar keeps it. Pure,
 * so that any thread can do it.
 */
import { createHash } from 'node:crypto';
import { toDisplay } from '../../server/core/reconcile/display.ts';
import { nameRows } from '../../server/core/reconcile/names.ts';
import { reconcile } from '../../server/core/reconcile/reconcile.ts';
import { type Fences, idOf, type RawRow } from '../../server/core/reconcile/row.ts';
import { createPacker, createRowText, foundId, isPlain, type PackedRows } from './sidecar-rows.ts';

export interface MergeRules {
  fences: Fences;
  /** The run that is live anywhere: its output is shown by its events alone. */
  liveRunId: string | null;
  /** Ids that rows had which are no part of the transcript any more. */
  taken?: readonly string[];
}

export interface Merged {
  rows: PackedRows;
  /** Whether the file is not what a save would make of it. */
  changed: boolean;
  /** Rows of the state DB without an id, by their numbers, and where each stands, for its id there is theirs now. */
  unnamed: Float64Array;
  namedAt: Uint32Array;
  /** From where on the rows are in the sidecar alone. */
  missingFrom: number;
  /** Where rows stand that only the state DB has. */
  added: Uint32Array;
  /** Ids of markers that a late answer supersedes. */
  inactive: string[];
}

/** @param all the rows of the file; @param state those of the state DB */
export function mergeRows(all: readonly RawRow[], state: readonly RawRow[], rules: MergeRules): Merged {
  const found = withoutRepeatedIds(all);
  const result = reconcile({ sidecar: found, state, ...rules });
  const placed = result.rows.map((place) => {
    const twin = place.twin === null ? null : place.source === 'sidecar' ? state[place.twin] : found[place.twin];
    const id = idOf(place.row) ?? (twin ? idOf(twin) : null);
    return { ...place, row: id === null ? withoutId(place.row) : withId(place.row, id) };
  });
  const ids = nameRows(
    placed.map((place) => place.row),
    hash,
    rules.taken,
  );
  const [unnamed, namedAt, added]: [number[], number[], number[]] = [[], [], []];
  const packer = createPacker();
  const text = createRowText(placed.length * 512);
  let missingFrom = 0;
  for (const [at, place] of placed.entries()) {
    const id = ids[at]!;
    const stateRow = place.source === 'state' ? place.row : place.twin === null ? null : state[place.twin];
    if (stateRow && idOf(stateRow) === null) {
      unnamed.push(stateRow._state_db_row_id as number);
      namedAt.push(at);
    }
    if (stateRow) missingFrom = at + 1;
    if (stateRow && place.twin === null) added.push(at);
    const same = place.source === 'sidecar' ? found[place.index]! : null;
    if (same && isPlain(same) && foundId(same) === id) add(same, id, JSON.stringify(same));
    else if (place.source === 'state') add(toDisplay(place.row, id), id);
    else {
      const shown = toDisplay(place.row, id);
      const json = JSON.stringify(shown);
      const stored = JSON.stringify(withId(place.row, id));
      add(shown, id, json, stored === json ? undefined : stored);
    }
  }
  const inactive = result.replaced.map((at) => found[at]?.id).filter((id) => typeof id === 'string');
  const changed = result.changed || inactive.length > 0 || found.some((row) => foundId(row) === null);
  return {
    rows: packer.done(text.bytes.subarray(0, text.end)),
    changed,
    unnamed: new Float64Array(unnamed),
    namedAt: new Uint32Array(namedAt),
    missingFrom,
    added: new Uint32Array(added),
    inactive,
  };

  function add(row: { role: string; run_id?: unknown }, id: string, json = JSON.stringify(row), stored?: string): void {
    const runId = typeof row.run_id === 'string' ? row.run_id : null;
    packer.add({ id, runId, role: row.role, plain: stored === undefined }, text.add(json), stored);
  }
}

/** An id names one row: where it comes again it names none. */
function withoutRepeatedIds(rows: readonly RawRow[]): readonly RawRow[] {
  const ids = new Set<string>();
  return rows.map((row) => {
    const id = foundId(row);
    if (id !== null && ids.has(id)) return { ...withoutId(row), run_id: undefined };
    if (id !== null) ids.add(id);
    return row;
  });
}

const withId = (row: RawRow, id: string): RawRow => (row.id === id ? row : { ...row, id });

function withoutId(row: RawRow): RawRow {
  if (row.id === undefined) return row;
  const { id: _none, ...rest } = row;
  return rest;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
