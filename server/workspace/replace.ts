/**
 * Reading and replacing one file of a workspace as a whole (TL2): a reader sees the old content or the new one, and who
 * is stopped in between leaves the old one. What is no regular file is left alone.
 */
import { constants, type Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { access, lstat, open, rename, rm } from 'node:fs/promises';
import { problemOf, type Refused, refused } from './guard.ts';
import { openPlace, type Place, writeProblemOf } from './write-guard.ts';

/** Largest file that is read to be edited, or to be compared with what replaces it (bytes). */
export const MAX_EDIT_BYTES = 4 * 1024 * 1024;

/** What stands at a place: nothing, or a file. */
export type Found = { ok: true; exists: false } | Present;

interface Present {
  ok: true;
  exists: true;
  mode: number;
  /** Null: too large. */
  bytes: Buffer | null;
  /** Tells this state of the file from a later one. */
  state: string;
}

export interface Replaced {
  ok: true;
  /** From the root. */
  name: string;
  /** What the file held before; null when there was none, or when it was too large to be read. */
  before: Buffer | null;
  /** Whether there was a file before. */
  existed: boolean;
  after: Buffer;
}

/** What a file is to hold, made of what it holds; a refusal leaves it as it is. */
export type Change<R> = (found: Found & { ok: true }, name: string) => { write: Buffer } | { refuse: R };

/**
 * Replaces a file by what `change` makes of it.
 * @param create whether the file and its folders may be missing
 * @returns what was done, why the path cannot be had, or what `change` refused with
 */
export async function replaceInside<R>(
  root: string,
  path: string,
  { create, signal }: { create: boolean; signal: AbortSignal },
  change: Change<R>,
): Promise<Replaced | Refused | { ok: null; refusal: R }> {
  const place = await openPlace(root, path, create);
  if (!place.ok) return place;
  try {
    const found = await look(place);
    if (!found.ok) return found;
    if (!found.exists && !create) return refused('missing');
    const changed = change(found, place.name);
    if ('refuse' in changed) return { ok: null, refusal: changed.refuse };
    if (signal.aborted) return refused('aborted');
    // What replaces a whole file was made without its content; an edit was not, and must not undo another's change.
    const expected = found.exists && !create ? found.state : null;
    const problem = await replace(place, changed.write, found.exists ? found.mode : null, expected);
    if (problem) return problem;
    const before = found.exists ? found.bytes : null;
    return { ok: true, name: place.name, before, existed: found.exists, after: changed.write };
  } catch (error) {
    return refused(writeProblemOf(error));
  } finally {
    await place.folder.close();
  }
}

async function look(place: Place): Promise<Found | Refused> {
  let handle: FileHandle;
  try {
    // Looked at before it is opened, because opening a device can have an effect.
    const stat = await lstat(place.file);
    if (stat.isSymbolicLink()) return refused('outside');
    if (!stat.isFile()) return refused('not_a_file');
    await access(place.file, constants.W_OK);
    handle = await open(place.file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { ok: true, exists: false };
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return refused('unwritable');
    return refused(problemOf(error));
  }
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) return refused('not_a_file');
    const bytes = stat.size > MAX_EDIT_BYTES ? null : await readWhole(handle);
    return { ok: true, exists: true, mode: stat.mode & 0o777, bytes, state: stateOf(stat) };
  } finally {
    await handle.close();
  }
}

const stateOf = ({ dev, ino, size, mtimeMs }: Stats): string => `${dev} ${ino} ${size} ${mtimeMs}`;

/** All of a file up to the bound; null when it grew over it meanwhile. */
async function readWhole(handle: FileHandle): Promise<Buffer | null> {
  const bytes = Buffer.allocUnsafe(MAX_EDIT_BYTES + 1);
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
    if (bytesRead === 0) return Buffer.from(bytes.subarray(0, length));
    length += bytesRead;
  }
  return null;
}

/** A name that is taken is left alone: another call may be writing it. */
const MOST_NAMES = 100;

async function replace(
  place: Place,
  content: Buffer,
  mode: number | null,
  expected: string | null,
): Promise<Refused | null> {
  const { temporary, handle } = await openTemporary(place, mode);
  try {
    try {
      // The umask counts for a new file and not for one that had its mode before.
      if (mode !== null) await handle.chmod(mode);
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    const problem = !(await place.isStillThere())
      ? 'moved'
      : expected !== null && stateOf(await lstat(place.file)) !== expected
        ? 'changed'
        : null;
    if (problem) {
      await rm(temporary, { force: true });
      return refused(problem);
    }
    // A rename replaces what stands there, also a link that was put there since, and never follows it.
    await rename(temporary, place.file);
    return null;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function openTemporary(place: Place, mode: number | null): Promise<{ temporary: string; handle: FileHandle }> {
  for (let n = 0; ; n += 1) {
    const temporary = place.beside(`.turnkeep-${process.pid}-${n}.tmp`);
    try {
      return { temporary, handle: await open(temporary, 'wx', mode ?? 0o666) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || n === MOST_NAMES) throw error;
    }
  }
}
