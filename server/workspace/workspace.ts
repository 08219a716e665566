/**
 * The files of one session's workspace: the only code that touches them. Paths never leave it (RU3 and TL1, held by
 * guard.ts and write-guard.ts); what is given is bounded and what was cut is said.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { createSessionLock, type SessionLock } from '../sessions/session-lock.ts';
import type { Listed } from './folder.ts';
import { listFolder } from './folder.ts';
import type { Opened, Refused } from './guard.ts';
import { folderPath, openInside, problemOf } from './guard.ts';
import { type Lines, readLines, readText, type Text } from './lines.ts';
import { type Change, MAX_EDIT_BYTES, type Replaced, replaceInside } from './replace.ts';
import type { SearchFound } from './search.ts';
import { searchFiles } from './search.ts';
import { nameOfPlace } from './write-guard.ts';

export const MAX_ENTRIES = 200;
export const MAX_LINES = 400;

export type Read = { ok: true /** From the root. */; name: string; size: number; lines: Lines } | Refused;

export type TextRead = { ok: true; name: string; size: number; text: Text } | Refused;

export interface Workspace {
  /** As the session names it: absolute. */
  readonly root: string;
  /** The entries of a folder, at most `limit` and never more than 200. */
  list(path: string, limit?: number): Promise<Listed | Refused>;
  /** Lines of a text file: `offset` is the first line from 1, `limit` at most 400 lines; at most 64 kB. */
  read(path: string, options?: { offset?: number; limit?: number; signal?: AbortSignal }): Promise<Read>;
  /** Lines of a text file as they stand there, with their ends; whole, or not at all when they have more than 4 MB. */
  readText(path: string, options: { line: number; limit: number; signal: AbortSignal }): Promise<TextRead>;
  /** Where a file would be written. */
  place(path: string): Promise<{ ok: true /** From the root. */; name: string } | Refused>;
  /** Files below `path` whose name or text has `query`, whatever its case; at most 100 hits. */
  search(query: string, options?: { path?: string; signal?: AbortSignal }): Promise<SearchFound | Refused>;
  /** Replaces a file as a whole by what `change` makes of it; with `create` it may be new, and so may its folders. */
  replace<R>(
    path: string,
    options: { create: boolean; signal: AbortSignal },
    change: Change<R>,
  ): Promise<Replaced | Refused | { ok: null; refusal: R }>;
  /**
   * Opens a folder for something that is to start in it: `path` means that very folder while `use` runs.
   * @returns what `use` gives, or why the folder cannot be had
   */
  inFolder<T>(path: string, use: (folder: string) => Promise<T>): Promise<{ ok: true; value: T } | Refused>;
}

/** Opens workspaces by their roots, for as many turns as there are: those in one folder know of each other's changes. */
export function createWorkspaces(): (root: string) => Workspace {
  const lock = createSessionLock();
  return (root) => openWorkspace(root, lock);
}

/**
 * The workspace at `root`. Touches nothing yet: a root that is missing is found out by each call, because
 * it may come and go while a session lives.
 * @param root absolute path of a folder
 * @param lock held by the root while a file is changed: calls side by side must not undo each other's changes
 */
export function openWorkspace(root: string, lock: SessionLock = createSessionLock()): Workspace {
  return {
    root,
    list: (path, limit = MAX_ENTRIES) => listFolder(root, path, bounded(limit, MAX_ENTRIES), true),
    read: (path, { offset = 1, limit = MAX_LINES, signal } = {}) =>
      inFile(root, path, async ({ handle, name, size }) => {
        const from = bounded(offset, Number.MAX_SAFE_INTEGER);
        return { ok: true, name, size, lines: await readLines(handle, from, bounded(limit, MAX_LINES), signal) };
      }),
    readText: (path, { line, limit, signal }) =>
      inFile(root, path, async ({ handle, name, size }) => {
        return { ok: true, name, size, text: await readText(handle, line, limit, MAX_EDIT_BYTES, signal) };
      }),
    place: (path) => nameOfPlace(root, path),
    search: (query, { path = '.', signal } = {}) => searchFiles(root, query, path, signal),
    replace: (path, options, change) => lock(root, () => replaceInside(root, path, options, change)),
    async inFolder(path, use) {
      const opened = await openInside(root, path, 'directory');
      if (!opened.ok) return opened;
      try {
        return { ok: true, value: await use(await folderPath(opened)) };
      } finally {
        await opened.handle.close();
      }
    },
  };
}

async function inFile<T>(root: string, path: string, use: (file: Opened) => Promise<T>): Promise<T | Refused> {
  const opened = await openInside(root, path, 'file');
  if (!opened.ok) return opened;
  try {
    return await use(opened);
  } catch (error) {
    return { ok: false, problem: problemOf(error) };
  } finally {
    await opened.handle.close();
  }
}

const bounded = (value: number, most: number): number => Math.min(Math.max(1, Math.trunc(value) || 1), most);

export type WorkspaceCheck = 'ok' | 'missing' | 'not_a_directory' | 'not_absolute' | 'unreadable';

/** Whether a folder can be a workspace. */
export async function checkWorkspace(path: string): Promise<WorkspaceCheck> {
  if (!isAbsolute(path)) return 'not_absolute';
  if (path.includes('\0')) return 'missing';
  try {
    if (!(await stat(path)).isDirectory()) return 'not_a_directory';
    await access(path, constants.R_OK | constants.X_OK);
    return 'ok';
  } catch (error) {
    return problemOf(error) === 'unreadable' ? 'unreadable' : 'missing';
  }
}
