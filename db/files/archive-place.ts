/**
 * Where backups and restored homes come to stand. Both are made in a folder of their own beside their place, which says by its
 * name that it is unfinished, and get their name by one rename when all of it is durable: whoever is killed in between
 * leaves that folder, and never half of a backup or of a home under its name.
 */
import { mkdir, open, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FileSink } from './archive-read.ts';
import { isMissing, makeFolder, syncFolder, underFreeName } from './atomic.ts';

/** What stands at a place. */
export type Place = 'nothing' | 'empty folder' | 'folder' | 'file';

export async function placeAt(name: string): Promise<Place> {
  try {
    if (!(await stat(name)).isDirectory()) return 'file';
    return (await readdir(name)).length === 0 ? 'empty folder' : 'folder';
  } catch (error) {
    if (isMissing(error)) return 'nothing';
    throw error;
  }
}

/** The place itself, where links lead to it; of what is not there yet, below the nearest folder that is. */
export async function realPlace(name: string): Promise<string> {
  try {
    return await realpath(name);
  } catch (error) {
    if (!isMissing(error) || path.dirname(name) === name) throw error;
    return path.join(await realPlace(path.dirname(name)), path.basename(name));
  }
}

/** Whether a place is a folder or below it. */
export const isWithin = (folder: string, place: string): boolean => {
  const relative = path.relative(folder, place);
  return relative === '' || (!relative.startsWith('..') && !path.isAbsolute(relative));
};

/** Whether a folder is on another disk than the one that it is in: no rename can take its place. */
export const isMounted = async (folder: string): Promise<boolean> =>
  (await stat(folder)).dev !== (await stat(path.dirname(folder))).dev;

/** The size of a file in bytes. */
export const sizeOf = async (file: string): Promise<number> => (await stat(file)).size;

export const removeAll = (name: string): Promise<void> => rm(name, { recursive: true, force: true });

export interface Workplace {
  folder: string;
  /** Gives what was made its name, durably; a file takes no other's place. */
  moveTo(made: string, target: string): Promise<void>;
  /** Removes what is unfinished, and the folders that were made for it while they are empty. */
  remove(): Promise<void>;
}

/**
 * Makes an empty folder beside a place, and its parents where they are missing.
 * @param place what is going to stand there
 */
export async function makeWorkplace(place: string): Promise<Workplace> {
  const parent = path.dirname(place);
  const made = await missingAbove(parent);
  await makeFolder(parent);
  const wanted = path.join(parent, `${path.basename(place)}.unfinished.${process.pid}`);
  const [folder] = await underFreeName(wanted, (name) => mkdir(name, 0o700));
  let isMoved = false;
  return {
    folder,
    async moveTo(source, target) {
      await rename(source, target);
      isMoved = true;
      await syncFolder(parent);
    },
    async remove() {
      await removeAll(folder);
      if (!isMoved) for (const one of made) if (!(await removeEmpty(one))) return;
    },
  };
}

/** The folders that are not there yet, the innermost first. */
async function missingAbove(folder: string): Promise<string[]> {
  const missing: string[] = [];
  for (let at = folder; (await placeAt(at)) === 'nothing'; at = path.dirname(at)) missing.push(at);
  return missing;
}

/** Whether a folder is gone now; one that somebody has put something into stays. */
async function removeEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST'))
      return false;
    if (isMissing(error)) return true;
    throw error;
  }
}

/** Makes a file for what an archive has, below a folder. Durable when it is closed; its folder is not. */
export async function createFile(folder: string, name: string, mode: number): Promise<FileSink> {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'wx', (mode & 0o700) | 0o600);
  return {
    write: (piece) => handle.writeFile(piece),
    async close() {
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
  };
}

/** Makes the entries of a folder and of all below it durable. */
export async function syncFolders(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  for (const entry of entries) if (entry.isDirectory()) await syncFolder(path.join(entry.parentPath, entry.name));
  await syncFolder(folder);
}
