/**
 * Rows of `messages` of another program's state.db, as reconciling reads them. Which are shown: live rows and those that
 * a compaction archived, for these are still what the person and the agent said; never those that were rewound
 * away, scaffolding, or the summary that stands for rows which are there themselves.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { columnText, contentOf, parsedOr } from '../structured-content.ts';
import { columnOr } from './columns.ts';
import type { ForeignConnection, OpenForeign } from './connection.ts';

/** How many rows a session has and the number of the newest: changes with each row that is appended. */
export interface RowMark {
  count: number;
  last: number;
}

type Values = Record<string, unknown>;

const OPTIONAL = [
  'tool_call_id',
  'tool_calls',
  'tool_name',
  'timestamp',
  'finish_reason',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'codex_reasoning_items',
  'codex_message_items',
  'platform_message_id',
  'api_content',
  'display_kind',
  'display_metadata',
];
/** Of these the text is JSON. */
const JSON_COLUMNS = [
  'tool_calls',
  'reasoning_details',
  'codex_reasoning_items',
  'codex_message_items',
  'display_metadata',
];

/** Rows that one step takes. */
const STEP = 250;

/** Whether this build has what a row of a transcript needs. */
const isReadable = ({ columns: { messages } }: OpenForeign): boolean =>
  ['session_id', 'role', 'content'].every((name) => messages.has(name));

/** Which rows people may see. */
export function shownOf(messages: ReadonlySet<string>, table = ''): string {
  const at = (name: string) => `${table}"${name}"`;
  const live = messages.has('active')
    ? `(coalesce(${at('active')}, 1) <> 0${messages.has('compacted') ? ` OR ${at('compacted')} = 1` : ''})`
    : '1';
  const shown = messages.has('display_kind') ? ` AND coalesce(${at('display_kind')}, '') <> 'hidden'` : '';
  return `${live}${shown}`;
}

export async function rowMark(connection: ForeignConnection, sessionId: string): Promise<RowMark> {
  const found = await connection.use((db) =>
    isReadable(db)
      ? db.prepare('SELECT count(*) AS count, max(rowid) AS last FROM messages WHERE session_id = ?').get(sessionId)
      : null,
  );
  const { count, last } = (found ?? { count: 0, last: 0 }) as RowMark;
  return { count, last: last ?? 0 };
}

/** Rows whose places one step takes. */
const PLACES = 5_000;

/** Where the shown rows of a session stand, in the order in which they are to be shown. */
async function placesOf(connection: ForeignConnection, sessionId: string): Promise<number[]> {
  const places: Values[] = [];
  for (let after = Number.MIN_SAFE_INTEGER, more = true; more; ) {
    const from = after;
    const step = await connection.use((db) => {
      if (!isReadable(db)) return [];
      const { messages } = db.columns;
      const identity = messages.has('display_identity') ? 'hex(display_identity)' : "''";
      const fields = [
        `nullif(${identity}, '') AS identity`,
        columnOr(messages, 'display_order'),
        columnOr(messages, 'active', '1'),
        columnOr(messages, '_compressed_summary', '0'),
      ];
      const text = `SELECT rowid AS row, ${fields.join(', ')} FROM messages
        WHERE session_id = ? AND rowid > ? AND ${shownOf(messages)} ORDER BY rowid LIMIT ${PLACES}`;
      return db.prepare(text).all(sessionId, from) as Values[];
    });
    for (const place of step ?? []) places.push(place);
    more = step?.length === PLACES;
    after = (places.at(-1)?.row as number | undefined) ?? after;
    if (more) await nextTurn();
  }
  return inOrder(places);
}

function inOrder(rows: readonly Values[]): number[] {
  const archived = rows.some((row) => row.active === 0);
  // Copies of one message have one identity: the live one is shown, in the place of the first.
  const first = new Map<unknown, Values>();
  const shown: Values[] = [];
  for (const row of rows) {
    if (archived && row._compressed_summary === 1) continue;
    const before = row.identity === null ? undefined : first.get(row.identity);
    if (before) {
      if (before.active === 0 && row.active !== 0) before.shown = row.row;
      continue;
    }
    first.set(row.identity, row);
    shown.push(row);
  }
  if (shown.every((row) => typeof row.display_order === 'number')) {
    shown.sort(
      (a, b) => (a.display_order as number) - (b.display_order as number) || (a.row as number) - (b.row as number),
    );
  }
  return shown.map((row) => (row.shown ?? row.row) as number);
}

export async function* readRows(connection: ForeignConnection, sessionId: string): AsyncGenerator<RawRow[]> {
  const places = await placesOf(connection, sessionId);
  for (let from = 0; from < places.length; from += STEP) {
    const step = places.slice(from, from + STEP);
    const rows = await connection.use((db) => {
      const fields = ['role', 'content', ...OPTIONAL.map((name) => columnOr(db.columns.messages, name))];
      const text = `SELECT rowid AS row, ${fields.join(', ')} FROM messages
        WHERE rowid IN (SELECT value FROM json_each(?)) AND session_id = ?`;
      return db.prepare(text).all(JSON.stringify(step), sessionId) as Values[];
    });
    const byRow = new Map((rows ?? []).map((row) => [row.row, row]));
    yield step.flatMap((row) => {
      const values = byRow.get(row);
      return values ? [toRawRow(values)] : [];
    });
    // Streams go on in between.
    await nextTurn();
  }
}

function toRawRow(values: Values): RawRow {
  const row: Record<string, unknown> = {
    _state_db_row_id: values.row,
    role: columnText(values.role),
    content: contentOf(values.content),
  };
  for (const name of OPTIONAL) {
    const value = values[name];
    if (value === null || value === undefined || value === '') continue;
    row[name] = JSON_COLUMNS.includes(name) ? parsedOr(columnText(value)) : value;
  }
  if (row.role === 'tool' && row.tool_name !== undefined) row.name = row.tool_name;
  return row as unknown as RawRow;
}
