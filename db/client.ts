/**
 * The connection to the state DB: opening, settings, migrations, and the one place where a write waits.
 *
 * The driver's own busy time-out is 0: a synchronous driver that waits would stop every stream. A transaction that
 * finds the database locked is tried again after 5 to 50 ms, jittered, until its patience is over (`StorageTrouble`).
 */
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import * as schema from './schema.ts';
import { StorageTrouble, storageTroubleKind } from './storage-trouble.ts';
import { hasWords } from './words.ts';

export type Db = BetterSQLite3Database<typeof schema>;

export interface StateDb {
  /** Runs `work` on a consistent view. It must not await. */
  read<T>(work: (db: Db) => T): Promise<T>;
  /** Runs `work` in one `BEGIN IMMEDIATE` transaction. It must not await; throwing rolls back. */
  write<T>(work: (db: Db) => T): Promise<T>;
  /** Grows whenever another connection changed the file. */
  dataVersion(): number;
  close(): void;
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

/** "TKEP": tells our state DB from those of other programs. */
const APPLICATION_ID = 0x544b4550;

/** The migrations ship beside the code, both in the source tree and in the package. */
const MIGRATIONS_FOLDERS = ['./migrations', '../../db/migrations'];

/**
 * Opens the state DB, makes or migrates it.
 * @throws StateDbRefused for another program's database or a newer schema; StorageTrouble when it stays locked
 */
export async function openStateDb(options: StateDbOptions): Promise<StateDb> {
  const patiently = <T>(attempt: () => T): Promise<T> => waitWhileBusy(options, attempt);
  const sqlite = await patiently(() => new Database(options.file, { timeout: 0 }));
  try {
    await patiently(() => checkOwner(sqlite, options.file));
    sqlite.pragma('foreign_keys = ON');
    sqlite.function('has_words', { deterministic: true }, (text, q) => (hasWords(text, q) ? 1 : 0));
    await patiently(() => sqlite.pragma('journal_mode = WAL'));
    sqlite.pragma('synchronous = FULL');
    const migrations = MIGRATIONS_FOLDERS.flatMap((folder) => {
      try {
        return [readMigrationFiles({ migrationsFolder: fileURLToPath(new URL(folder, import.meta.url)) })];
      } catch {
        return [];
      }
    })[0];
    if (!migrations)
      throw new StateDbRefused('The database migrations are missing from this installation: install it again.');
    await patiently(() => migrate(sqlite, migrations, options));
  } catch (error) {
    sqlite.close();
    throw error;
  }
  const db = drizzle(sqlite, { schema });
  return {
    read: (work) => patiently(() => db.transaction(() => work(db), { behavior: 'deferred' })),
    write: (work) => patiently(() => db.transaction(() => work(db), { behavior: 'immediate' })),
    dataVersion: () => sqlite.pragma('data_version', { simple: true }) as number,
    close: () => sqlite.close(),
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
      if (kind !== 'busy' || monotonic() >= deadline) throw new StorageTrouble(kind, error);
    }
    await sleep(5 + random() * 45);
  }
}

/** Refuses a file that another program made: it is never migrated, checkpointed or locked for writing. */
function checkOwner(sqlite: Database.Database, file: string): void {
  const owner = sqlite.pragma('application_id', { simple: true });
  if (owner === APPLICATION_ID) return;
  const tables = sqlite.prepare('SELECT count(*) AS n FROM sqlite_master').get() as { n: number };
  if (owner === 0 && tables.n === 0) return;
  throw new StateDbRefused(
    `${file} belongs to another program. Start with another home (--home DIR), so that nothing of it is changed.`,
  );
}

type Migrations = ReturnType<typeof readMigrationFiles>;

/** Applies what is missing in one transaction, after a copy of a database that already has data. */
function migrate(sqlite: Database.Database, migrations: Migrations, { file, now }: StateDbOptions): void {
  const applied = (): number => {
    sqlite.exec('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)');
    const row = sqlite.prepare('SELECT max(version) AS version FROM schema_version').get() as {
      version: number | null;
    };
    return row.version ?? 0;
  };
  const known = sqlite.prepare("SELECT count(*) AS n FROM sqlite_master WHERE name = 'schema_version'").get() as {
    n: number;
  };
  const before = known.n === 0 ? 0 : applied();
  if (before > migrations.length) {
    throw new StateDbRefused(
      `${file} was written by a newer Turnkeep (schema ${before}, this one knows ${migrations.length}). ` +
        'Start the newer version, or a copy of the home made before the update.',
    );
  }
  if (before === migrations.length) return;
  if (before > 0)
    sqlite.prepare('VACUUM INTO ?').run(`${file}.before-schema-${migrations.length}-${Math.floor(now())}`);
  sqlite
    .transaction(() => {
      const from = applied(); // Another process may have been faster.
      for (const [index, migration] of migrations.entries()) {
        if (index < from) continue;
        for (const statement of migration.sql) sqlite.exec(statement);
        sqlite.prepare('INSERT INTO schema_version (version) VALUES (?)').run(index + 1);
      }
      sqlite.pragma(`application_id = ${APPLICATION_ID}`);
    })
    .immediate();
}
