/**
 * Assembling a transcript: what a sidecar and the state DB say of one session becomes one list of rows, and what each of
 * them lacks is said beside it. The rules are `server/core/reconcile`; here is what they are given, and the short way
 * past them for sessions whose rows all carry ids, which is every session that only we write.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileIdentity, FoundRow, Sidecar, SidecarRow, SidecarStore } from '../../db/files/sidecar-store.ts';
import type { LateEdit, MessageStore, SessionRow, StateIndex } from '../../db/stores.ts';
import { isMarkerId } from '../core/ids.ts';
import { sayingOf } from '../core/reconcile/context-cut.ts';
import { cutAtEdit } from '../core/reconcile/edit-fence.ts';
import { fencesOf } from '../core/reconcile/fences.ts';
import { idOf, type RawRow } from '../core/reconcile/row.ts';
import type { Message } from '../core/terms.ts';
import { editOf } from './sidecar-header.ts';

export interface Assembled {
  rows: readonly SidecarRow[];
  /** Whether the file is not what a save would make of it. */
  sidecarBehind: boolean;
  /** What the state DB lacks. */
  names: { rowId: number; id: string }[];
  missing: Message[];
  inactive: string[];
  /** An edit that only the file has seen; null when there is none. */
  edit: LateEdit | null;
  /** Rows of the file that an edit took back which it has not seen. */
  gone: readonly FoundRow[];
}

export interface AssembleInput {
  found: (Pick<Sidecar<FoundRow>, 'header' | 'rows'> & { identity: FileIdentity }) | null;
  session: SessionRow | null;
  /** Where the rows of the state DB stand, as they were read beside the file. */
  index: StateIndex;
  messages: MessageStore;
  sidecars: Pick<SidecarStore, 'merge'>;
  sessionId: string;
  /** The run that is live anywhere: its output is shown by its events alone. */
  live: string | null;
}

/** Makes one transcript of what the stores have. Reads what it needs of the state DB, and writes nothing. */
export async function assemble(input: AssembleInput): Promise<Assembled> {
  const { found, session, index, messages, sessionId } = input;
  const edited = await afterEdits(input);
  const rows = found ? await withoutReplacedMarkers(edited, messages, sessionId) : [];
  const shrunk = found !== null && rows.length !== found.rows.length;
  const isOurs = rows.every(isSettled) && !index.ids.includes(null);
  const edit = session && found && lateEdit(found, session);
  const short = isOurs ? await withoutInactive(byIds(rows as readonly SidecarRow[], input), input) : null;
  const assembled = short ?? (await byContent(rows, input, edit !== null));
  const outdated = found !== null && editOf(found.header) < (session?.edit_number ?? 0);
  const there = new Set(edited);
  const gone = found && edited.length < found.rows.length ? found.rows.filter((row) => !there.has(row)) : [];
  return { ...assembled, edit, gone, sidecarBehind: assembled.sidecarBehind || shrunk || outdated };
}

type Parts = Omit<Assembled, 'edit' | 'gone'>;

/** The edit that a file has seen and the session's row has not: the state DB was put back to what it was before it. */
function lateEdit({ header, rows }: Pick<Sidecar<FoundRow>, 'header' | 'rows'>, session: SessionRow): LateEdit | null {
  const number = editOf(header);
  if (number <= session.edit_number) return null;
  const { edit_fence: fence = rows.findLast(({ id }) => id !== null)?.id } = header;
  return { number, fence: fence ?? null };
}

/** Whether nothing about a row is open: it has an id, and people may see it as it is. */
const isSettled = (row: FoundRow): boolean => row.id !== null && row.plain;

/** A sidecar that has not seen the last edit is cut at its fence. */
async function afterEdits({ found, session, index, messages, sessionId }: AssembleInput) {
  if (!found) return [];
  if (!session || editOf(found.header) >= session.edit_number) return found.rows;
  // Written by a program that knows nothing of our edits: it may be from before the last one, or have gone on behind it.
  if (found.header.edit_number === undefined) return withoutTakenBack(found.rows, await messages.inactive(sessionId));
  return cutAtEdit(found.rows, {
    sidecarEdit: editOf(found.header),
    sessionEdit: session.edit_number,
    fence: session.edit_fence,
    inactive: new Set(await messages.inactiveIds(sessionId)),
    active: new Set(index.ids.filter((id) => id !== null)),
  });
}

/**
 * Without the rows that edits took back, told by their ids, or where there is none by what they say: each as often as it was
 * taken back, the last ones first.
 */
function withoutTakenBack(rows: readonly FoundRow[], gone: readonly RawRow[]): readonly FoundRow[] {
  const ids = new Set(gone.map((row) => idOf(row)));
  const said = new Map<string, number>();
  for (const row of gone) said.set(sayingOf(row), (said.get(sayingOf(row)) ?? 0) + 1);
  const kept: FoundRow[] = [];
  for (const row of rows.toReversed()) {
    if (row.id !== null && !ids.has(row.id)) kept.push(row);
    if (row.id !== null) continue;
    const saying = sayingOf(JSON.parse(row.json) as RawRow);
    const left = said.get(saying) ?? 0;
    if (left === 0) kept.push(row);
    else said.set(saying, left - 1);
  }
  return kept.length === rows.length ? rows : kept.reverse();
}

