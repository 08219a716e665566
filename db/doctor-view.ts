/**
 * What `turnkeep doctor` asks of a state DB. Only questions: nothing here writes. Each answer is one consistent view, and
 * long lists come in pages, so that a server that runs meanwhile goes on and memory stays bounded.
 */
import Database from 'better-sqlite3';
import { type KnownSchema, namesIn } from './doctor-schema.ts';
import { compareSearchIndex } from './doctor-search.ts';

/** A process that a row names. */
export interface NamedProcess {
  pid: number;
  start: string | null;
}

export interface LeaseFound extends NamedProcess {
  sessionId: string;
  leaseId: string;
}

export interface OpenAdmission {
  admissionId: string;
  sessionId: string;
  status: 'started' | 'unknown';
  /** Of the epoch that runs it; null when there is none of that number. */
  process: (NamedProcess & { ended: boolean }) | null;
}

export interface SessionFound {
  id: string;
  messageCount: number;
  /** Its rows that a transcript shows. */
  shown: number;
  /** Claims so far: a session of 0 never ran and has no file. */
  generation: number;
  hasRunning: boolean;
  flagsAreJson: boolean;
}

export interface RunFound {
  sessionId: string;
  status: string;
  /** Epoch seconds. */
  endedAt: number | null;
  journalPruned: boolean;
}

/** Rows that name a session which is not there. */
export interface Orphans {
  sessionId: string;
  rows: number;
}

export interface StateView {
  sqliteVersion: string;
  schema(): { version: number; newest: number; missing: string[] };
  /** What `PRAGMA integrity_check` says beside "ok". */
  integrity(): string[];
  /** Whether the full-text index says what the messages say; null when there is none. */
  searchIndex(): 'same' | 'other' | 'damaged' | null;
  orphanMessages(): Orphans[];
  orphanAdmissions(): Orphans[];
  /** Other broken references, by table. */
  brokenReferences(): { table: string; parent: string; rows: number }[];
  /** Which of the kept counts of sessions are wrong. */
  wrongSessionCounts(): number;
  /** Rows whose JSON cannot be read, by table and column. */
  unreadableJson(): { table: string; column: string; rows: number }[];
  sessions(after: string, limit: number): SessionFound[];
  tombstones(after: string, limit: number): { id: string; filesRemoved: boolean }[];
  leases(): LeaseFound[];
  openAdmissions(): OpenAdmission[];
  /** Processes of epochs that have not ended, newest first. */
  epochProcesses(): NamedProcess[];
  known(ids: readonly string[]): Map<string, 'session' | 'deleted'>;
  runs(runIds: readonly string[]): Map<string, RunFound>;
  close(): void;
}

const SESSIONS = `
  SELECT s.id, s.message_count AS messageCount, s.runtime_generation AS generation, json_valid(s.flags) AS flagsAreJson,
    (SELECT count(*) FROM messages m
      WHERE m.session_id = s.id AND m.active = 1 AND coalesce(m.display_kind, '') <> 'hidden') AS shown,
    EXISTS (SELECT 1 FROM session_admissions a
      WHERE a.target_session_id = s.id AND a.status IN ('started', 'unknown')) AS hasRunning
  FROM sessions s WHERE s.id > ? ORDER BY s.id LIMIT ?`;

const OPEN_ADMISSIONS = `
  SELECT a.admission_id AS admissionId, a.target_session_id AS sessionId, a.status, e.pid, e.process_start AS start,
    e.ended_at AS endedAt
  FROM session_admissions a LEFT JOIN runtime_epochs e ON e.epoch = a.owner_epoch
  WHERE a.status IN ('started', 'unknown') ORDER BY a.seq`;

const WRONG_COUNTS = `
  SELECT count(*) FROM (SELECT 0 AS flag UNION ALL SELECT 1) f LEFT JOIN session_counts c ON c.archived = f.flag
  WHERE c.sessions IS NOT (SELECT count(*) FROM sessions WHERE archived = f.flag AND hidden = 0)`;

/** Columns that hold JSON or nothing. `messages.tool_calls` of other programs may be any text. */
const JSON_COLUMNS = [
  ['sessions', 'flags'],
  ['session_admissions', 'payload_json'],
  ['session_admissions', 'error'],
  ['messages', 'extra'],
] as const;

/** As many complaints as a person would read. */
const MOST_COMPLAINTS = 20;
/** Epochs of killed servers stay open for ever; only the newest can be of a process that lives. */
const MOST_EPOCHS = 200;

