/** Durable replacement of a file, durable creation of a folder, durable removal (SC1). */
import { constants } from 'node:fs';
import { copyFile, type FileHandle, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** Keeps temporary names of one process apart; a name, not state. */
let attempts = 0;

/** Makes a folder's entries durable: without this a power cut can undo a rename that "succeeded". */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a folder and its missing parents, each durable in its own parent. Mode 0700. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  const top = path.dirname(first);
  for (let at = folder; at !== top && at !== path.dirname(at); at = path.dirname(at))
    await syncFolder(path.dirname(at));
}

/**
 * Opens a new file beside the target. A name that is taken is left alone: it may be what a killed process left, for the
 * first process of a container always has the same pid, or what another one is writing right now.
 */
async function openTemporary(target: string): Promise<{ temporary: string; handle: FileHandle }> {
  for (;;) {
    attempts += 1;
    const temporary = `${target}.tmp.${process.pid}.${attempts}`;
    try {
      return { temporary, handle: await open(temporary, 'wx', 0o600) };
    } catch (error) {
      if (!isTaken(error)) throw error;
    }
  }
}

/**
 * Replaces a file as a whole or not at all: a temporary file in the same folder, fsync, rename, fsync of the folder.
 * @param chunks the content, in order
 * @param isStillWanted asked at the last moment; when not, nothing is replaced
 * @returns whether it was replaced
 * @throws the system's error; the old file is then as it was and nothing of the new one is left
 */
export async function replaceFile(
  target: string,
  chunks: readonly (string | Uint8Array)[],
  isStillWanted: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  const { temporary, handle } = await openTemporary(target);
  try {
    try {
      for (const chunk of chunks) await handle.writeFile(chunk);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (!(await isStillWanted())) {
      await rm(temporary, { force: true });
      return false;
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(target));
  return true;
}

/**
 * Makes something new under a name or, where that is taken, under the same with `-1`, `-2` and so on: what was put aside
 * before is never written over.
 * @param make makes it, and fails with EEXIST when the name is taken
 * @returns the name that was free, and what was made
 */
export async function underFreeName<T>(wanted: string, make: (name: string) => Promise<T>): Promise<[string, T]> {
  for (let n = 0; ; n += 1) {
    const name = n === 0 ? wanted : `${wanted}-${n}`;
    try {
      return [name, await make(name)];
    } catch (error) {
      if (!isTaken(error)) throw error;
    }
  }
}

/**
 * Moves something damaged out of its place, to `<name>.damaged-<time>`, over nothing. Nothing is ever deleted.
 * @param now epoch seconds
 * @returns the new name
 */
export async function moveAside(place: string, now: number): Promise<string> {
  const isDirectory = (await lstat(place)).isDirectory();
  // A rename replaces what it finds, so the name is taken first, by something empty of the same kind.
  const [aside] = await underFreeName(`${place}.damaged-${Math.floor(now)}`, async (name) => {
    if (isDirectory) await mkdir(name, { mode: 0o700 });
    else await (await open(name, 'wx', 0o600)).close();
  });
  try {
    await rename(place, aside);
  } catch (error) {
    await rm(aside, { recursive: isDirectory, force: true });
    throw error;
  }
  await syncFolder(path.dirname(place));
  return aside;
}

/**
 * Copies a file of which a part is damaged to `<name>.damaged-<time>`, over nothing. The file itself stays in its place.
 * @param now epoch seconds
 * @returns the name of the copy, which is durable
 */
export async function copyAside(file: string, now: number): Promise<string> {
  const [aside] = await underFreeName(`${file}.damaged-${Math.floor(now)}`, async (name) => {
    try {
      await copyFile(file, name, constants.COPYFILE_EXCL);
      await syncFile(name);
    } catch (error) {
      if (!isTaken(error)) await rm(name, { force: true });
      throw error;
    }
  });
  await syncFolder(path.dirname(file));
  return aside;
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Moves aside what stands in the place of a folder and is none, under the time at which it was last changed.
 * @returns its new name; null when there is nothing, or a folder
 */
export async function clearPlace(folder: string): Promise<string | null> {
  const found = await lstat(folder).catch(nothingMissing);
  // A link may lead to a folder elsewhere.
  const meant = found?.isSymbolicLink() ? await stat(folder).catch(nothingMissing) : found;
  return found && !meant?.isDirectory() ? await moveAside(folder, found.mtimeMs / 1000) : null;
}

function nothingMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

/** What stands beside a file or folder of ours under its name: put aside, half written, or another program's copy of before. */
const BESIDE = /^\.((damaged|torn)-\d+(-\d+)?|tmp\.\d+\.\d+|bak)$/;

/** Removes what stands beside a place under its name, so that nothing of what was deleted stays. */
export async function removeBeside(place: string): Promise<void> {
  const [folder, base] = [path.dirname(place), path.basename(place)];
  const names = (await readdir(folder).catch(nothingMissing)) ?? [];
  for (const name of names) {
    if (!name.startsWith(base) || !BESIDE.test(name.slice(base.length))) continue;
    await rm(path.join(folder, name), { recursive: true, force: true });
  }
}

const isTaken = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EEXIST';

/** Whether a system error says that something is not there. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

/** Whether a system error says that a folder is in the place of a file. */
export const isFolder = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EISDIR';
