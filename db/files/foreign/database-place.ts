/**
 * The files of another program's SQLite database, looked at without opening one that may be in use: closing any file
 * of a database drops the locks that this process has on it. And a private copy of it, for when a reader could not open the
 * original without leaving `-wal` and `-shm` beside it.
 */
import { constants, type Stats } from 'node:fs';
import { copyFile, mkdir, open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isMissing } from '../atomic.ts';

export interface DatabasePlace {
  /** The file, whatever is in it; null when there is none. */
  file: string | null;
  /** The same with its size and times. */
  state: string;
  hasWal: boolean;
  hasSharedMemory: boolean;
}

const isNone = (error: unknown): boolean =>
  isMissing(error) || (error instanceof Error && 'code' in error && error.code === 'ENOTDIR');

async function statsOf(file: string): Promise<Stats | null> {
  try {
    const stats = await stat(file);
    return stats.isFile() ? stats : null;
  } catch (error) {
    if (isNone(error)) return null;
    throw error;
  }
}

const NOTHING = '-';

const stateOf = (stats: Stats | null): string =>
  stats === null ? NOTHING : `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;

/** What stands where a database is said to be. */
export async function lookAtDatabase(file: string): Promise<DatabasePlace> {
  const [main, wal, shm] = await Promise.all([statsOf(file), statsOf(`${file}-wal`), statsOf(`${file}-shm`)]);
  return {
    file: main === null ? null : `${main.dev}:${main.ino}`,
    state: `${stateOf(main)} ${stateOf(wal)}`,
    hasWal: wal !== null,
    hasSharedMemory: shm !== null,
  };
}

/** Places of the two bytes of a header that say whether a database keeps a WAL: 2 with, 1 without. */
const VERSIONS = { at: 18, withWal: 2, without: 1 };

/** Whether a database keeps a WAL, by its header. Only for one that this process has not open. */
export async function keepsWal(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const bytes = Buffer.alloc(2);
    await handle.read(bytes, 0, 2, VERSIONS.at);
    return bytes.includes(VERSIONS.withWal);
  } finally {
    await handle.close();
  }
}

/**
 * Copies a database, with its WAL if there is one, or with the journal by which a write that was never finished is taken back.
 * Where there is no WAL the copy is one that keeps none.
 * @param folder of our own, made if it is missing
 * @param name of the copy in it
 * @returns the copy; null when the original was changed meanwhile
 */
export async function copyDatabase(file: string, folder: string, name: string): Promise<string | null> {
  const copy = path.join(folder, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeCopy(copy);
  const [before, journal] = [await lookAtDatabase(file), stateOf(await statsOf(`${file}-journal`))];
  try {
    if (journal !== NOTHING) await copyFile(`${file}-journal`, `${copy}-journal`, constants.COPYFILE_FICLONE);
    await copyFile(file, copy, constants.COPYFILE_FICLONE);
    if (before.hasWal) await copyFile(`${file}-wal`, `${copy}-wal`, constants.COPYFILE_FICLONE);
    else await withoutWal(copy);
    const isSame = stateOf(await statsOf(`${file}-journal`)) === journal;
    if (isSame && (await lookAtDatabase(file)).state === before.state) return copy;
  } catch (error) {
    await removeCopy(copy);
    if (isNone(error)) return null;
    throw error;
  }
  await removeCopy(copy);
  return null;
}

async function withoutWal(copy: string): Promise<void> {
  const handle = await open(copy, 'r+');
  try {
    await handle.write(Buffer.from([VERSIONS.without, VERSIONS.without]), 0, 2, VERSIONS.at);
  } finally {
    await handle.close();
  }
}

/** Removes a copy; one that is open stays readable where the system allows it, and is gone when it is closed. */
export async function removeCopy(copy: string): Promise<void> {
  for (const end of ['', '-wal', '-shm', '-journal']) await rm(`${copy}${end}`, { force: true });
}
