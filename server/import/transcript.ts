/**
 * The transcript of a conversation that comes from elsewhere: its sidecar and its rows of a state.db reconciled, each row
 * with an id, as both of our stores are to have it (IM2). Pure.
 */
import { createHash } from 'node:crypto';
import { isPlain } from '../../db/files/sidecar-rows.ts';
import type { ImportRow } from '../../db/import-rows.ts';
import { toDisplay } from '../core/reconcile/display.ts';
import { nameRows } from '../core/reconcile/names.ts';
import { type Fences, reconcile } from '../core/reconcile/reconcile.ts';
import { fieldOf, idOf, isOurId, type RawRow } from '../core/reconcile/row.ts';
import type { Message } from '../core/terms.ts';
import { wellFormedJson } from '../core/text.ts';

/** A row as both stores get it. */
export interface ImportedRow extends ImportRow {
  /** What the sidecar keeps, where that is more than people see. */
  stored?: string;
  /** What is the same in two rows that say the same, whenever and under whatever id. */
  shape: string;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

/** How JSON writes what is not well formed: halves of surrogate pairs, and NUL. */
const MALFORMED = /\\u(?:d[89a-f]|0000)/i;

/** @param state rows that people may see; @param fences of the sidecar's edits */
export function toTranscript(sidecar: readonly RawRow[], state: readonly RawRow[], fences: Fences): ImportedRow[] {
  const { rows } = reconcile({
    sidecar: sidecar.map(withSoundId),
    state: state.map(withSoundId),
    fences,
    liveRunId: null,
  });
  const seen = new Set<string>();
  const named = rows.map(({ row, source, twin }) => {
    const other = twin === null ? null : source === 'sidecar' ? state[twin]! : sidecar[twin]!;
    const id = idOf(row) ?? (other && soundId(other));
    // Two rows of one id are two rows: the second one gets a name of its own.
    if (id === null || seen.has(id)) return withoutId(row);
    seen.add(id);
    return row.id === id ? row : { ...row, id };
  });
  const ids = nameRows(named, hash);
  return rows.map(({ source, twin }, at) => {
    const row = { ...named[at]!, id: ids[at]! };
    const inState = source === 'state' ? row : twin === null ? null : state[twin]!;
    return toImported(row, source === 'sidecar', inState);
  });
}

/** An id that a row can keep: text of a sane length, and ours only of a row that is as we write rows. */
function soundId(row: RawRow): string | null {
  const id = idOf(row);
  if (id === null || id.length > 200) return null;
  if (!isOurId(id)) return id;
  return typeof row.content === 'string' && typeof row.timestamp === 'number' ? id : null;
}

const withSoundId = (row: RawRow): RawRow => (idOf(row) !== null && soundId(row) === null ? withoutId(row) : row);

function withoutId(row: RawRow): RawRow {
  const { id: _id, message_id: _other, ...rest } = row;
  return rest;
}

function toImported(row: RawRow & { id: string }, isOfSidecar: boolean, inState: RawRow | null): ImportedRow {
  const message = shown(row);
  const imported: ImportedRow = { message, shape: shapeOf(message) };
  const content = inState && Array.isArray(inState.content) ? inState.content : row.content;
  if (Array.isArray(content)) imported.parts = content;
  if (isOfSidecar) {
    if (!isCovered(row, message)) imported.stored = JSON.stringify(isPlain(row) ? { ...row, _imported: true } : row);
  } else {
    const provider = providerFieldsOf(row);
    if (provider) imported.provider = provider;
  }
  return imported;
}

/** What people may see of a row. */
function shown(row: RawRow & { id: string }): Message {
  const message = toDisplay(row, row.id);
  return MALFORMED.test(JSON.stringify(message)) ? wellFormedJson(message) : message;
}

/**
 * Whether what is shown says all that the row says. What does not is kept as it stands, under a private field where it
 * has none: by that a reader knows that there is more to the row than people may see.
 */
function isCovered(row: RawRow, message: Message): boolean {
  const fields = message as unknown as Record<string, unknown>;
  for (const [name, value] of Object.entries(row)) {
    const same = fields[name] === value;
    if (!same && (typeof value !== 'object' || JSON.stringify(fields[name]) !== JSON.stringify(value))) return false;
  }
  return true;
}

/** What a row of a state.db has for its provider and its program alone. */
const PROVIDER_FIELDS = [
  'api_content',
  'reasoning_content',
  'reasoning_details',
  'codex_reasoning_items',
  'codex_message_items',
  'finish_reason',
  'platform_message_id',
  'display_metadata',
];

function providerFieldsOf(row: RawRow): Record<string, unknown> | null {
  const fields = PROVIDER_FIELDS.filter((name) => fieldOf(row, name) != null).map((name) => [name, fieldOf(row, name)]);
  return fields.length > 0 ? Object.fromEntries(fields) : null;
}

function shapeOf({ role, content, tool_calls, tool_call_id, name }: Message): string {
  return JSON.stringify([role, content, tool_calls ?? null, tool_call_id ?? null, name ?? null]);
}

/** A digest of the first rows of a transcript, by what they say. */
export function digestOf(rows: readonly { shape: string }[], count = rows.length): string {
  const digest = createHash('sha256');
  for (let at = 0; at < count; at += 1) digest.update(`${rows[at]!.shape}\n`);
  return digest.digest('hex');
}

/**
 * The rows under the ids that the first of them have here already: a program may have given them others since. The rest
 * get ids that are free.
 */
export function withIds(rows: readonly ImportedRow[], ids: readonly string[]): ImportedRow[] {
  const taken = new Set(ids);
  return rows.map((row, at) => {
    const { id } = row.message;
    const wanted = ids[at] ?? freeId(id, taken);
    taken.add(wanted);
    return wanted === id ? row : withId(row, wanted);
  });
}

function freeId(id: string, taken: ReadonlySet<string>): string {
  let free = id;
  for (let n = 2; taken.has(free); n += 1) free = `${id}.${n}`;
  return free;
}

/** A row under another id. */
export function withId(row: ImportedRow, id: string): ImportedRow {
  const renamed = { ...row, message: { ...row.message, id } };
  return row.stored === undefined ? renamed : { ...renamed, stored: JSON.stringify({ ...JSON.parse(row.stored), id }) };
}
