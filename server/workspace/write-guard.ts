/**
 * The guard of a workspace for writing: turns a path into the open folder that a file stands in, or is to stand in, and
 * its name there (TL1). Every later step names the file by that descriptor, so that no folder on the way can be swapped
 * for a link in between.
 *
 * The way is walked from the root, folder by folder, and none of them may be a link: links were resolved before, and
 * one that appears since was put there in between. Where there is no /proc to name a descriptor by, the real path is
 * used, and looked at again after each opening and before the file is replaced.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { lstat, mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { descriptorPath, isInside, nameInside, type PathProblem, problemOf, type Refused, refused } from './guard.ts';

/** A place for a file in an open folder. Who gets it closes `folder`. */
export interface Place {
  ok: true;
  folder: FileHandle;
  /** Path of the file by way of the open folder. */
  file: string;
  /** A path of something beside it, by the same way. */
  beside(name: string): string;
  /** Last part of the path. */
  base: string;
  /** From the root. */
  name: string;
  /** Whether the folder still lies in the workspace where it was opened. */
  isStillThere(): Promise<boolean>;
}

/**
 * Opens the folder of a file that is to be written.
 * @param root absolute path of the workspace
 * @param path relative to the root, or absolute and inside it
 * @param create makes the folders that are missing, all inside the workspace
 */
export async function openPlace(root: string, path: string, create: boolean): Promise<Place | Refused> {
  const named = await nameInside(root, path);
  if (!named.ok) return named;
  const { wanted, realRoot } = named;
  if (path.endsWith(sep) || wanted === root || wanted === realRoot) return refused('not_a_file');
  try {
    const real = await realWay(wanted);
    if (real === null || !isInside(realRoot, real)) return refused('outside');
    return await walk(realRoot, relative(realRoot, real).split(sep), create);
  } catch (error) {
    return refused(writeProblemOf(error));
  }
}

/**
 * Where a file would be written, for those who only want to know whether it may: what is opened later is looked at again.
 * @returns its path from the root, links resolved
 */
export async function nameOfPlace(root: string, path: string): Promise<{ ok: true; name: string } | Refused> {
  const named = await nameInside(root, path);
  if (!named.ok) return named;
  try {
    const real = await realWay(named.wanted);
    return real !== null && isInside(named.realRoot, real)
      ? { ok: true, name: relative(named.realRoot, real) || '.' }
      : refused('outside');
  } catch (error) {
    return refused(writeProblemOf(error));
  }
}

/** The path with all links of what is there resolved; null when a link leads to nothing, whose place nobody checked. */
async function realWay(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (await isThere(path)) return null;
  const parent = await realWay(dirname(path));
  return parent === null ? null : join(parent, basename(path));
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function walk(realRoot: string, parts: string[], create: boolean): Promise<Place | Refused> {
  const base = parts.at(-1)!;
  let real = realRoot;
  let folder = await openFolder(realRoot);
  let kept = false;
  try {
    for (const part of parts.slice(0, -1)) {
      const next = join(await byDescriptor(folder, real), part);
      const stat = await lookOrMake(next, create);
      if (stat === null) return refused('missing');
      if (stat.isSymbolicLink()) return refused('outside');
      if (!stat.isDirectory()) return refused('bad_parent');
      const opened = await openFolder(next);
      await folder.close();
      folder = opened;
      real = join(real, part);
    }
    if (!(await isAt(folder, real))) return refused('outside');
    kept = true;
    const way = await byDescriptor(folder, real);
    const held = folder;
    return {
      ok: true,
      folder: held,
      file: join(way, base),
      beside: (name) => join(way, name),
      base,
      name: relative(realRoot, join(real, base)),
      isStillThere: () => isAt(held, real),
    };
  } finally {
    if (!kept) await folder.close();
  }
}

const openFolder = (path: string): Promise<FileHandle> =>
  open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);

/** What stands there; null when nothing does and nothing may be made. */
async function lookOrMake(path: string, create: boolean) {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (!create) return null;
  try {
    await mkdir(path);
  } catch (error) {
    // Two calls may make the same folder at once.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return lstat(path);
}

/** A path that means the open folder itself, whatever its name means by now; its name where there is no /proc. */
async function byDescriptor(folder: FileHandle, real: string): Promise<string> {
  return (await descriptorPath(folder.fd)) === null ? real : `/proc/self/fd/${folder.fd}`;
}

/** Whether the open folder is the one that stands at that real path. */
async function isAt(folder: FileHandle, real: string): Promise<boolean> {
  const now = await descriptorPath(folder.fd);
  if (now !== null) return now === real;
  try {
    if ((await realpath(real)) !== real) return false;
    const [held, there] = [await folder.stat(), await lstat(real)];
    return held.dev === there.dev && held.ino === there.ino;
  } catch (error) {
    problemOf(error);
    return false;
  }
}

/** The problem behind an error of the file system while writing; other errors are thrown on. */
export function writeProblemOf(error: unknown): PathProblem {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOTDIR':
      return 'bad_parent';
    case 'EISDIR':
      return 'not_a_file';
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return 'no_room';
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'EIO':
      return 'unwritable';
    case 'ENOENT':
      return 'moved';
    default:
      return problemOf(error);
  }
}
