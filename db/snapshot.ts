/**
 * A copy of the state DB as it was at one moment, taken beside the server that writes it: readers of a WAL never stop its
 * writers. The copy belongs to no process: it has no leases, and every epoch in it has ended, so that whoever opens it
 * recovers what ran at that moment, on whatever machine that is (a pid means nothing elsewhere).
 */
import Database from 'better-sqlite3';
import type { ProcessIdentity } from '../server/core/terms.ts';
import { StateDbRefused } from './client.ts';
import { APPLICATION_ID, readMigrations } from './our-schema.ts';

/** What a copy holds. */
export interface SnapshotFacts {
  schema: number;
  sessions: number;
  messages: number;
  /** Prompts that wait, and that run or whose fate nobody knows. */
  waiting: number;
  running: number;
}

export interface Snapshot extends SnapshotFacts {
  /** Deleted sessions. */
  tombstones: ReadonlySet<string>;
  /** Runs of prompts that still waited: none of theirs has begun. */
  waitingRuns: ReadonlySet<string>;
  /** Runs of all other prompts. */
  begunRuns: ReadonlySet<string>;
}

/** How long a database that is locked is waited for, in milliseconds. The driver waits itself: nothing streams here. */
const PATIENCE_MS = 10_000;

/** The newest schema that this installation knows. */
export function knownSchema(): number {
  const migrations = readMigrations();
  if (migrations) return migrations.length;
  throw new StateDbRefused('The database migrations are missing from this installation: install it again.');
}

function open<T>(file: string, readonly: boolean, work: (sqlite: Database.Database) => T): T {
  const sqlite = new Database(file, { readonly, fileMustExist: true, timeout: PATIENCE_MS });
  try {
    return work(sqlite);
  } finally {
    sqlite.close();
  }
}

const numberOf = (sqlite: Database.Database, text: string): number => sqlite.prepare(text).pluck().get() as number;
const namesOf = (sqlite: Database.Database, text: string): Set<string> =>
  new Set(sqlite.prepare(text).pluck().all() as string[]);

/** @throws StateDbRefused for another program's database or a newer schema @returns its schema */
function checkSchema(sqlite: Database.Database, file: string): number {
  if (sqlite.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new StateDbRefused(`${file} is no database of Turnkeep.`);
  }
  const schema = numberOf(sqlite, 'SELECT coalesce(max(version), 0) FROM schema_version');
  const known = knownSchema();
  if (schema <= known) return schema;
  throw new StateDbRefused(
    `${file} was written by a newer Turnkeep (schema ${schema}, this one knows ${known}): use that version.`,
  );
}

function factsOf(sqlite: Database.Database, file: string): SnapshotFacts {
  return {
    schema: checkSchema(sqlite, file),
    sessions: numberOf(sqlite, 'SELECT count(*) FROM sessions'),
    messages: numberOf(sqlite, 'SELECT count(*) FROM messages WHERE active = 1'),
    waiting: numberOf(sqlite, "SELECT count(*) FROM session_admissions WHERE status = 'queued'"),
    running: numberOf(sqlite, "SELECT count(*) FROM session_admissions WHERE status IN ('started', 'unknown')"),
  };
}

/**
 * Takes a copy of what is committed in a state DB. Never writes to it.
 * @param file the state DB of a home, in use or not
 * @param copy a name that is free; one file when this returns, not yet durable
 * @param now epoch seconds, for the epochs that end with the copy
 * @throws StateDbRefused for another program's database or a newer schema; the driver's error
 */
export function takeSnapshot(file: string, copy: string, now: number): Snapshot {
  open(file, true, (sqlite) => {
    checkSchema(sqlite, file);
    sqlite.prepare('VACUUM INTO ?').run(copy);
  });
  return open(copy, false, (sqlite) => {
    // One file, with nothing beside it.
    sqlite.pragma('journal_mode = DELETE');
    sqlite
      .transaction(() => {
        sqlite.prepare('UPDATE runtime_epochs SET ended_at = ? WHERE ended_at IS NULL').run(now);
        sqlite.prepare('DELETE FROM active_sessions').run();
      })
      .immediate();
    return {
      ...factsOf(sqlite, copy),
      tombstones: namesOf(sqlite, 'SELECT session_id FROM session_tombstones'),
      waitingRuns: namesOf(sqlite, "SELECT run_id FROM session_admissions WHERE status = 'queued'"),
      begunRuns: namesOf(sqlite, "SELECT run_id FROM session_admissions WHERE status <> 'queued'"),
    };
  });
}

export type SnapshotCheck = { kind: 'sound'; facts: SnapshotFacts } | { kind: 'damaged'; reason: string };

/**
 * Proves that a copy is whole, by SQLite's own check of every page and index.
 * @throws the driver's error where the copy could not be looked at
 */
export function checkSnapshot(file: string): SnapshotCheck {
  try {
    return open(file, true, (sqlite) => {
      const problem = sqlite.prepare('PRAGMA integrity_check(1)').pluck().get();
      return problem === 'ok'
        ? { kind: 'sound', facts: factsOf(sqlite, file) }
        : { kind: 'damaged', reason: String(problem) };
    });
  } catch (error) {
    const isDamage = error instanceof Database.SqliteError && /^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(error.code);
    if (isDamage || error instanceof StateDbRefused) return { kind: 'damaged', reason: error.message };
    throw error;
  }
}

/** The processes whose epochs on this state DB have not ended; whether they live is for others to say. */
export function unendedProcesses(file: string): ProcessIdentity[] {
  return open(file, true, (sqlite) => {
    if (numberOf(sqlite, "SELECT count(*) FROM sqlite_master WHERE name = 'runtime_epochs'") === 0) return [];
    return sqlite.prepare('SELECT pid, process_start AS start FROM runtime_epochs WHERE ended_at IS NULL').all();
  }) as ProcessIdentity[];
}
