/**
 * The connection to the state DB: opening, settings, migrations, and the one place where a write waits.
 *
 * The driver's own busy time-out is 0: a synchronous driver that waits would stop every stream. A transaction that
 * finds the database locked is tried again after 5 to 50 ms, jittered, until its patience is over (`StorageTrouble`).
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import { fileUnder } from './files/state-db-place.ts';
import { APPLICATION_ID, type Migrations, readMigrations } from './our-schema.ts';
import * as schema from './schema.ts';
import { StorageTrouble, storageTroubleKind } from './storage-trouble.ts';
import { hasWords } from './words.ts';

export type Db = BetterSQLite3Database<typeof schema>;

export interface StateDb {
  /** Runs `work` on a consistent view. It must not await. */
  read<T>(work: (db: Db) => T): Promise<T>;
  /** Runs `work` in one `BEGIN IMMEDIATE` transaction. It must not await; throwing rolls back. */
  write<T>(work: (db: Db) => T, options?: WriteOptions): Promise<T>;
  /** Grows whenever another connection changed the file; NaN, which equals nothing, while that cannot be asked. */
  dataVersion(): number;
  /** Another text whenever anybody, this connection included, changed the file. */
  version(): string;
  close(): void;
}

export interface WriteOptions {
  /** False: a database that is locked right now is a `StorageTrouble` at once. */
  wait?: boolean;
}

/** A state DB that we must not open; the message says what to do. */
export class StateDbRefused extends Error {
  override name = 'StateDbRefused';
}

export interface StateDbOptions {
  file: string;
  /** Resolves after a pause; injected so that tests own the clock. @param ms milliseconds */
  sleep(ms: number): Promise<void>;
  /** A number in [0, 1). */
  random(): number;
  /** Milliseconds that a monotonic clock shows. */
  monotonic(): number;
  /** How long a locked database is waited for, in milliseconds. */
  patienceMs: number;
  /** Seconds since the epoch, for the name of the copy that is made before a migration. */
  now(): number;
}

/**
 * Opens the state DB, makes or migrates it.
 * @throws StateDbRefused for another program's database or a newer schema; StorageTrouble when it stays locked
 */
export async function openStateDb(options: StateDbOptions): Promise<StateDb> {
  const patiently = <T>(attempt: () => T): Promise<T> => waitWhileBusy(options, attempt);
  await patiently(() => lookFirst(options.file));
  const before = fileUnder(options.file);
  const sqlite = await patiently(() => new Database(options.file, { timeout: 0 }));
  try {
    await patiently(() => checkOwner(sqlite, options.file));
    sqlite.pragma('foreign_keys = ON');
    sqlite.function('has_words', { deterministic: true }, (text, q) => (hasWords(text, q) ? 1 : 0));
    await patiently(() => sqlite.pragma('journal_mode = WAL'));
    sqlite.pragma('synchronous = FULL');
    const migrations = readMigrations();
    if (!migrations)
      throw new StateDbRefused('The database migrations are missing from this installation: install it again.');
    await patiently(() => migrate(sqlite, migrations, options));
  } catch (error) {
    sqlite.close();
    throw error;
  }
  // A repair put another file in its place before it let go of this one: nobody would see what is written here.
  if (before !== null && before !== fileUnder(options.file)) {
    sqlite.close();
    return openStateDb(options);
  }
  const db = drizzle(sqlite, { schema });
  const transact = transactor(sqlite);
  const dataVersion = sqlite.prepare('PRAGMA data_version').pluck();
  const totalChanges = sqlite.prepare('SELECT total_changes()').pluck();
  return {
    read: (work) => patiently(() => transact('BEGIN', () => work(db))),
    write: (work, { wait = true } = {}) =>
      waitWhileBusy({ ...options, patienceMs: wait ? options.patienceMs : 0 }, () =>
        transact('BEGIN IMMEDIATE', () => work(db)),
      ),
    dataVersion: () => {
      try {
        return dataVersion.get() as number;
      } catch (error) {
        // Another process restores the log of one that was killed: whoever asks takes the patient way of a read.
        if (storageTroubleKind(error) !== 'busy') throw error;
        return Number.NaN;
      }
    },
    version: () => `${dataVersion.get()}.${totalChanges.get()}`,
    close: () => sqlite.close(),
  };
}

