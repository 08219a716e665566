/**
 * Another program's state.db (Hermes, `<HERMES_HOME>/state.db`): its sessions, the rows of one, and a search over all.
 * Everything is read in short steps; a table or column that this build has not is read as nothing.
 */
import type { RawRow } from '../../server/core/reconcile/row.ts';
import type { StateSummary } from '../files/foreign/summary.ts';
import { createForeignConnection, type ForeignConnectionOptions } from './connection.ts';
import { type RowMark, readRows, rowMark } from './message-rows.ts';
import { type ForeignHit, searchForeign } from './search.ts';
import { readSummaries, readSummary } from './session-rows.ts';

export type { StateSummary } from '../files/foreign/summary.ts';
export type { RowMark } from './message-rows.ts';
export type { ForeignHit } from './search.ts';

export interface ForeignStateDb {
  /** Another text whenever anybody changed the database; null when there is none. @throws StorageTrouble */
  version(): Promise<string | null>;
  /** All sessions whose ids are ids, hidden ones included, in no order. @throws StorageTrouble */
  summaries(): Promise<StateSummary[]>;
  /** One of them; null when it is not there. @throws StorageTrouble */
  summary(sessionId: string): Promise<StateSummary | null>;
  /** What tells one state of a session's rows from the next, without reading them. @throws StorageTrouble */
  mark(sessionId: string): Promise<RowMark>;
  /**
   * The rows of a session that people may see, in the order of the conversation, a few hundred at a time: live ones and
   * those that a compaction archived, never those that were rewound or are scaffolding. Their own ids are nowhere;
   * `_state_db_row_id` is their row number. @throws StorageTrouble
   */
  rows(sessionId: string): AsyncGenerator<RawRow[]>;
  /** Rows that say something, newest first: to rank a common word is to look at all of its rows. @throws StorageTrouble */
  search(q: string, limit: number): Promise<ForeignHit[]>;
  close(): Promise<void>;
}

/** Opens nothing yet: the database may come and go. */
export function openForeignStateDb(options: ForeignConnectionOptions): ForeignStateDb {
  const connection = createForeignConnection(options);
  return {
    version: () => connection.version(),
    summaries: () => readSummaries(connection),
    summary: (sessionId) => readSummary(connection, sessionId),
    mark: (sessionId) => rowMark(connection, sessionId),
    rows: (sessionId) => readRows(connection, sessionId),
    search: (q, limit) => searchForeign(connection, q, limit),
    close: () => connection.close(),
  };
}
