/**
 * The text of a sidecar. One JSON object; scalars come before `messages`, each row stands on a line of its own.
 *
 * In a file written by us (or by any writer that indents by two) the bytes newline, two spaces, `"messages": [` can stand
 * nowhere else, because JSON strings hold no raw newline. Such a file is read line by line, and a row's text is its line:
 * nothing is made a text again. Whatever does not fit exactly is parsed as any JSON; both ways say the same of a file.
 */
import { isUtf8 } from 'node:buffer';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import {
  createPacker,
  createRowText,
  filePieces,
  foundId,
  isPlain,
  type PackedRows,
  type Packer,
  type SidecarRow,
} from './sidecar-rows.ts';

/** The scalar fields, in the order of the file. Fields that we do not know are kept. */
export interface SidecarHeader {
  session_id: string;
  active_stream_id: string | null;
  pending_user_message: string | null;
  pending_attachments: string[];
  /** Epoch seconds. */
  pending_started_at: number | null;
  pending_user_source: string | null;
  /** Number of the edit that these rows have seen. */
  edit_number: number;
  /** Id of the last row that it kept; null when it kept none. */
  edit_fence?: string | null;
  message_count: number;
  [other: string]: unknown;
}

/** The fields behind `messages` as a text: they may be as long as the transcript, and are seldom looked at. */
export interface TailText {
  keys: string[];
  /** A JSON object, indented by two. */
  text: string;
}

export interface Sidecar<Row = SidecarRow> {
  header: SidecarHeader;
  rows: readonly Row[];
  /** The fields behind `messages`, `tool_calls` first, as they were found. */
  readonly tail: Record<string, unknown>;
  /** The same as a text, where there is one: a save writes it as it stands. */
  readonly tailText?: TailText;
}

/** A sidecar in the form in which one thread gives it to another. */
export interface ParsedSidecar {
  header: SidecarHeader;
  rows: PackedRows;
  tail: TailText;
  /** What stands among the rows and is no message, in words: it is left out here. Null in a sound file. */
  damage: string | null;
}

const MESSAGES_KEY = '\n  "messages": [';
/** What stands between the header and the rows. */
export const MARK = `,${MESSAGES_KEY}`;
/** What stands before the first row. */
const BEGIN = '\n    ';
const ROW = Buffer.from(`${BEGIN}{`);
const END = '\n  ]';

/**
 * Parses the bytes of a sidecar; a string says why they are none. Something among the rows that is no message costs the
 * others nothing.
 * @param onRaw is given each row's value, in order
 */
export function parseSidecar(
  sessionId: string,
  bytes: Buffer,
  onRaw?: (rows: readonly RawRow[]) => void,
): ParsedSidecar | string {
  try {
    return parseLines(sessionId, bytes, onRaw) ?? parseWhole(sessionId, bytes.toString('utf8'), onRaw);
  } catch (error) {
    // The stack has an end, and a text can be nested deeper.
    if (error instanceof RangeError) return 'it is nested too deeply';
    throw error;
  }
}

/** A text as JSON; undefined when it is none. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object';

/** The text before the transcript as a header; null when that was no top-level field after all. */
export function parseHeader(text: string): SidecarHeader | null {
  return (jsonOf(`${text}}`) as SidecarHeader | undefined) ?? null;
}

/** Adds rows. An id names one row: where it comes again it names none. */
function createAdd(packer: Packer): (row: RawRow, start: number) => void {
  const ids = new Set<string>();
  return (row, start) => {
    const runId = typeof row.run_id === 'string' ? row.run_id : null;
    const id = foundId(row);
    const isNew = id !== null && !ids.has(id);
    if (isNew) ids.add(id);
    packer.add({ id: isNew ? id : null, runId, role: row.role, plain: isNew && isPlain(row) }, start);
  };
}

const isRow = (value: unknown): value is RawRow => isObject(value) && typeof value.role === 'string';

const tailOf = (tail: Record<string, unknown>): TailText => ({
  keys: Object.keys(tail),
  text: JSON.stringify(tail, null, 2),
});

/** Any JSON. */
export function parseWhole(
  sessionId: string,
  text: string,
  onRaw?: (rows: readonly RawRow[]) => void,
): ParsedSidecar | string {
  const value = jsonOf(text.replace(/^\uFEFF/, ''));
  if (value === undefined) return text.trim() === '' ? 'the file is empty' : 'the file is not JSON';
  if (!isObject(value) || Array.isArray(value)) return 'the file is not a JSON object';
  const fields = Object.entries(value);
  const at = fields.findIndex(([key]) => key === 'messages');
  const messages = fields[at]?.[1];
  if (!Array.isArray(messages)) return 'it has no list of messages';
  const header = Object.fromEntries(fields.slice(0, at)) as SidecarHeader;
  if (header.session_id !== sessionId) return `it is of session ${JSON.stringify(header.session_id)}`;
  const packer = createPacker();
  const add = createAdd(packer);
  const rows = createRowText(text.length);
  const sound = messages.filter(isRow);
  for (const row of sound) add(row, rows.add(JSON.stringify(row)));
  onRaw?.(sound);
  const packed = packer.done(rows.bytes.subarray(0, rows.end));
  const bad = messages.findIndex((row) => !isRow(row));
  const damage = bad < 0 ? null : `row ${bad} is not a message`;
  return { header, rows: packed, tail: tailOf(Object.fromEntries(fields.slice(at + 1))), damage };
}

/** A file that has its rows on lines of their own; null when it has not, or is damaged. */
function parseLines(sessionId: string, bytes: Buffer, onRaw?: (rows: readonly RawRow[]) => void): ParsedSidecar | null {
  const mark = bytes.indexOf(MARK);
  // Bytes that are no text are replaced when they are read; a line would hand them on.
  if (mark < 0 || !isUtf8(bytes)) return null;
  const header = parseHeader(bytes.toString('utf8', 0, mark));
  if (header?.session_id !== sessionId || Object.hasOwn(header, 'messages')) return null;
  const first = mark + MARK.length;
  const packer = createPacker();
  const add = createAdd(packer);
  const begin = first + BEGIN.length;
  let end = begin;
  const raws: RawRow[] = [];
  let at = first;
  for (let more = bytes[at] !== BRACKET; more; ) {
    for (let n = 0; n < ROW.length; n += 1) if (bytes[at + n] !== ROW[n]) return null;
    const start = at + ROW.length - 1;
    at = bytes.indexOf(NEWLINE, start);
    if (at < 0) return null;
    more = bytes[at - 1] === COMMA;
    end = more ? at - 1 : at;
    const row = jsonOf(bytes.toString('utf8', start, end));
    if (!isRow(row)) return null;
    add(row, start - begin);
    if (onRaw) raws.push(row);
  }
  if (at > first) {
    if (bytes.toString('latin1', at, at + END.length) !== END) return null;
    at += END.length;
  } else at += 1;
  const tail = tailBehind(bytes.toString('utf8', at));
  if (!tail || Object.keys(tail).some((key) => Object.hasOwn(header, key) || isMoved(key))) return null;
  onRaw?.(raws);
  // A copy in memory of its own, which can be handed over, and without what stands around the rows.
  const lines = createRowText(end - begin);
  lines.bytes.set(bytes.subarray(begin, end));
  return { header, rows: packer.done(lines.bytes), tail: tailOf(tail), damage: null };
}

const [NEWLINE, COMMA, BRACKET] = [10, 44, 93];

/** Whether an object has such a key before its others, or is to have `messages` anew. */
const isMoved = (key: string): boolean => key === 'messages' || /^\d+$/.test(key);

/** The fields behind the rows, from the comma before them or the brace behind on; null when that is no end of a file. */
function tailBehind(text: string): Record<string, unknown> | null {
  const rest = text.replace(/^[ \t\r\n]+/, '');
  const hasFields = rest.startsWith(',');
  const tail = jsonOf(`{${hasFields ? rest.slice(1) : rest}`);
  return isObject(tail) && Object.keys(tail).length > 0 === hasFields ? tail : null;
}

/** Pieces up to this size are put together; longer ones are written as they stand. */
const CHUNK = 65_536;

/** The text of a sidecar, in chunks. Rows that were read or saved before are in them as they stand. */
export function* serialiseSidecar(sidecar: Sidecar): Generator<string | Buffer> {
  const { header, rows } = sidecar;
  yield JSON.stringify({ ...header, message_count: rows.length }, null, 2).slice(0, -2) + MARK;
  if (rows.length > 0) yield BEGIN;
  yield* inChunks(filePieces(rows));
  yield `${rows.length > 0 ? END : ']'}${tailFor(header, sidecar)}\n`;
}

/** The same bytes in fewer pieces. */
function* inChunks(pieces: Iterable<string | Buffer>): Generator<string | Buffer> {
  let chunk = Buffer.allocUnsafe(CHUNK);
  let end = 0;
  for (const piece of pieces) {
    const size = Buffer.byteLength(piece);
    if (end + size > CHUNK) {
      yield chunk.subarray(0, end);
      chunk = Buffer.allocUnsafe(CHUNK);
      end = 0;
    }
    if (size > CHUNK) yield piece;
    else end += typeof piece === 'string' ? chunk.write(piece, end) : piece.copy(chunk, end);
  }
  yield chunk.subarray(0, end);
}

/** The fields behind the rows, from the comma on, and the brace that ends the file. */
function tailFor(header: SidecarHeader, sidecar: Sidecar): string {
  // A file whose fields came in another order may have these before the transcript: no field is said twice.
  const isSaid = (key: string): boolean => key === 'message_count' || Object.hasOwn(header, key);
  const { tailText } = sidecar;
  if (tailText?.keys[0] === 'tool_calls' && !tailText.keys.some(isSaid)) return `,${tailText.text.slice(1)}`;
  const fields = Object.entries({ tool_calls: [], ...sidecar.tail }).filter(([key]) => !isSaid(key));
  return fields.length ? `,${JSON.stringify(Object.fromEntries(fields), null, 2).slice(1)}` : '\n}';
}

/** The fields behind the rows, in either form. */
export type Tail = Pick<Sidecar, 'tail' | 'tailText'>;

/** Fields that are read from their text when somebody asks for them. */
export function lazyTail(tailText: TailText): Tail {
  let tail: Record<string, unknown> | null = null;
  return {
    tailText,
    get tail() {
      tail ??= JSON.parse(tailText.text) as Record<string, unknown>;
      return tail;
    },
  };
}

/** A sidecar of its parts; a tail that nobody has read yet stays unread. */
export function toSidecar<Row>(header: SidecarHeader, rows: readonly Row[], fields: Tail): Sidecar<Row> {
  const { tailText } = fields;
  return {
    header,
    rows,
    ...(tailText ? { tailText } : {}),
    get tail() {
      return fields.tail;
    },
  };
}