/** Runs work between BEGIN and COMMIT, with statements that are prepared once; an error rolls back and travels up. */
function transactor(sqlite: Database.Database) {
  const prepare = (text: string) => sqlite.prepare(text);
  const begins = { BEGIN: prepare('BEGIN'), 'BEGIN IMMEDIATE': prepare('BEGIN IMMEDIATE') };
  const commit = prepare('COMMIT');
  const rollback = prepare('ROLLBACK');
  return <T>(begin: keyof typeof begins, work: () => T): T => {
    begins[begin].run();
    try {
      const result = work();
      commit.run();
      return result;
    } catch (error) {
      if (sqlite.inTransaction) rollback.run();
      throw error;
    }
  };
}

/** Tries until it succeeds, fails for another reason than a lock, or patience is over. */
async function waitWhileBusy<T>(
  { sleep, random, monotonic, patienceMs }: Pick<StateDbOptions, 'sleep' | 'random' | 'monotonic' | 'patienceMs'>,
  attempt: () => T,
): Promise<T> {
  const deadline = monotonic() + patienceMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      const kind = storageTroubleKind(error);
      if (kind === null) throw error;
      if (kind !== 'busy' || monotonic() >= deadline) {
        throw error instanceof StorageTrouble ? error : new StorageTrouble(kind, error);
      }
    }
    await sleep(5 + random() * 45);
  }
}

/**
 * Looks at a file without opening it for writing: to close a connection that could write may itself change a database,
 * by the checkpoint of a WAL that its program left behind.
 */
function lookFirst(file: string): void {
  let sqlite: Database.Database | null = null;
  try {
    sqlite = new Database(file, { readonly: true, timeout: 0 });
    checkOwner(sqlite, file);
  } catch (error) {
    // Not there yet, or only its next writer can finish what was left half: the connection for writing will tell.
    if (!(error instanceof Database.SqliteError) || !/^SQLITE_(CANTOPEN|READONLY)/.test(error.code)) throw error;
  } finally {
    sqlite?.close();
  }
}

/** @param place absolute path of what belongs to another program, in its home */
export const refuseForeign = (place: string): StateDbRefused =>
  new StateDbRefused(
    `${place} belongs to another program. Start with another home (--home DIR), so that nothing of it is changed: ` +
      `"turnkeep import ${path.dirname(place)}" brings its conversations over.`,
  );

/** Refuses a file that another program made: it is never migrated, checkpointed or locked for writing. */
function checkOwner(sqlite: Database.Database, file: string): void {
  // Both answers from one view: another process may be making the file right now.
  const { owner, tables } = sqlite.transaction(() => ({
    owner: sqlite.pragma('application_id', { simple: true }),
    tables: sqlite.prepare('SELECT count(*) FROM sqlite_master').pluck().get(),
  }))();
  if (owner === APPLICATION_ID || (owner === 0 && tables === 0)) return;
  throw refuseForeign(file);
}

/** Applies what is missing in one transaction, after a copy of a database that already has data. */
function migrate(sqlite: Database.Database, migrations: Migrations, { file, now }: StateDbOptions): void {
  const version = (): number => {
    const known = sqlite.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'").pluck().get();
    if (known === 0) return 0;
    const applied = sqlite.prepare('SELECT coalesce(max(version), 0) FROM schema_version').pluck().get() as number;
    if (applied <= migrations.length) return applied;
    throw new StateDbRefused(
      `${file} was written by a newer Turnkeep (schema ${applied}, this one knows ${migrations.length}). ` +
        'Start the newer version, or a copy of the home made before the update.',
    );
  };
  if (version() === migrations.length) return;
  sqlite
    .transaction(() => {
      const from = version(); // Another process may have been faster.
      if (from === migrations.length) return;
      // Under the lock, so that one process makes one copy: a try that found the database locked has left none.
      if (from > 0) copyTo(file, `${file}.before-schema-${migrations.length}-${Math.floor(now())}`);
      sqlite.exec('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)');
      for (const [index, migration] of migrations.entries()) {
        if (index < from) continue;
        for (const statement of migration.sql) sqlite.exec(statement);
        sqlite.prepare('INSERT INTO schema_version (version) VALUES (?)').run(index + 1);
      }
      sqlite.pragma(`application_id = ${APPLICATION_ID}`);
    })
    .immediate();
}

/** Copies what is committed. By a connection of its own, for `VACUUM` works in no transaction. */
function copyTo(file: string, copy: string): void {
  const reader = new Database(file, { readonly: true, timeout: 0 });
  try {
    reader.prepare('VACUUM INTO ?').run(copy);
  } finally {
    reader.close();
  }
}
