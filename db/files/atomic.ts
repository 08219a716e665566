/** Durable replacement of a file, durable creation of a folder, durable removal (SC1). */
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
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
  const isDirectory = (await stat(place)).isDirectory();
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

const isTaken = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EEXIST';

/** Whether a system error says that something is not there. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
