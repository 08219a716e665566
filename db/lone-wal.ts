/**
 * A WAL whose database is gone, or is none any more: it may hold most pages of it, all of them where the database was young.
 * Beside a database that has nothing but a first page SQLite reads it as its own.
 */
import Database from 'better-sqlite3';
import { makeFirstPage } from './files/state-db-place.ts';

/**
 * Opens what a WAL still holds.
 * @param file absolute path of a name that is free; a copy of the WAL stands at `<file>-wal`
 * @returns null when nothing of it can be read
 */
export async function openLoneWal(file: string): Promise<Database.Database | null> {
  if (!(await makeFirstPage(file))) return null;
  let sqlite: Database.Database | null = null;
  try {
    sqlite = new Database(file, { fileMustExist: true, timeout: 0 });
    sqlite.pragma('locking_mode = EXCLUSIVE');
    sqlite.prepare('SELECT count(*) FROM sqlite_master').get();
    return sqlite;
  } catch (error) {
    sqlite?.close();
    if (error instanceof Database.SqliteError) return null;
    throw error;
  }
}
