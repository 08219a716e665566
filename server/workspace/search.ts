/**
 * Searching the names and the text of a workspace's files. Bounded in hits, files and file size; what was left out is
 * counted and said. Links are not followed, so that a walk ends and stays inside.
 */
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { FolderEntry } from './folder.ts';
import { listFolder } from './folder.ts';
import type { Refused } from './guard.ts';
import { openInside, problemOf } from './guard.ts';

export const MAX_HITS = 100;
/** Larger files are skipped (bytes). */
export const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FILES = 10_000;
const MAX_HIT_CHARACTERS = 200;
const SKIPPED_FOLDERS = new Set(['node_modules', '.git']);

export interface SearchHit {
  /** From the root. */
  path: string;
  /** From 1; null when the file's name is what matched. */
  line: number | null;
  /** The line, trimmed and cut to 200 characters; the name when that matched. */
  text: string;
}

export interface SearchFound {
  ok: true;
  hits: SearchHit[];
  files: number;
  /** Files over 1 MB and binary files, whose text was not searched. */
  skipped: number;
  /** Why the search ended before all files were seen. */
  cut: 'hits' | 'files' | null;
}

/**
 * Finds a text, whatever its case, in the files below `path`.
 * @param root absolute path of the workspace
 * @returns the hits in the order of the paths, or why `path` cannot be searched
 */
export async function searchFiles(
  root: string,
  query: string,
  path: string,
  signal?: AbortSignal,
): Promise<SearchFound | Refused> {
  const needle = query.toLowerCase();
  const found: SearchFound = { ok: true, hits: [], files: 0, skipped: 0, cut: null };
  const start = await openInside(root, path, 'directory');
  if (!start.ok) {
    if (start.problem !== 'not_a_directory') return start;
    const problem = await searchOne(root, path, needle, found);
    return problem ?? found;
  }
  await start.handle.close();
  const folders = [start.name];
  for (let folder = folders.pop(); folder !== undefined && found.cut === null; folder = folders.pop()) {
    const below: string[] = [];
    for (const entry of await entriesOf(root, folder)) {
      if (signal?.aborted) return { ok: false, problem: 'aborted' };
      const name = join(folder, entry.name);
      if (entry.kind === 'directory') {
        if (!SKIPPED_FOLDERS.has(entry.name)) below.push(name);
        continue;
      }
      if (found.files >= MAX_FILES) found.cut = 'files';
      if (found.cut !== null) break;
      if (entry.name.toLowerCase().includes(needle)) addHit(found, { path: name, line: null, text: entry.name });
      await searchOne(root, name, needle, found);
    }
    folders.push(...below.reverse());
  }
  return found;
}

/** Adds the hits in one file. A file that went away or cannot be read is skipped; the refusal is for a caller that named it. */
async function searchOne(root: string, path: string, needle: string, found: SearchFound): Promise<Refused | null> {
  const opened = await openInside(root, path, 'file');
  if (!opened.ok) return opened;
  try {
    found.files++;
    const bytes = opened.size > MAX_FILE_BYTES ? null : await readWhole(opened.handle, opened.size);
    if (bytes === null || bytes.includes(0)) {
      found.skipped++;
      return null;
    }
    const text = bytes.toString('utf8');
    if (!text.toLowerCase().includes(needle)) return null;
    for (const [index, line] of text.split('\n').entries()) {
      if (found.cut !== null) break;
      if (line.toLowerCase().includes(needle)) {
        addHit(found, { path: opened.name, line: index + 1, text: around(line.trim(), needle) });
      }
    }
    return null;
  } catch (error) {
    return { ok: false, problem: problemOf(error) };
  } finally {
    await opened.handle.close();
  }
}

/** The first `size` bytes: a file that grows meanwhile is not followed. */
async function readWhole(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(bytes, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

function addHit(found: SearchFound, hit: SearchHit): void {
  if (found.hits.length < MAX_HITS) found.hits.push(hit);
  else found.cut = 'hits';
}

/** The part of a long line that has the hit. */
function around(line: string, needle: string): string {
  if (line.length <= MAX_HIT_CHARACTERS) return line;
  const at = line.toLowerCase().indexOf(needle);
  const from = Math.max(0, Math.min(at - 60, line.length - MAX_HIT_CHARACTERS));
  const part = line.slice(from, from + MAX_HIT_CHARACTERS);
  return `${from > 0 ? '…' : ''}${part}${from + part.length < line.length ? '…' : ''}`.toWellFormed();
}

/** The entries of a folder in order of name; none when it went away or cannot be read. */
async function entriesOf(root: string, folder: string): Promise<FolderEntry[]> {
  const listed = await listFolder(root, folder, MAX_FILES);
  return listed.ok ? listed.entries.filter((entry) => entry.kind === 'file' || entry.kind === 'directory') : [];
}
