/** The newest schema that this installation knows: its number, what is in it, and a new database that has it. */
import Database from 'better-sqlite3';
import { APPLICATION_ID, readMigrations } from './our-schema.ts';

export interface KnownSchema {
  /** How many migrations there are. */
  version: number;
  /** Names of its tables, indexes, triggers and views, without those that SQLite makes itself. */
  names: string[];
  /** Makes it in an empty database. */
  make(sqlite: Database.Database): void;
}

/** @returns null when the installation has lost its migrations */
export function readKnownSchema(): KnownSchema | null {
  const migrations = readMigrations();
  if (!migrations) return null;
  const make = (sqlite: Database.Database): void => {
    sqlite.exec('CREATE TABLE schema_version (version INTEGER NOT NULL)');
    for (const [index, migration] of migrations.entries()) {
      for (const statement of migration.sql) sqlite.exec(statement);
      sqlite.prepare('INSERT INTO schema_version (version) VALUES (?)').run(index + 1);
    }
    sqlite.pragma(`application_id = ${APPLICATION_ID}`);
  };
  const model = new Database(':memory:');
  try {
    make(model);
    return { version: migrations.length, names: namesIn(model), make };
  } finally {
    model.close();
  }
}

/** Names of what a database defines. */
export const namesIn = (sqlite: Database.Database): string[] =>
  sqlite
    .prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
    .pluck()
    .all() as string[];

/** Makes a database that holds nothing yet. @param file absolute path of a name that is free */
export function makeEmpty(file: string, known: KnownSchema): void {
  const sqlite = new Database(file);
  try {
    sqlite.transaction(() => known.make(sqlite))();
  } finally {
    sqlite.close();
  }
}
