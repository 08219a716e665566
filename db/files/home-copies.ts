/**
 * Changes of a home by `turnkeep doctor --repair`: nothing is removed, moved or replaced before its copy is durable in the
 * folder `doctor-<time>` of this repair (DR5).
 */
import { constants } from 'node:fs';
import {
  copyFile,
  cp,
  lstat,
  mkdir,
  open,
  opendir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { isMissing, makeFolder, syncFolder, underFreeName } from './atomic.ts';

export interface HomeCopies {
  /** Name of the folder with the copies, from the home on; null while nothing was copied. */
  folder(): string | null;
  /** Copies a file or folder as it is, once. Names are from the home on. @returns false when there is nothing */
  keep(name: string): Promise<boolean>;
  /** Writes something new beside the copies: what was left out, say. */
  note(name: string, text: string): Promise<void>;
  /** Keeps a copy, then removes. */
  remove(name: string): Promise<void>;
  /** Keeps a copy, then moves to a name that was free: `<name>.<suffix>`. @returns the new name */
  moveAside(name: string, suffix: string): Promise<string>;
  /** Puts a file of the copies' folder in the place of another, whose copy is kept. */
  replace(name: string, from: string): Promise<void>;
  /** Makes the folder of the copies if need be. @returns the absolute path of a file in it */
  place(name: string): Promise<string>;
  /** Copies a file beside the copies under another name, to be worked on. @returns its absolute path; null when it is missing */
  take(name: string, as: string): Promise<string | null>;
  /** Takes the copies away again, when nothing was changed after all; otherwise they stay. */
  discard(): Promise<void>;
  /** Whether there is a file that is not empty. */
  isFilled(name: string): Promise<boolean>;
  /** Whether there is something that is no file. */
  isOdd(name: string): Promise<boolean>;
  /** What tells the state of a file from another without opening it; '' when it is missing or empty. */
  identity(name: string): Promise<string>;
}

/** A time as it stands in a name: `20260102T030405Z`. @param now epoch seconds */
export const stampOf = (now: number): string =>
  `${new Date(now * 1000).toISOString().replaceAll(/[-:]/g, '').slice(0, 15)}Z`;

/** @param stamp the time in the folder's name, for example `20260102T030405Z` */
export function createHomeCopies(home: string, stamp: string): HomeCopies {
  const kept = new Set<string>();
  let made: string | null = null;
  let isTouched = false;
  const absolute = (name: string): string => path.join(home, name);

  const folder = async (): Promise<string> => {
    if (made === null) {
      const [name] = await underFreeName(absolute(`doctor-${stamp}`), (free) => mkdir(free, { mode: 0o700 }));
      await syncFolder(home);
      made = name;
    }
    return made;
  };

  const keep = async (name: string): Promise<boolean> => {
    if (kept.has(name)) return true;
    const from = absolute(name);
    const stats = await lstatOf(from);
    if (!stats) return false;
    const to = path.join(await folder(), name);
    await makeFolder(path.dirname(to));
    if (stats.isDirectory()) await cp(from, to, { recursive: true, errorOnExist: true, preserveTimestamps: true });
    // What a link leads to is copied with what is in it; one that leads nowhere stays what it is.
    else if (stats.isSymbolicLink() && !(await statsOf(from))) await symlink(await readlink(from), to);
    // Where the file system can, the copy shares its blocks with the original.
    else await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    if (await statsOf(to)) await syncAll(to, stats.isDirectory());
    await syncFolder(path.dirname(to));
    kept.add(name);
    return true;
  };

  return {
    folder: () => (made === null ? null : path.basename(made)),
    keep,

    async note(name, text) {
      const file = path.join(await folder(), name);
      await writeFile(file, text, { mode: 0o600 });
      await syncAll(file, false);
      await syncFolder(path.dirname(file));
    },

    async remove(name) {
      if (!(await keep(name))) return;
      isTouched = true;
      await rm(absolute(name), { recursive: true, force: true });
      await syncFolder(path.dirname(absolute(name)));
    },

    async moveAside(name, suffix) {
      await keep(name);
      const from = absolute(name);
      const isFolder = (await lstat(from)).isDirectory();
      // A rename replaces what it finds, so the place is taken first, by something empty of the same kind.
      const [aside] = await underFreeName(`${from}.${suffix}`, async (free) => {
        if (isFolder) await mkdir(free, 0o700);
        else await (await open(free, 'wx', 0o600)).close();
      });
      isTouched = true;
      await rename(from, aside);
      await syncFolder(path.dirname(from));
      return path.relative(home, aside);
    },

    async replace(name, from) {
      await keep(name);
      await syncAll(from, false);
      isTouched = true;
      await rename(from, absolute(name));
      await syncFolder(path.dirname(absolute(name)));
    },

    place: async (name) => path.join(await folder(), name),

    async take(name, as) {
      if (!(await lstatOf(absolute(name)))?.isFile()) return null;
      const to = path.join(await folder(), as);
      await copyFile(absolute(name), to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      return to;
    },

    async discard() {
      if (made === null || isTouched) return;
      await rm(made, { recursive: true });
      await syncFolder(home);
      made = null;
      kept.clear();
    },

    async isFilled(name) {
      const stats = await statsOf(absolute(name));
      return stats?.isFile() === true && stats.size > 0;
    },

    async isOdd(name) {
      return (await statsOf(absolute(name)))?.isFile() === false;
    },

    async identity(name) {
      const stats = await lstatOf(absolute(name));
      // SQLite makes an empty WAL when it opens a database.
      return stats && stats.size > 0 ? `${stats.ino}:${stats.size}:${stats.mtimeMs}` : '';
    },
  };
}

/** The same of what a link leads to. */
async function statsOf(file: string) {
  try {
    return await stat(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function lstatOf(file: string) {
  try {
    return await lstat(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Makes a file durable, or a folder with all that is in it. */
async function syncAll(name: string, isFolder: boolean): Promise<void> {
  if (!isFolder) {
    const handle = await open(name, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    return;
  }
  for await (const entry of await opendir(name)) {
    if (entry.isDirectory() || entry.isFile()) await syncAll(path.join(name, entry.name), entry.isDirectory());
  }
  await syncFolder(name);
}
