/**
 * The files of a home that is imported, which are only read, and their copies in ours. A name becomes a path only when it
 * is checked, no link is followed, and what is copied is bounded; a copy is whole or not there (IM6).
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { isRunId, isSessionId } from '../../server/core/ids.ts';
import { namesIn } from './absent.ts';
import { isMissing, makeFolder, syncFolder } from './atomic.ts';
import type { Paths } from './paths.ts';

/** Largest file that is taken for a sidecar or a document, attachment, or journal. */
const MAX_BYTES = 512 * 1024 * 1024;
/** Most files that one conversation brings of a kind. */
const MAX_FILES = 5_000;

/** What stands where an import is asked for. */
export type ImportPlace =
  | { kind: 'missing' }
  /** A pipe, say. */
  | { kind: 'neither' }
  | { kind: 'file'; beginning: Buffer; size: number }
  | { kind: 'folder'; stateDb: string | null; sidecars: string | null; base: string };

export interface SourceFile {
  name: string;
  /** Absolute. */
  path: string;
  bytes: number;
}

export type CopyOutcome = 'copied' | 'there' | 'too_big' | 'gone';

/** Whether a system error says that a file cannot be had: it is missing, a link, not ours to read, or broken. */
export const isUnreadable = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error &&
  'code' in error &&
  /^E(NOENT|NOTDIR|LOOP|ACCES|PERM|IO|ISDIR|NAMETOOLONG)$/.test(String(error.code));

