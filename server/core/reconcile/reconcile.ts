/**
 * Reconcile: one transcript from what a sidecar and a state DB hold of a session (RC1 to RC9). Pure, deterministic, and
 * near-linear in the number of rows.
 *
 * The sidecar is what the person saw: its rows stay, all of them and in their order. The state DB is what an agent wrote, it
 * may be older, newer, re-stamped or repeated. First every row that both have finds its twin, from certain evidence to weak
 * (`twins`, `replay`); then what only the state DB has is placed or left out (`place`).
 */
import { attachApiContent } from './api-content.ts';
import { chronologyOf } from './chronology.ts';
import { createRowReader, type Keyed, type RowReader, secondKeys } from './keys.ts';
import { type Placement, place } from './place.ts';
import { addTextTwins } from './replay.ts';
import {
  type Fences,
  fieldOf,
  isLiveOutput,
  NO_FENCES,
  type Placed,
  type RawRow,
  type Reconciled,
  type ReconcileInput,
  untagged,
} from './row.ts';
import { timeFence } from './time-fence.ts';
import { turnsOf } from './turns.ts';
import { anyLeft, sureTwins, type Twins } from './twins.ts';

export { type Fences, NO_FENCES, type Placed, type RawRow, type Reconciled, type ReconcileInput };

/** What only the page needs; a twin that has it gives it to a row that lacks it. */
const DISPLAY_FIELDS = [
  '_turnDuration',
  '_turnTps',
  '_turnUsage',
  '_firstTokenMs',
  '_usedModel',
  '_gatewayRouting',
  '_statusCard',
  '_anchor_stream_id',
  '_anchor_activity_scene',
  '_media_snapshots',
];

/** Passes until nothing changes: two, hardly ever three; more only where the times contradict the order of rows. */
const MOST_PASSES = 8;

/** Makes one transcript of two. A second call with its own rows as the sidecar changes nothing. */
export function reconcile(input: ReconcileInput): Reconciled {
  const { fences, liveRunId } = input;
  const shown = (rows: readonly RawRow[]): number[] =>
    [...rows.keys()].filter((index) => !isLiveOutput(rows[index]!, liveRunId));
  const theirs = shown(input.state);
  const reader = createRowReader();
  const state = reader.read(
    theirs.map((index) => input.state[index]!),
    'state',
  );
  const mine = shown(input.sidecar);
  let rows = reader
    .read(
      mine.map((index) => input.sidecar[index]!),
      'sidecar',
    )
    .map((keyed, at): Entry => ({ keyed, source: 'sidecar', index: mine[at]!, twin: null, origin: null }));
  const replaced: number[] = [];
  let changed = false;

  const apply = (edit: Fences | null): boolean => {
    const before = rows;
    const next = pass(
      before.map(({ keyed }, index) => (keyed.index === index ? keyed : { ...keyed, index })),
      state,
      before.map(({ origin }) => origin),
      edit,
      reader,
    );
    for (const at of next.replaced) if (before[at]!.source === 'sidecar') replaced.push(before[at]!.index);
    rows = [];
    for (const one of next.rows) {
      const old = one.source === 'sidecar' ? before[one.index]! : null;
      const twin = one.twin === null ? null : theirs[one.twin]!;
      if (old?.source === 'sidecar') rows.push({ ...old, keyed: one.keyed, twin });
      else if (old) rows.push({ ...old, keyed: one.keyed });
      else rows.push({ ...one, index: theirs[one.index]!, origin: one.index });
    }
    const isChange = next.given || rows.length !== before.length || next.replaced.length > 0;
    changed ||= isChange;
    return isChange;
  };

  // First the rows with ids, which only need to know their predecessor: what is judged by texts and times then knows them.
  const known = new Set(rows.map(({ keyed }) => keyed.id));
  if (state.some(({ id }) => id !== null && !known.has(id))) apply(null);
  for (let passes = 0; passes < MOST_PASSES && apply(fences); passes += 1);
  return {
    rows: rows.map(({ keyed, source, index, twin }): Placed => ({ row: keyed.row, source, index, twin })),
    replaced: replaced.sort((a, b) => a - b),
    changed,
  };
}

/** A row of the result while it is worked on. */
interface Entry extends Omit<Placed, 'row'> {
  readonly keyed: Keyed;
  /** The state row that it was made of, among those that are shown. */
  readonly origin: number | null;
}

/** One pass: without fences rows with ids only, otherwise all. Indexes are those of its arguments. */
function pass(
  found: readonly Keyed[],
  state: readonly Keyed[],
  origins: readonly (number | null)[],
  fences: Fences | null,
  reader: RowReader,
) {
  const sidecar = withApiContent(found, state, reader);
  const twins = sureTwins(sidecar, state, origins);
  const { at, replaced } = anyLeft(twins) ? placeLeft(sidecar, state, twins, fences) : NOTHING_LEFT;
  const rows: Entry[] = [];
  const placeAt = (slot: number): void => {
    for (const index of at.get(slot) ?? []) {
      const [keyed] = reader.read([untagged(state[index]!.row)], 'sidecar');
      rows.push({ keyed: keyed!, source: 'state', index, twin: null, origin: index });
    }
  };
  let given = false;
  for (const [index, before] of sidecar.entries()) {
    placeAt(index);
    const twin = twins.ofSidecar[index] ?? null;
    const row = twin === null ? before.row : withDisplayOf(state[twin]!.row, before.row);
    if (row !== found[index]!.row) given = true;
    if (replaced.has(index)) continue;
    const keyed = row === before.row ? before : { ...before, row };
    rows.push({ keyed, source: 'sidecar', index, twin, origin: null });
  }
  placeAt(sidecar.length);
  return { rows, replaced: [...replaced], given };
}

const NOTHING_LEFT: Placement = { at: new Map(), replaced: new Set() };

function placeLeft(sidecar: readonly Keyed[], state: readonly Keyed[], twins: Twins, fences: Fences | null): Placement {
  const stores = {
    sidecar,
    state,
    sidecarTurns: turnsOf(sidecar),
    stateTurns: turnsOf(state),
    chronology: chronologyOf(sidecar),
    seconds: new Set(sidecar.flatMap(secondKeys)),
  };
  const neighbours = addTextTwins(stores, twins);
  return place(stores, twins, neighbours, fences && timeFence(fences, sidecar));
}

/** The rows with the provider's bytes that the state DB has for them. */
function withApiContent(sidecar: readonly Keyed[], state: readonly Keyed[], reader: RowReader): readonly Keyed[] {
  if (!state.some(({ api }) => api !== '')) return sidecar;
  const rows = attachApiContent(
    sidecar.map(({ row }) => row),
    state.map(({ row }) => row),
  );
  return sidecar.map((keyed, index) => {
    const row = rows[index]!;
    return row === keyed.row ? keyed : { ...reader.read([row], 'sidecar')[0]!, index };
  });
}

/** The sidecar row with what its twin knows and it does not. */
function withDisplayOf(twin: RawRow, row: RawRow): RawRow {
  const lacking = (name: string): boolean => fieldOf(row, name) === undefined || fieldOf(row, name) === null;
  const given = DISPLAY_FIELDS.filter((name) => fieldOf(twin, name) != null && lacking(name));
  if (given.length === 0) return row;
  return { ...row, ...Object.fromEntries(given.map((name) => [name, fieldOf(twin, name)])) };
}
