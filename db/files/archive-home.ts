/**
 * Copying the files of a home while a server works on them.
 *
 * What makes a copy right is how each kind of file is written: a sidecar is only ever replaced, so an open one stays as it
 * is; a journal is only ever appended to, so its first bytes stay as they are. Any other file is copied again until it
 * stood still. Links are never followed: what they lead to is not of the home.
 */
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSessionId } from '../../server/core/ids.ts';
import type { ManifestFile } from './archive-manifest.ts';
import { isSafeName } from './archive-tar.ts';
import { isMissing, makeFolder } from './atomic.ts';
import { openOwnFile } from './plain-file.ts';
import { parseSidecar } from './sidecar-text.ts';

export interface HomeListing {
  /** Every file, as its path in the home. */
  files: string[];
  /** What is not copied: links, sockets and the like, and names that no archive can hold. */
  left: string[];
}

/** Where backups are kept when nobody names another place. They are in no backup. */
export const BACKUPS = 'backups';

/**
 * Not copied: the database, which has its own way, the copies of it before a migration, those of a repair, which may hold what
 * was deleted since, the notes of commands that run, the scratch folders of agents, and what is being written.
 */
const isTransient = (name: string): boolean =>
  name === BACKUPS ||
  name === 'commands' ||
  name === 'agent-folders' ||
  /^state\.db($|-(wal|shm|journal)$|\.before-schema-)/.test(name) ||
  /^doctor-\d{8}T\d{6}Z(-\d+)?$/.test(name) ||
  /\.tmp\.\d+\.\d+$/.test(name);

/** Lists what of a home is to be copied, in the order of names. */
export async function listHome(home: string): Promise<HomeListing> {
  const listing: HomeListing = { files: [], left: [] };
  const visit = async (folder: string): Promise<void> => {
    const entries = await readdir(path.join(home, folder), { withFileTypes: true }).catch((error) => {
      if (isMissing(error)) return []; // Deleted meanwhile.
      throw error;
    });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (isTransient(name)) continue;
      if (!isSafeName(name) || name.includes('\uFFFD')) listing.left.push(name);
      else if (entry.isDirectory()) await visit(name);
      else if (entry.isFile()) listing.files.push(name);
      else listing.left.push(name);
    }
  };
  await visit('');
  return listing;
}

/** The session whose transcript a file is; null for any other. */
export function sidecarOf(name: string): string | null {
  const [, id = ''] = /^sessions\/([^/]+)\.json$/.exec(name) ?? [];
  return isSessionId(id) ? id : null;
}

/** The session and the run whose journal a file is, or is a copy of a torn one; null for any other. */
export function journalOf(name: string): { sessionId: string; runId: string } | null {
  const [, sessionId, runId] = /^sessions\/_run_journal\/([^/]+)\/([^/.]+)\.jsonl(?:\.[^/]*)?$/.exec(name) ?? [];
  return sessionId !== undefined && runId !== undefined ? { sessionId, runId } : null;
}

/** The session that a file below `sessions` belongs to, by its name; null for any other. */
export function sessionOf(name: string): string | null {
  const [, ofJournal, ofSidecar] = /^sessions\/(?:_run_journal\/([^/]+)\/.+|([^/.]+)\.json[^/]*)$/.exec(name) ?? [];
  return ofJournal ?? ofSidecar ?? null;
}

export type Copied =
  | { kind: 'copied'; file: ManifestFile; damaged: boolean }
  /** It was deleted before it could be opened, or a link has taken its place. */
  | { kind: 'gone' };

export interface HomeCopy {
  home: string;
  /** The folder that gets the copies. */
  folder: string;
  signal: AbortSignal;
  onBytes(count: number): void;
}

/** How often a file that changes under the copy is copied again, and the pause before that, in milliseconds. */
const [TRIES, PAUSE_MS] = [8, 40];

/**
 * Copies one file under the same path, with its mode.
 * @returns what was copied; `damaged` when it is a sidecar that is none, as often as it was read
 */
export async function copyFile(copy: HomeCopy, name: string): Promise<Copied> {
  const target = path.join(copy.folder, name);
  await makeFolder(path.dirname(target));
  for (let tries = 1; ; tries += 1) {
    const source = await openOwnFile(path.join(copy.home, name));
    if (!source) return { kind: 'gone' };
    const { file, before, after } = await copyOnce(copy, name, target, source).finally(() => source.close());
    const damaged = await isDamaged(name, target);
    const isWhole = file.size === before.size && (journalOf(name) !== null || isSame(before, after));
    // What never stands still, such as a log, is kept as it was last.
    const isEnough = tries >= TRIES && file.size === before.size;
    if ((isWhole && !damaged) || isEnough) return { kind: 'copied', file, damaged };
    if (tries >= TRIES * 4) return { kind: 'gone' }; // It shrinks whenever it is read.
    await rm(target);
    await delay(PAUSE_MS, undefined, { signal: copy.signal }).catch(() => copy.signal.throwIfAborted());
  }
}

const isSame = (a: Stats, b: Stats): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs;

/** Copies as many bytes as the file had when it was opened. */
async function copyOnce(copy: HomeCopy, name: string, target: string, source: FileHandle) {
  const before = await source.stat();
  const hash = createHash('sha256');
  let size = 0;
  const out = await open(target, 'wx', (before.mode & 0o700) | 0o600);
  try {
    if (before.size > 0) {
      for await (const piece of source.createReadStream({ start: 0, end: before.size - 1, autoClose: false })) {
        copy.signal.throwIfAborted();
        hash.update(piece);
        size += piece.length;
        await out.writeFile(piece);
        copy.onBytes(piece.length);
      }
    }
    await out.utimes(before.atime, before.mtime);
  } finally {
    await out.close();
  }
  return { file: { path: name, size, sha256: hash.digest('hex') }, before, after: await source.stat() };
}

async function isDamaged(name: string, file: string): Promise<boolean> {
  const sessionId = sidecarOf(name);
  if (sessionId === null) return false;
  const handle = await open(file, 'r');
  try {
    return isDamagedSidecar(sessionId, await handle.readFile());
  } finally {
    await handle.close();
  }
}

/** Whether bytes are no sidecar of this session. */
export const isDamagedSidecar = (sessionId: string, bytes: Buffer): boolean =>
  typeof parseSidecar(sessionId, bytes) === 'string';

/** Describes a file that stands in the folder of the copies already. */
export async function describeFile(folder: string, name: string): Promise<ManifestFile> {
  const hash = createHash('sha256');
  let size = 0;
  const handle = await open(path.join(folder, name), 'r');
  try {
    for await (const piece of handle.createReadStream({ autoClose: false })) {
      hash.update(piece);
      size += piece.length;
    }
  } finally {
    await handle.close();
  }
  return { path: name, size, sha256: hash.digest('hex') };
}

/** Which of the places that a home cannot be copied without are links. */
export async function linksIn(home: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of ['state.db', 'sessions', 'sessions/_run_journal']) {
    const stats = await lstat(path.join(home, name)).catch((error) => {
      if (isMissing(error)) return null;
      throw error;
    });
    if (stats?.isSymbolicLink()) found.push(name);
  }
  return found;
}