async function statsOf(file: string): Promise<Stats | null> {
  try {
    return await stat(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** @throws the system's error where it may not be looked at */
export async function lookAtImport(place: string): Promise<ImportPlace> {
  const stats = await statsOf(place);
  if (!stats) return { kind: 'missing' };
  if (!stats.isDirectory()) {
    if (!stats.isFile()) return { kind: 'neither' };
    const handle = await open(place, 'r');
    try {
      const beginning = Buffer.alloc(16);
      const { bytesRead } = await handle.read(beginning, 0, 16, 0);
      return { kind: 'file', beginning: beginning.subarray(0, bytesRead), size: stats.size };
    } finally {
      await handle.close();
    }
  }
  const has = async (...names: string[]): Promise<string | null> => {
    const inside = path.join(place, ...names);
    return (await statsOf(inside)) ? inside : null;
  };
  const stateDb = await has('state.db');
  // Hermes' own home has the folder of its web page in it; its own `sessions` holds no sidecars then.
  const page = (await has('webui', 'sessions')) as string | null;
  const sidecars = page ?? (await has('sessions')) ?? (stateDb ? null : place);
  return { kind: 'folder', stateDb, sidecars, base: sidecars === null ? place : path.dirname(sidecars) };
}

/** The one name of a place, whatever links lead there. */
export const realPlace = (place: string): Promise<string> => realpath(place);

/** Sessions that a folder has sidecars of, live ones and backups. */
export async function sidecarsIn(folder: string): Promise<string[]> {
  const ids = (await namesIn(folder)).flatMap((name) => /^([^.]+)\.json(?:\.bak)?$/.exec(name)?.[1] ?? []);
  return [...new Set(ids)].filter(isSessionId);
}

/** A JSON file as its value; a string says why it is none. @throws the system's error */
export async function readJson(file: string): Promise<{ value: unknown } | string> {
  const stats = await stat(file);
  // A pipe would never end.
  if (!stats.isFile()) return 'it is no file';
  if (stats.size > MAX_BYTES) return 'the file is too big';
  const text = await readFile(file, 'utf8');
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    if (error instanceof SyntaxError) return text.trim() === '' ? 'the file is empty' : 'the file is not JSON';
    throw error;
  }
}

/**
 * The regular files of a session's folder; links and what is not a file are left out.
 * @param folder where each session has one
 */
export async function filesOf(folder: string, sessionId: string): Promise<SourceFile[]> {
  const own = path.join(folder, sessionId);
  if (!isSessionId(sessionId) || !(await isRealFolder(folder)) || !(await isRealFolder(own))) return [];
  const found: SourceFile[] = [];
  for (const name of (await namesIn(own)).slice(0, MAX_FILES)) {
    const file = path.join(own, name);
    const stats = await lstat(file).catch(() => null);
    if (stats?.isFile()) found.push({ name, path: file, bytes: stats.size });
  }
  return found;
}

/** Whether a folder is there itself: a link may lead anywhere. */
const isRealFolder = async (folder: string): Promise<boolean> =>
  (await lstat(folder).catch(() => null))?.isDirectory() === true;

/** A file that a row names by its path, if it lies below one of these folders and no link leads out of them. */
export async function fileBelow(roots: readonly string[], file: string): Promise<SourceFile | null> {
  if (!path.isAbsolute(file) || file.includes('\0')) return null;
  try {
    const real = await realpath(file);
    if (!roots.some((root) => real.startsWith(`${root}${path.sep}`))) return null;
    const stats = await lstat(real);
    return stats.isFile() ? { name: path.basename(file), path: real, bytes: stats.size } : null;
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

/** Run journals of a session there. */
export async function journalsIn(folder: string, sessionId: string): Promise<{ runId: string; file: SourceFile }[]> {
  const files = await filesOf(path.join(folder, '_run_journal'), sessionId);
  return files.flatMap((file) => {
    const runId = /^([0-9a-f]+)\.jsonl$/.exec(file.name)?.[1] ?? '';
    return isRunId(runId) ? [{ runId, file }] : [];
  });
}

/** Copies an attachment under a checked name. One that is there with the same size is not copied again. */
export async function copyAttachment(
  paths: Paths,
  sessionId: string,
  file: SourceFile,
  name: string,
): Promise<CopyOutcome> {
  return copyWhole(file, paths.attachment(sessionId, name), null);
}

/**
 * Copies a journal. Its lines name their session: under another id here they are written with that one.
 */
export async function copyJournal(
  paths: Paths,
  journal: { runId: string; file: SourceFile },
  sessionId: string,
  originalId: string,
): Promise<CopyOutcome> {
  const target = paths.journal(sessionId, journal.runId);
  return copyWhole(journal.file, target, sessionId === originalId ? null : (line) => renamed(line, sessionId));
}

function renamed(line: string, sessionId: string): string {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('session_id' in value)) return line;
    return JSON.stringify({ ...value, session_id: sessionId });
  } catch (error) {
    if (error instanceof SyntaxError) return line;
    throw error;
  }
}

async function copyWhole(
  file: SourceFile,
  target: string,
  change: ((line: string) => string) | null,
): Promise<CopyOutcome> {
  if (file.bytes > MAX_BYTES) return 'too_big';
  let source: FileHandle;
  try {
    // Whatever came to stand there since it was looked at: a link is not followed, a pipe not waited for.
    source = await open(file.path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isUnreadable(error)) return 'gone';
    throw error;
  }
  try {
    const stats = await source.stat();
    if (!stats.isFile()) return 'gone';
    const there = await statsOf(target);
    // Journals only grow, and attachments never change.
    if (there && there.size >= stats.size && change === null) return 'there';
    await makeFolder(path.dirname(target));
    const temporary = `${target}.tmp.${process.pid}`;
    try {
      await writeCopy(source, temporary, change);
      await rename(temporary, target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(path.dirname(target));
    return 'copied';
  } catch (error) {
    if (error instanceof SourceBroken) return 'gone';
    throw error;
  } finally {
    await source.close();
  }
}

/** The source cannot be read on: no failure of our own disk. */
class SourceBroken extends Error {
  override name = 'SourceBroken';
}

function broken(cause: unknown): never {
  throw new SourceBroken('the source cannot be read', { cause });
}

async function writeCopy(
  source: FileHandle,
  temporary: string,
  change: ((line: string) => string) | null,
): Promise<void> {
  await rm(temporary, { force: true });
  const copy = await open(temporary, 'wx', 0o600);
  try {
    if (change) {
      for await (const line of source.readLines({ autoClose: false })) await copy.appendFile(`${change(line)}\n`);
    } else {
      const buffer = Buffer.allocUnsafe(262_144);
      for (let at = 0; ; ) {
        const { bytesRead } = await source.read(buffer, 0, buffer.length, at).catch(broken);
        if (bytesRead === 0) break;
        await copy.appendFile(buffer.subarray(0, bytesRead));
        at += bytesRead;
      }
    }
    await copy.datasync();
  } finally {
    await copy.close();
  }
}

/** Removes a folder of ours with what is in it; one that is not there is removed already. */
export const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });
