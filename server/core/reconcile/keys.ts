/**
 * By what two rows are compared (RC4): a row is read once, and everything that matching asks of it is kept beside it.
 *
 * Three keys, from strict to loose: the same text at the same instant, in the same second, and the same text alone.
 * White space is collapsed; the workspace tag counts only where an agent writes it, in front of a prompt of the state DB.
 */
import {
  callsTools,
  collapsed,
  contentText,
  fieldOf,
  idOf,
  isBadStamp,
  isErrorRow,
  isImagePart,
  isOurId,
  type RawRow,
  secondsOf,
  withoutWorkspaceTag,
} from './row.ts';

export interface Keyed {
  readonly row: RawRow;
  readonly index: number;
  readonly role: string;
  readonly id: string | null;
  /** Whether the id is one of ours: never lost, and never taken for another row because of its text. */
  readonly ours: boolean;
  readonly rowId: string | null;
  /** Collapsed, without the workspace tag. */
  readonly text: string;
  /** Number of its role and tool calls. */
  readonly shape: number;
  /** Number of its shape and text: what a person would call the same. */
  readonly visible: number;
  /** Number of its role, its text and the tool that answered. */
  readonly content: number;
  /** Epoch seconds; null when unknown. */
  readonly stamp: number | null;
  /** A stamp that is no number: such a row is not matched by its text alone. */
  readonly bad: boolean;
  /** The stamp as it can be compared: also one that is no number. Null without one. */
  readonly moment: number | string | null;
  /** Number of the tool that answered and of its call. */
  readonly tool: number;
  readonly images: boolean;
  readonly api: string;
  /** Says that something failed or was interrupted; no part of the conversation. */
  readonly notice: boolean;
}

const ROW_ID_FIELDS = ['_state_db_row_id', '_row_id', '_db_row_id', 'state_db_row_id'];

/** Every name under which programs keep the number of a row of the state DB. */
export function rowIdsOf(row: RawRow): unknown[] {
  return ROW_ID_FIELDS.map((name) => fieldOf(row, name)).filter((value) => value !== undefined && value !== null);
}

/** A row number as text; null for what is none. */
export function rowNumber(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? String(value) : null;
  return typeof value === 'string' && /^[1-9]\d*$/.test(value) ? value : null;
}

/** The one row number of a row; null when it has none, a malformed one, or two that contradict each other. */
function rowIdOf(row: RawRow): string | null {
  let only: string | null = null;
  for (const value of rowIdsOf(row)) {
    const number = rowNumber(value);
    if (number === null || (only !== null && only !== number)) return null;
    only = number;
  }
  return only;
}

/** JSON with sorted keys, so that two programs write equal values alike. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join(',')}}`;
}

const word = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The transcript writes an image as `[image]`; the agent, where it stores text only, as `[screenshot]`. */
const comparable = (text: string): string => {
  const said = collapsed(text);
  return said.includes('[image]') ? said.replaceAll('[image]', '[screenshot]') : said;
};

/** Reads rows; equal texts of all rows that one reader reads have equal numbers. */
export interface RowReader {
  read(rows: readonly RawRow[], store: 'sidecar' | 'state'): Keyed[];
}

/** Two numbers below this make one without a collision. */
const RADIX = 2 ** 26;

export function createRowReader(): RowReader {
  const numbers = new Map<string, number>([['', 0]]);
  const numberOf = (text: string): number => {
    const known = numbers.get(text);
    if (known !== undefined) return known;
    numbers.set(text, numbers.size);
    return numbers.size - 1;
  };

  const readRow = (row: RawRow, index: number, store: 'sidecar' | 'state'): Keyed => {
    const { role } = row;
    const id = idOf(row);
    const said = contentText(row.content);
    const isTagged = store === 'state' && role === 'user' && id === null;
    const text = comparable(isTagged ? withoutWorkspaceTag(said) : said);
    const images = Array.isArray(row.content) && row.content.some(isImagePart);
    const calls = callsTools(row) ? canonical(row.tool_calls) : '';
    const shape = numberOf(images || calls !== '' ? `${role}\0${images}\0${calls}` : role);
    const words = numberOf(text);
    const name = word(row.name) || word(row.tool_name);
    const callId = word(row.tool_call_id);
    const tool = numberOf(name === '' && callId === '' ? '' : `${callId}\0${name}`);
    const stamp = secondsOf(row.timestamp) || null; // 0 is how the transcript writes a time that nobody knows.
    const bad = isBadStamp(row.timestamp);
    return {
      row,
      index,
      role,
      id,
      ours: isOurId(id),
      rowId: rowIdOf(row),
      text,
      shape,
      visible: shape * RADIX + words,
      content: tool === 0 ? numberOf(role) * RADIX + words : numberOf(`${role}\0\0${tool}`) * RADIX + words,
      stamp,
      bad,
      moment: bad ? String(row.timestamp) : stamp,
      tool,
      images,
      api: word(row.api_content),
      notice: isErrorRow(row),
    };
  };

  return { read: (rows, store) => rows.map((row, index) => readRow(row, index, store)) };
}

/** The same text at the same instant; null without a stamp to be exact about. */
export const exactKey = ({ visible, tool, moment }: Keyed): string | null =>
  moment === null ? null : `${visible}:${tool}:${moment}`;

/** The same text in the same second; null without a time. */
export const secondKey = ({ visible, tool, stamp }: Keyed): string | null =>
  stamp === null ? null : `${visible}:${tool}:${Math.floor(stamp)}`;

/**
 * Under which keys a row is known to have been said in its second: by its provider's bytes, and by any.
 * Rows with different bytes are different rows; a row without bytes is a copy of each.
 */
export function secondKeys(row: Keyed): string[] {
  const second = secondKey(row);
  return second === null ? [] : [`${second}\0${row.api}`, `${second}\0any`];
}

/** Whether one of the rows under `known` keys said the same in the same second. */
export function isSaid(known: ReadonlySet<string>, row: Keyed): boolean {
  const second = secondKey(row);
  if (second === null) return false;
  return row.api === '' ? known.has(`${second}\0any`) : known.has(`${second}\0${row.api}`) || known.has(`${second}\0`);
}

/** Whether two rows may be the same at all: neither their ids nor the bytes that a provider was sent contradict it. */
export const compatible = (a: Keyed, b: Keyed): boolean =>
  (a.id === null || b.id === null || a.id === b.id) && (a.api === '' || b.api === '' || a.api === b.api);
