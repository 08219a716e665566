/**
 * What another program's database has: its builds add columns over time and repair them, so that a reader asks for none
 * that it has not seen. (`PRAGMA table_info`; the schema is Hermes' state.db.)
 */
import type Database from 'better-sqlite3';

export interface Columns {
  sessions: ReadonlySet<string>;
  messages: ReadonlySet<string>;
  /** Whether the messages of one session can be found without looking at all of them. */
  messagesBySession: boolean;
  /** Whether there is a full-text index over the messages. */
  fullText: boolean;
  /** Whether there is `state_meta`. */
  meta: boolean;
}

const namesOf = (sqlite: Database.Database, table: string): Set<string> =>
  new Set((sqlite.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name));

export function probeColumns(sqlite: Database.Database): Columns {
  const indexes = sqlite.prepare('SELECT name FROM pragma_index_list(?)').pluck().all('messages') as string[];
  const leading = sqlite.prepare('SELECT name FROM pragma_index_info(?) WHERE seqno = 0').pluck();
  return {
    sessions: namesOf(sqlite, 'sessions'),
    messages: namesOf(sqlite, 'messages'),
    messagesBySession: indexes.some((name) => leading.get(name) === 'session_id'),
    fullText: namesOf(sqlite, 'messages_fts').has('content'),
    meta: namesOf(sqlite, 'state_meta').has('key'),
  };
}

/** A column as it is, or what stands for one that this build has not. */
export const columnOr = (columns: ReadonlySet<string>, name: string, otherwise = 'NULL'): string =>
  columns.has(name) ? `"${name}"` : `${otherwise} AS "${name}"`;
