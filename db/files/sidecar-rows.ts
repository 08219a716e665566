/**
 * Rows of a transcript as bytes. All rows of one transcript stand in one buffer, as they stand in its file: the whole of it is
 * sent, saved and given from one thread to another without being put together again. A row is cut from there when
 * somebody asks for its text.
 */
import { isPrivateField } from '../../server/core/reconcile/private-fields.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { isWellTyped } from '../../server/core/reconcile/well-typed.ts';
import type { Message } from '../../server/core/terms.ts';

/** A row of a transcript, as text: what people see of it, and what the file has where that is another. */
export interface SidecarRow {
  id: string;
  runId: string | null;
  role: string;
  /** What people may see of the row, as JSON text on one line. Cut anew each time it is asked for. */
  readonly json: string;
  /** The row as the file keeps it, with what another program or a recovery put there; absent when it is `json`. */
  readonly stored?: string;
}

/** A row as it was found: it may have no id, or be more than people may see. */
export interface FoundRow extends Omit<SidecarRow, 'id'> {
  id: string | null;
  /** Whether the row is as we write rows: everything in it is for people to see. */
  plain: boolean;
}

/** A transcript row as the sidecar keeps it. */
export function toSidecarRow(message: Message): SidecarRow {
  return { id: message.id, runId: message.run_id ?? null, role: message.role, json: JSON.stringify(message) };
}

/** Whether a row is as we write rows. */
export function isPlain(row: RawRow): boolean {
  if (typeof row.id !== 'string' || !isWellTyped(row)) return false;
  for (const key in row) if (isPrivateField(key)) return false;
  return true;
}

/** The id that a file has for a row; null when it has none. */
export const foundId = (row: RawRow): string | null => (typeof row.id === 'string' && row.id !== '' ? row.id : null);

/** What stands between two rows in a file, and wherever all of them are one text. */
export const SEPARATOR = ',\n    ';

/** Texts one behind the other. What stands is never changed: whoever holds a place of it may go on reading there. */
export class RowText {
  /** Rows know this object and not its buffer, which is given up for a longer one when it is full. */
  bytes: Buffer;
  /** How many bytes are used. */
  end: number;

  constructor(bytes: Buffer, end: number) {
    this.bytes = bytes;
    this.end = end;
  }

  /** @param text JSON text, or a place in another one @returns where it begins */
  add(text: string | Place, separator = SEPARATOR): number {
    const size = typeof text === 'string' ? Buffer.byteLength(text) : text.end - text.start;
    this.#reserve(this.end + size + separator.length);
    if (this.end > 0) this.end += this.bytes.write(separator, this.end, 'latin1');
    const start = this.end;
    if (typeof text === 'string') this.end += this.bytes.write(text, start);
    else this.end += text.text.bytes.copy(this.bytes, start, text.start, text.end);
    return start;
  }

  #reserve(size: number): void {
    if (size <= this.bytes.length) return;
    const longer = Buffer.allocUnsafeSlow(Math.ceil(size * 1.25) + 4096);
    this.bytes.copy(longer, 0, 0, this.end);
    this.bytes = longer;
  }
}

/** An empty text with room for so many bytes; its memory is its own, so that another thread can be given it. */
export const createRowText = (size: number): RowText => new RowText(Buffer.allocUnsafeSlow(size), 0);

export interface Place {
  text: RowText;
  start: number;
  end: number;
}

/** A row that is cut from a text. */
class PackedRow {
  readonly id: string | null;
  readonly runId: string | null;
  readonly role: string;
  readonly plain: boolean;
  readonly text: RowText;
  readonly start: number;
  readonly end: number;
  readonly kept: Place | null;

  constructor(row: Pick<FoundRow, 'id' | 'runId' | 'role'>, plain: boolean, place: Place, kept: Place | null) {
    this.id = row.id;
    this.runId = row.runId;
    this.role = row.role;
    this.plain = plain;
    this.text = place.text;
    this.start = place.start;
    this.end = place.end;
    this.kept = kept;
  }