/** @throws SqliteError when the file cannot be read as a database at all */
export function createStateView(sqlite: Database.Database, known: KnownSchema): StateView {
  const all = <Row>(text: string, ...values: unknown[]): Row[] => sqlite.prepare(text).all(...values) as Row[];
  const one = <Value>(text: string): Value => sqlite.prepare(text).pluck().get() as Value;
  const names = new Set(namesIn(sqlite));
  const sqliteVersion = one<string>('SELECT sqlite_version()');
  const orphans = (table: string, column: string): Orphans[] =>
    all<Orphans>(
      `SELECT ${column} AS sessionId, count(*) AS rows FROM ${table}
        WHERE ${column} NOT IN (SELECT id FROM sessions) GROUP BY ${column} ORDER BY ${column}`,
    );

  return {
    sqliteVersion,

    schema: () => ({
      version: names.has('schema_version') ? (one<number | null>('SELECT max(version) FROM schema_version') ?? 0) : 0,
      newest: known.version,
      missing: known.names.filter((name) => !names.has(name)),
    }),

    // The whole check and not the quick one: an index that lost an entry hides a prompt from its key, and only this sees it.
    integrity: () =>
      (sqlite.pragma(`integrity_check(${MOST_COMPLAINTS})`) as { integrity_check: string }[])
        .map((row) => row.integrity_check)
        .filter((line) => line !== 'ok'),

    searchIndex: () => (names.has('messages_fts') ? compareSearchIndex(sqlite) : null),

    orphanMessages: () => orphans('messages', 'session_id'),
    orphanAdmissions: () => orphans('session_admissions', 'target_session_id'),

    brokenReferences() {
      const found = new Map<string, { table: string; parent: string; rows: number }>();
      for (const { table, parent } of sqlite.prepare('PRAGMA foreign_key_check').iterate() as IterableIterator<{
        table: string;
        parent: string;
      }>) {
        if (parent === 'sessions') continue; // Told as orphans.
        const same = found.get(`${table}/${parent}`) ?? { table, parent, rows: 0 };
        found.set(`${table}/${parent}`, { ...same, rows: same.rows + 1 });
      }
      return [...found.values()];
    },

    wrongSessionCounts: () => (names.has('session_counts') ? one<number>(WRONG_COUNTS) : 0),

    unreadableJson: () =>
      JSON_COLUMNS.map(([table, column]) => ({
        table,
        column,
        rows: one<number>(`SELECT count(*) FROM ${table} WHERE ${column} IS NOT NULL AND NOT json_valid(${column})`),
      })).filter(({ rows }) => rows > 0),

    sessions: (after, limit) =>
      all<Omit<SessionFound, 'hasRunning' | 'flagsAreJson'> & { hasRunning: number; flagsAreJson: number }>(
        SESSIONS,
        after,
        limit,
      ).map((row) => ({
        ...row,
        hasRunning: row.hasRunning === 1,
        flagsAreJson: row.flagsAreJson === 1,
      })),

    tombstones: (after, limit) =>
      all<{ id: string; filesRemoved: number }>(
        `SELECT session_id AS id, files_removed AS filesRemoved FROM session_tombstones
          WHERE session_id > ? ORDER BY session_id LIMIT ?`,
        after,
        limit,
      ).map(({ id, filesRemoved }) => ({ id, filesRemoved: filesRemoved === 1 })),

    leases: () =>
      all<LeaseFound>(
        `SELECT session_id AS sessionId, lease_id AS leaseId, pid, process_start_time AS start
          FROM active_sessions ORDER BY session_id`,
      ),

    openAdmissions: () =>
      all<Omit<OpenAdmission, 'process'> & { pid: number | null; start: string | null; endedAt: number | null }>(
        OPEN_ADMISSIONS,
      ).map(({ admissionId, sessionId, status, pid, start, endedAt }) => ({
        admissionId,
        sessionId,
        status,
        process: pid === null ? null : { pid, start, ended: endedAt !== null },
      })),

    epochProcesses: () =>
      all<NamedProcess>(
        `SELECT pid, process_start AS start FROM runtime_epochs WHERE ended_at IS NULL
          ORDER BY epoch DESC LIMIT ${MOST_EPOCHS}`,
      ),

    known(ids) {
      const given = JSON.stringify(ids);
      const sessions = all<{ id: string }>(
        'SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(?))',
        given,
      );
      const deleted = all<{ id: string }>(
        'SELECT session_id AS id FROM session_tombstones WHERE session_id IN (SELECT value FROM json_each(?))',
        given,
      );
      return new Map([
        ...deleted.map(({ id }) => [id, 'deleted'] as const),
        ...sessions.map(({ id }) => [id, 'session'] as const),
      ]);
    },

    runs: (runIds) =>
      new Map(
        all<{ runId: string; sessionId: string; status: string; endedAt: number | null; pruned: number }>(
          `SELECT run_id AS runId, target_session_id AS sessionId, status, ended_at AS endedAt, journal_pruned AS pruned
            FROM session_admissions WHERE run_id IN (SELECT value FROM json_each(?))`,
          JSON.stringify(runIds),
        ).map(({ runId, sessionId, status, endedAt, pruned }) => [
          runId,
          { sessionId, status, endedAt, journalPruned: pruned === 1 },
        ]),
      ),

    close: () => sqlite.close(),
  };
}

/** Whether an error says that the database itself is damaged. */
export const isDamage = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB|IOERR)/.test(error.code);