const isMarkerRow = ({ id }: FoundRow): boolean => id !== null && isMarkerId(id);

/** A marker that gave way to a late answer stays away, also when the file could not be saved since. */
async function withoutReplacedMarkers(rows: readonly FoundRow[], messages: MessageStore, sessionId: string) {
  if (!rows.some(isMarkerRow)) return rows;
  const inactive = new Set(await messages.inactiveIds(sessionId));
  return inactive.size === 0 ? rows : rows.filter((row) => !(isMarkerRow(row) && inactive.has(row.id!)));
}

/** Rows that all have ids, and are all in the sidecar: null when they are not. */
function byIds(rows: readonly SidecarRow[], { index, live }: AssembleInput): Parts | null {
  // Both have the same rows, as nearly always: nothing is to be looked for.
  if (live === null && rows.length === index.ids.length && rows.every((row, at) => row.id === index.ids[at])) {
    return { rows, sidecarBehind: false, names: [], missing: [], inactive: [] };
  }
  const known = new Set(rows.map((row) => row.id));
  if (!index.ids.every((id) => known.has(id!) || isOutputOf(live, id!))) return null;
  const shown = live === null ? rows : rows.filter((row) => !isOutputOf(live, row.id));
  return { rows: shown, sidecarBehind: false, names: [], missing: missingInState(shown, index), inactive: [] };
}

/** Whether a row is what a run said: all but its prompt. */
const isOutputOf = (runId: string | null, id: string): boolean =>
  runId !== null && id.startsWith(`${runId}.`) && id !== `${runId}.0`;

/**
 * Rows that the state DB has lost, where they can be put back in order: those behind everything it has. One in the middle
 * stays in the sidecar alone, for the state DB knows no other order than that of its rows.
 */
function missingInState(rows: readonly SidecarRow[], index: StateIndex): Message[] {
  const known = new Set(index.ids);
  const from = rows.findLastIndex((row) => known.has(row.id)) + 1;
  return rows.slice(from).map((row) => JSON.parse(row.json) as Message);
}

/** What an edit took back stays away, also when a file that has it says that it has seen the edit. */
async function withoutInactive(short: Parts | null, { messages, sessionId }: AssembleInput) {
  if (!short || short.missing.length === 0) return short;
  const inactive = new Set(await messages.inactiveIds(sessionId));
  if (!short.missing.some((row) => inactive.has(row.id))) return short;
  const isThere = ({ id }: { id: string }): boolean => !inactive.has(id);
  return { ...short, rows: short.rows.filter(isThere), missing: short.missing.filter(isThere), sidecarBehind: true };
}

/** Rows of other programs on either side, and rows that the sidecar lacks. */
async function byContent(rows: readonly FoundRow[], input: AssembleInput, isRewound: boolean): Promise<Parts> {
  const { index, messages, sidecars, sessionId, live, found } = input;
  async function* state() {
    for (let from = 0; from < index.rowIds.length; from += STEP) {
      // Streams go on in between.
      await nextTurn();
      yield await messages.raw(sessionId, index.rowIds.slice(from, from + STEP));
    }
  }
  const merged = await sidecars.merge(sessionId, {
    found,
    rows,
    stateCount: index.rowIds.length,
    state,
    fences: fencesOf(found?.header ?? null),
    liveRunId: live,
    taken: await messages.inactiveIds(sessionId),
  });
  const missing = merged.rows.slice(merged.missingFrom).map((row) => JSON.parse(row.json) as Message);
  const { names, inactive } = merged;
  const all = { rows: merged.rows, sidecarBehind: merged.changed, names, missing, inactive };
  return isRewound ? withoutRewound(all, merged.added, found!.header.updated_at) : all;
}

/**
 * Without the rows that a state DB still has of before an edit: those that the file lacks and that are no younger than it.
 * @param added where rows of the state DB alone stand
 * @param savedAt when the session had last changed as the file was saved, epoch seconds
 */
function withoutRewound(all: Parts, added: Uint32Array, savedAt: unknown): Parts {
  const until = typeof savedAt === 'number' ? savedAt : Number.POSITIVE_INFINITY;
  const isOld = (row: SidecarRow): boolean => !((JSON.parse(row.json) as Message).timestamp > until);
  const gone = new Set(Array.from(added, (at) => all.rows[at]!).filter(isOld));
  const rows = all.rows.filter((row) => !gone.has(row));
  return { ...all, rows, inactive: [...all.inactive, ...Array.from(gone, (row) => row.id)] };
}

/** Rows of the state DB that are read at a time. */
const STEP = 500;