  get json(): string {
    return this.text.bytes.toString('utf8', this.start, this.end);
  }

  get stored(): string | undefined {
    return this.kept?.text.bytes.toString('utf8', this.kept.start, this.kept.end);
  }
}

/** Rows in the form in which one thread gives them to another. */
export interface PackedRows {
  /** The texts of all rows with separators between them; where each begins, and where another one would. */
  bytes: Uint8Array;
  starts: Uint32Array;
  /** The ids as JSON: one long text goes from thread to thread in a fraction of the time of many short ones. */
  ids: string;
  runs: (string | null)[];
  roles: string[];
  /** For each row the place of its run in `runs`, of its role in `roles`, and 1 when it is plain. */
  runOf: Uint32Array;
  roleOf: Uint32Array;
  plain: Uint8Array;
  /** What the file has for rows of which people see something else, one text behind the other; an empty one for others. */
  stored: Uint8Array;
  storedStarts: Uint32Array;
}

export interface Packer {
  /** @param start where its text begins */
  add(row: Pick<FoundRow, 'id' | 'runId' | 'role' | 'plain'>, start: number, stored?: string): void;
  /** @param bytes the texts of all rows */
  done(bytes: Uint8Array): PackedRows;
}

/** Collects what is known of rows beside their texts. */
export function createPacker(): Packer {
  const kept = createRowText(0);
  const ids: (string | null)[] = [];
  const [runs, roles] = [createWords<string | null>(), createWords<string>()];
  const [starts, storedStarts, plain]: [number[], number[], number[]] = [[], [], []];
  return {
    add(row, start, stored) {
      ids.push(row.id);
      runs.add(row.runId);
      roles.add(row.role);
      plain.push(row.plain ? 1 : 0);
      starts.push(start);
      storedStarts.push(kept.end);
      if (stored !== undefined) kept.add(stored, '');
    },
    done: (bytes) => ({
      bytes,
      starts: new Uint32Array(starts.concat(bytes.length + SEPARATOR.length)),
      ids: JSON.stringify(ids),
      runs: runs.words,
      roles: roles.words,
      runOf: new Uint32Array(runs.places),
      roleOf: new Uint32Array(roles.places),
      plain: new Uint8Array(plain),
      stored: kept.bytes.subarray(0, kept.end),
      storedStarts: new Uint32Array(storedStarts.concat(kept.end)),
    }),
  };
}

/** Words that come again and again: each is kept once, and a place for each time. */
function createWords<Word>() {
  const words: Word[] = [];
  const places: number[] = [];
  const placeOf = new Map<Word, number>();
  let last = -1;
  return {
    words,
    places,
    add(word: Word): void {
      // Mostly it is the word of the row before.
      if (last < 0 || words[last] !== word) {
        last = placeOf.get(word) ?? words.push(word) - 1;
        placeOf.set(word, last);
      }
      places.push(last);
    },
  };
}

/** What can be handed over instead of copied. */
export const buffersOf = (rows: PackedRows): ArrayBuffer[] =>
  [rows.bytes, rows.starts, rows.runOf, rows.roleOf, rows.plain, rows.stored, rows.storedStarts].map(
    (view) => view.buffer as ArrayBuffer,
  );

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** The rows themselves, cut from where they stand. */
export function unpack(packed: PackedRows): FoundRow[] {
  const { starts, storedStarts, runs, roles, runOf, roleOf, plain } = packed;
  const ids = JSON.parse(packed.ids) as (string | null)[];
  const text = new RowText(asBuffer(packed.bytes), packed.bytes.length);
  const stored = new RowText(asBuffer(packed.stored), packed.stored.length);
  return ids.map((id, at) => {
    const [from, to] = [storedStarts[at]!, storedStarts[at + 1]!];
    const kept = from === to ? null : { text: stored, start: from, end: to };
    const row = { id, runId: runs[runOf[at]!]!, role: roles[roleOf[at]!]! };
    const end = starts[at + 1]! - SEPARATOR.length;
    return new PackedRow(row, plain[at] === 1, { text, start: starts[at]!, end }, kept);
  });
}

