/**
 * Listing one folder of a workspace. Bounded: what is not given is counted, and what is not counted is said. Links are
 * named, never followed.
 */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Refused } from './guard.ts';
import { folderPath, openInside, problemOf } from './guard.ts';

const MAX_COUNTED = 20_000;

export interface FolderEntry {
  name: string;
  kind: 'file' | 'directory' | 'link' | 'other';
}

export interface Listed {
  ok: true;
  /** From the root, `.` for the root itself. */
  name: string;
  /** Folders and files in order of name. */
  entries: (FolderEntry & { /** Bytes; of files only. */ size?: number })[];
  /** How many entries there are, as far as they were counted. */
  total: number;
  /** There are more than `total`. */
  uncounted: boolean;
}

/**
 * Lists a folder.
 * @param limit most entries that are given; the others are counted
 * @param sizes also ask for the sizes of the files that are given
 */
export async function listFolder(root: string, path: string, limit: number, sizes = false): Promise<Listed | Refused> {
  const opened = await openInside(root, path, 'directory');
  if (!opened.ok) return opened;
  try {
    const folder = await folderPath(opened);
    const entries: Listed['entries'] = [];
    let uncounted = false;
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      if (entries.length === MAX_COUNTED) {
        uncounted = true;
        break;
      }
      entries.push({
        name: entry.name,
        kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'link' : 'other',
      });
    }
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    const total = entries.length;
    entries.length = Math.min(total, limit);
    if (sizes) {
      for (const entry of entries) {
        if (entry.kind === 'file') entry.size = await sizeOf(join(folder, entry.name));
      }
    }
    return { ok: true, name: opened.name, entries, total, uncounted };
  } catch (error) {
    return { ok: false, problem: problemOf(error) };
  } finally {
    await opened.handle.close();
  }
}

/** Bytes of a file; undefined when it went away. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await lstat(path)).size;
  } catch (error) {
    problemOf(error);
    return undefined;
  }
}
