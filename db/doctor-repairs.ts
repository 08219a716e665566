/**
 * Repairs of a state DB, by a connection that nobody shares: it is taken in exclusive mode, which the system refuses while
 * any other connection is open, also that of a process whose number nobody here can see (DR4). Each repair looks again
 * inside its own transaction, so that it changes only what is wrong when it is made.
 */
import Database from 'better-sqlite3';
import { type Described, describeSessions, remakeSessions } from './doctor-salvage.ts';

export interface StateRepairs {
  /** Builds the full-text index anew. */
  rebuildSearch(): void;
  /** Deletes the rows of messages and prompts whose session was deleted, and makes the other sessions anew. @returns their ids */
  adoptOrphans(): string[];
  /** Gives sessions that were made anew what their files tell. */
  describe(sessions: readonly Described[]): void;
  /** Writes what stands in the WAL into the file and does without one, so that another file can take its place. */
  endWal(): void;
  /** Clears the project of sessions whose project is not there. */
  clearLostProjects(): number;
  countSessions(): void;
  /** Sets the number of shown messages; the revision moves, since one can see it. */
  setMessageCount(sessionId: string, count: number): void;
  clearFlags(sessionId: string): void;
  deleteLease(sessionId: string, leaseId: string): void;
  filesRemoved(sessionId: string): void;
  /** Builds indexes anew where that alone makes the database sound; else nothing is changed. @returns whether it did */
  rebuildIndexes(): boolean;
  /** Reads rows for a salvage. */
  source: Database.Database;
  close(): void;
}

export type RepairOpening =
  | { kind: 'open'; repairs: StateRepairs }
  | { kind: 'busy' }
  | { kind: 'damaged'; code: string };

/** @param file absolute path of a state DB whose copy is kept */
export function openForRepair(file: string): RepairOpening {
  let sqlite: Database.Database | null = null;
  try {
    sqlite = new Database(file, { fileMustExist: true, timeout: 0 });
    sqlite.pragma('locking_mode = EXCLUSIVE');
    // The first statement takes the lock and, unless it changes something, writes nothing.
    sqlite.exec('BEGIN IMMEDIATE; ROLLBACK');
    sqlite.pragma('synchronous = FULL');
    return { kind: 'open', repairs: repairsOf(sqlite) };
  } catch (error) {
    sqlite?.close();
    if (!(error instanceof Database.SqliteError)) throw error;
    if (/^SQLITE_(BUSY|LOCKED)/.test(error.code)) return { kind: 'busy' };
    return { kind: 'damaged', code: error.code };
  }
}

function repairsOf(sqlite: Database.Database): StateRepairs {
  const run = (text: string, ...values: unknown[]): number => sqlite.prepare(text).run(...values).changes;
  const transact = <T>(work: () => T): T => sqlite.transaction(work).immediate();
  return {
    source: sqlite,

    rebuildSearch: () => transact(() => void run("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')")),

    adoptOrphans: () => transact(() => remakeSessions(sqlite)),

    describe: (sessions) => describeSessions(sqlite, sessions),

    endWal() {
      try {
        sqlite.pragma('journal_mode = DELETE');
      } catch (error) {
        // Too damaged even for that: the copies have it, and the new file does not need it.
        if (!(error instanceof Database.SqliteError)) throw error;
      }
    },

    clearLostProjects: () =>
      transact(() =>
        run(
          `UPDATE sessions SET project_id = NULL, runtime_revision = runtime_revision + 1
            WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT project_id FROM projects)`,
        ),
      ),

    countSessions: () =>
      transact(() => {
        run('DELETE FROM session_counts');
        run(`INSERT INTO session_counts (archived, sessions)
          SELECT flag, (SELECT count(*) FROM sessions WHERE archived = flag AND hidden = 0)
          FROM (SELECT 0 AS flag UNION ALL SELECT 1)`);
      }),

    setMessageCount: (sessionId, count) =>
      transact(
        () =>
          void run(
            'UPDATE sessions SET message_count = ?, runtime_revision = runtime_revision + 1 WHERE id = ?',
            count,
            sessionId,
          ),
      ),

    clearFlags: (sessionId) =>
      transact(
        () =>
          void run(
            `UPDATE sessions SET flags = '[]', runtime_revision = runtime_revision + 1
              WHERE id = ? AND NOT json_valid(flags)`,
            sessionId,
          ),
      ),

    deleteLease: (sessionId, leaseId) =>
      transact(() => void run('DELETE FROM active_sessions WHERE session_id = ? AND lease_id = ?', sessionId, leaseId)),

    filesRemoved: (sessionId) =>
      transact(() => void run('UPDATE session_tombstones SET files_removed = 1 WHERE session_id = ?', sessionId)),

    rebuildIndexes() {
      try {
        return sqlite
          .transaction(() => {
            run("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')");
            sqlite.exec('REINDEX');
            if (sqlite.pragma('integrity_check(1)', { simple: true }) !== 'ok') throw new StillDamaged();
            return true;
          })
          .immediate();
      } catch (error) {
        if (error instanceof StillDamaged || error instanceof Database.SqliteError) return false;
        throw error;
      }
    },

    close: () => sqlite.close(),
  };
}

/** Ends the transaction of a repair that did not help. */
class StillDamaged extends Error {
  override name = 'StillDamaged';
}
