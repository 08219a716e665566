/**
 * The guard of a workspace: turns a path that an agent gave into an open descriptor of something inside the root, or
 * into the reason why not. Owns the rule that paths never leave the workspace (RU3); knows nothing of contents.
 *
 * Three steps, because a path can change between any two of them: the text is compared first (so that nothing outside
 * is even looked at), then the real path, then the thing that was in fact opened. A hard link inside the workspace
 * to a file elsewhere cannot be told from a file of the workspace and is read.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { lstat, open, readlink, realpath } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';

/** Why something in a workspace cannot be had. */
export type PathProblem =
  | 'bad_path'
  | 'outside'
  | 'no_workspace'
  | 'missing'
  | 'not_a_file'
  | 'not_a_directory'
  /** Of a file to be written: something on its way is no folder. */
  | 'bad_parent'
  | 'unreadable'
  | 'unwritable'
  | 'no_room'
  /** Its folder is not where it was when it was opened. */
  | 'moved'
  /** Somebody else wrote it between the reading and the writing of an edit. */
  | 'changed'
  | 'too_large'
  | 'aborted';

export type Refused = { ok: false; problem: PathProblem };

/** An open file or folder of the workspace. Who gets it closes `handle`. */
export interface Opened {
  ok: true;
  handle: FileHandle;
  /** Real absolute path. */
  path: string;
  /** Path from the root, `.` for the root itself. */
  name: string;
  /** Bytes. */
  size: number;
}

/** Longest path that Linux takes; longer ones are refused before they are tried. */
const MAX_PATH_BYTES = 4096;

export const refused = (problem: PathProblem): Refused => ({ ok: false, problem });

/** Is `path` the folder `root` or something below it? Both absolute and without `..`. */
export function isInside(root: string, path: string): boolean {
  const step = relative(root, path);
  return step === '' || !(step === '..' || step.startsWith(`..${sep}`) || isAbsolute(step));
}

/**
 * The first step for every path of an agent: its text alone, so that nothing outside is even looked at.
 * @returns the absolute path that is meant, and the real path of the workspace
 */
export async function nameInside(
  root: string,
  path: string,
): Promise<{ ok: true; wanted: string; realRoot: string } | Refused> {
  if (path.includes('\0') || Buffer.byteLength(path) > MAX_PATH_BYTES) return refused('bad_path');
  let realRoot: string;
  try {
    realRoot = await realpath(root);
  } catch (error) {
    return refused(problemOf(error) === 'unreadable' ? 'unreadable' : 'no_workspace');
  }
  const wanted = resolve(root, path);
  return isInside(root, wanted) || isInside(realRoot, wanted) ? { ok: true, wanted, realRoot } : refused('outside');
}

/**
 * Opens a file or folder of the workspace for reading.
 * @param root absolute path of the workspace
 * @param path relative to the root, or absolute and inside it
 * @returns the open descriptor, or the reason why there is none; throws only on what no path can cause
 */
export async function openInside(root: string, path: string, kind: 'file' | 'directory'): Promise<Opened | Refused> {
  const named = await nameInside(root, path);
  if (!named.ok) return named;
  const { wanted, realRoot } = named;
  try {
    const real = await realpath(wanted);
    if (!isInside(realRoot, real)) return refused('outside');
    return await openReal(realRoot, real, kind);
  } catch (error) {
    return refused(problemOf(error));
  }
}

async function openReal(realRoot: string, real: string, kind: 'file' | 'directory'): Promise<Opened | Refused> {
  // Looked at before it is opened, because opening a device can have an effect; looked at again after, because the
  // name may mean something else by then.
  const before = await lstat(real);
  if (before.isSymbolicLink()) return refused('outside');
  if (!(kind === 'file' ? before.isFile() : before.isDirectory())) return refused(`not_a_${kind}`);
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants;
  // O_NONBLOCK: a FIFO that took the file's place must not hang the turn.
  const handle = await open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (kind === 'directory' ? O_DIRECTORY : 0));
  let kept = false;
  try {
    const stat = await handle.stat();
    if (!(kind === 'file' ? stat.isFile() : stat.isDirectory())) return refused(`not_a_${kind}`);
    if (!(await isOpenedInside(handle, stat, realRoot, real))) return refused('outside');
    kept = true;
    return { ok: true, handle, path: real, name: relative(realRoot, real) || '.', size: stat.size };
  } finally {
    if (!kept) await handle.close();
  }
}

/** Whether the opened thing itself lies inside: a folder on the way may have become a link after the check. */
async function isOpenedInside(
  handle: FileHandle,
  stat: { dev: number; ino: number },
  realRoot: string,
  real: string,
): Promise<boolean> {
  const now = await descriptorPath(handle.fd);
  if (now !== null) return isInside(realRoot, now);
  if ((await realpath(real)) !== real) return false;
  const after = await lstat(real);
  return after.dev === stat.dev && after.ino === stat.ino;
}

/** Where the system says that a descriptor points; null where there is no /proc. */
export async function descriptorPath(fd: number): Promise<string | null> {
  try {
    return await readlink(`/proc/self/fd/${fd}`);
  } catch {
    return null;
  }
}

/** A path that means the opened folder itself, whatever its name means by now; the name where there is no /proc. */
export async function folderPath(opened: Opened): Promise<string> {
  const link = `/proc/self/fd/${opened.handle.fd}`;
  return (await descriptorPath(opened.handle.fd)) === null ? opened.path : link;
}

/** The problem behind an error of the file system while reading; other errors are thrown on. */
export function problemOf(error: unknown): PathProblem {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'missing';
    case 'ENAMETOOLONG':
      return 'bad_path';
    case 'ELOOP':
      return 'outside';
    case 'ENXIO':
    case 'ENODEV':
    case 'EISDIR':
      return 'not_a_file';
    case 'EACCES':
    case 'EPERM':
    case 'EIO':
    case 'EBUSY':
    case 'ESTALE':
    case 'EMFILE':
    case 'ENFILE':
      return 'unreadable';
    default:
      throw error;
  }
}