/** A list of rows that stand in one text, one behind the other from its beginning. */
export interface RowList {
  readonly rows: readonly SidecarRow[];
  readonly text: RowText;
}

/** The rows as one list: as they stand when they are one already, otherwise put together. */
export function listOf(rows: readonly SidecarRow[]): RowList {
  const text = rows[0] instanceof PackedRow ? rows[0].text : null;
  let next = 0;
  for (const row of rows) {
    if (!(row instanceof PackedRow) || row.text !== text || row.start !== next) return together(rows);
    next = row.end + SEPARATOR.length;
  }
  return text ? { rows, text } : together(rows);
}

const together = (rows: readonly SidecarRow[]): RowList =>
  appended({ rows: [], text: createRowText(rows.length * 512) }, rows);

/**
 * The list with more rows behind it. What is there is not copied, except when its buffer is full; so it is to be called
 * for rows that stay.
 */
export function appended(list: RowList, added: readonly SidecarRow[]): RowList {
  if (added.length === 0) return list;
  // Somebody went on from here already, or still reads what once followed: those bytes stay as they are.
  if (endOf(list.rows) !== list.text.end) return together([...list.rows, ...added]);
  const { text } = list;
  const more = added.map((row) => {
    const start = text.add(row instanceof PackedRow ? row : row.json);
    return new PackedRow(row, row.stored === undefined, { text, start, end: text.end }, keptOf(row)) as SidecarRow;
  });
  return { rows: [...list.rows, ...more], text };
}

/** Where the stored form of a row stands; one that comes as a text gets a place of its own. */
function keptOf(row: SidecarRow): Place | null {
  if (row instanceof PackedRow) return row.kept;
  if (row.stored === undefined) return null;
  const bytes = Buffer.from(row.stored);
  return { text: new RowText(bytes, bytes.length), start: 0, end: bytes.length };
}

const endOf = (rows: readonly SidecarRow[]): number => (rows.at(-1) as PackedRow | undefined)?.end ?? 0;

/** The first rows of a list as JSON texts with commas between them; nothing is copied. */
export const bytesOf = ({ rows, text }: RowList, count = rows.length): Buffer =>
  text.bytes.subarray(0, count === 0 ? 0 : (rows[count - 1] as PackedRow).end);

/** What a row takes beside its text: the object and its id. */
const ROW_BYTES = 200;

/** What a list takes of the memory, in bytes. */
export function sizeOf({ rows, text }: RowList): number {
  let size = text.bytes.length + rows.length * ROW_BYTES;
  for (const { kept } of rows as readonly PackedRow[]) if (kept) size += kept.end - kept.start;
  return size;
}

/** Rows as the file has them, with separators between them; those that stand one behind the other already as one piece. */
export function* filePieces(rows: readonly SidecarRow[]): Generator<string | Buffer> {
  let run: Place | null = null;
  for (const row of rows) {
    const place: Place | null = row instanceof PackedRow ? (row.kept ?? row) : null;
    if (run && place?.text === run.text && place.start === run.end + SEPARATOR.length) {
      run.end = place.end;
      continue;
    }
    if (run) yield pieceOf(run);
    if (row !== rows[0]) yield SEPARATOR;
    run = place && { text: place.text, start: place.start, end: place.end };
    if (!place) yield row.stored ?? row.json;
  }
  if (run) yield pieceOf(run);
}

const pieceOf = ({ text, start, end }: Place): Buffer => text.bytes.subarray(start, end);

/** A row that is nothing but its texts: of such a one copies can be made. */
export function plainRow({ id, runId, role, json, stored }: SidecarRow): SidecarRow {
  return stored === undefined ? { id, runId, role, json } : { id, runId, role, json, stored };
}
