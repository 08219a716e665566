/**
 * Search in another program's state.db: by its own full-text index where that is whole, else by looking at the newest
 * rows in short steps, up to a bound. What no transcript shows is not found.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { toMatch } from '../message-store.ts';
import { storageTroubleKind } from '../storage-trouble.ts';
import { contentOf } from '../structured-content.ts';
import { columnOr } from './columns.ts';
import type { ForeignConnection, OpenForeign } from './connection.ts';
import { shownOf } from './message-rows.ts';
import { snippetOf, wordsOf } from './snippet.ts';

export interface ForeignHit {
  session_id: string;
  /** Row number of the message. */
  row: number;
  role: string;
  snippet: string;
  /** Epoch seconds. */
  timestamp: number;
}

type Values = Record<string, unknown>;

/** Rows that one step of the scan takes, and how many it looks at in all. */
const STEP = 1_000;
const MOST_ROWS = 200_000;

export async function searchForeign(connection: ForeignConnection, q: string, limit: number): Promise<ForeignHit[]> {
  const match = toMatch(q);
  if (match === null || limit < 1) return [];
  const indexed = await byIndex(connection, match, wordsOf(q), limit);
  return indexed ?? byScan(connection, wordsOf(q), limit);
}

const FIELDS = ['session_id', 'role', 'content'];

/** Whether the index says what the rows say: a rebuild that is under way has not seen all of them. */
function isWhole({ columns, prepare }: OpenForeign): boolean {
  if (!columns.fullText) return false;
  if (!columns.meta) return true;
  const open = prepare("SELECT count(*) AS open FROM state_meta WHERE key LIKE 'fts_rebuild_%'").get() as {
    open: number;
  };
  return open.open === 0;
}

/** Null where there is no index that can be used. */
async function byIndex(
  connection: ForeignConnection,
  match: string,
  words: readonly string[],
  limit: number,
): Promise<ForeignHit[] | null> {
  try {
    return await connection.use((db) => {
      const { messages } = db.columns;
      if (!FIELDS.every((name) => messages.has(name)) || !isWhole(db)) return null;
      const rows = db
        .prepare(
          `SELECT m.rowid AS row, m.session_id, m.role, m.content, ${messages.has('timestamp') ? 'm.timestamp' : 'NULL AS timestamp'}
          FROM messages_fts f JOIN messages m ON m.rowid = f.rowid
          WHERE messages_fts MATCH ? AND ${shownOf(messages, 'm.')} ORDER BY f.rowid DESC LIMIT ?`,
        )
        .all(`{content} : ${match}`, limit) as Values[];
      return rows.map((row) => toHit(row, words));
    });
  } catch (error) {
    // An index of another make, or a damaged one: the rows are there all the same.
    if (storageTroubleKind(error) === 'busy' || !isSqlite(error)) throw error;
    return null;
  }
}

const isSqlite = (error: unknown): boolean => {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return (typeof code === 'string' && code.startsWith('SQLITE_')) || storageTroubleKind(error) !== null;
};

async function byScan(connection: ForeignConnection, words: readonly string[], limit: number): Promise<ForeignHit[]> {
  const hits: ForeignHit[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  for (let seen = 0; seen < MOST_ROWS && hits.length < limit; seen += STEP) {
    const from = before;
    const found = await connection.use((db) => {
      const { messages } = db.columns;
      if (!FIELDS.every((name) => messages.has(name))) return null;
      const rows = db
        .prepare(
          `SELECT rowid AS row, session_id, role, content, ${columnOr(messages, 'timestamp')},
            ${shownOf(messages)} AS shown FROM messages WHERE rowid < ? ORDER BY rowid DESC LIMIT ${STEP}`,
        )
        .all(from) as Values[];
      return {
        next: rows.length < STEP ? null : (rows.at(-1)!.row as number),
        hits: rows.filter((row) => row.shown === 1 && isSaid(row, words)).map((row) => toHit(row, words)),
      };
    });
    if (!found) break;
    hits.push(...found.hits);
    if (found.next === null) break;
    before = found.next;
    await nextTurn();
  }
  return hits.slice(0, limit);
}

/** What of a row is looked at. */
const MOST_TEXT = 100_000;

const textIn = (row: Values): string => {
  const content = contentOf(row.content);
  return (typeof content === 'string' ? content : JSON.stringify(content)).slice(0, MOST_TEXT);
};

function isSaid(row: Values, words: readonly string[]): boolean {
  const text = textIn(row).toLowerCase();
  return words.every((word) => text.includes(word));
}

const toHit = (row: Values, words: readonly string[]): ForeignHit => ({
  session_id: String(row.session_id),
  row: row.row as number,
  role: String(row.role),
  snippet: snippetOf(textIn(row), words),
  timestamp: typeof row.timestamp === 'number' ? row.timestamp : 0,
});
