/**
 * What stands in a home, for `turnkeep doctor`: only looked at here, never changed. Copies and removals are `home-copies`.
 * Folders are read entry by entry and files one at a time, so that the longest single file bounds the memory.
 */
import { constants, type Stats } from 'node:fs';
import { access, lstat, open, opendir, readFile, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { parseForeign } from '../../server/core/foreign-journal/records.ts';
import { isMissing } from './atomic.ts';
import { backupCounts, type Candidate } from './foreign/backup-rule.ts';
import { parseJournal } from './journal.ts';
import { createPaths } from './paths.ts';
import { unpack } from './sidecar-rows.ts';
import { parseSidecar } from './sidecar-text.ts';

/** One file or folder of the home. */
export interface HomeEntry {
  /** From the home on, with slashes; '' is the home itself. */
  path: string;
  name: string;
  kind: 'file' | 'folder' | 'other';
  /** Bytes. */
  size: number;
  /** Epoch seconds. */
  changedAt: number;
  /** Permission bits. */
  mode: number;
  uid: number;
}

/** What the system says when a file may not or cannot be read. */
export interface Unreadable {
  kind: 'unreadable';
  code: string;
}

export type SidecarLook =
  | { kind: 'missing' }
  | Unreadable
  | { kind: 'damaged'; reason: string }
  /** `damage` says what stands among its rows and is no message. */
  | { kind: 'sound'; rows: number; repeatedIds: string[]; damage: string | null };

export type JournalLook =
  | { kind: 'missing' }
  | Unreadable
  | { kind: 'empty' }
  /** Of another program: only counted. */
  | { kind: 'foreign'; version: number | null; records: number }
  | {
      kind: 'ours';
      events: number;
      rest: 'none' | 'torn' | 'damaged';
      restBytes: number;
      /** Sessions that its events name. */
      sessions: string[];
    };

/** The files of the state DB before anybody opens it. */
export interface StateDbFiles {
  kind: 'missing' | 'folder' | 'file';
  /** Whether the file begins as a database does; an empty one may still have all it holds in its WAL. */
  begins: 'as a database' | 'empty' | 'otherwise';
  /** Who made it, as its header says; 0 when nobody is named. */
  applicationId: number;
  usesWal: boolean;
  bytes: number;
  /** Bytes of the WAL; null when there is none. */
  wal: number | null;
  hasSharedMemory: boolean;
}

export interface HomeFiles {
  /** @returns null when there is nothing of this name */
  entry(name: string): Promise<HomeEntry | null>;
  /** The entries of one folder, none when it is missing. @throws the system's error when it cannot be read */
  list(folder: string): AsyncGenerator<HomeEntry>;
  /**
   * Looks at the first bytes of `state.db`. Call it only while this process has no connection to it: to close the file
   * would let go of the locks that SQLite holds.
   */
  stateDb(): Promise<StateDbFiles>;
  sidecar(sessionId: string): Promise<SidecarLook>;
  /**
   * Looks at the `.bak` that another program left beside a sidecar.
   * @returns how many rows it has more, by that program's own rule; 0 where the sidecar is as it should be, or none is there
   */
  moreInBackup(sessionId: string): Promise<number>;
  journal(sessionId: string, runId: string): Promise<JournalLook>;
  isWritable(name: string): Promise<boolean>;
  isReadable(name: string): Promise<boolean>;
  /** Bytes that this user may still write, and the size of the file system. */
  space(): Promise<{ free: number; total: number }>;
}

/** Codes of files that are there and cannot be read; everything else is a bug and travels up. */
const UNREADABLE = new Set(['EACCES', 'EPERM', 'EIO', 'EISDIR', 'ELOOP', 'ESTALE']);

/** The code when an error says that something cannot be read; null for any other error. */
export function unreadableCode(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  return UNREADABLE.has(code) ? code : null;
}

function entryOf(name: string, stats: Stats): HomeEntry {
  return {
    path: name,
    name: path.posix.basename(name),
    kind: stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other',
    size: stats.size,
    changedAt: stats.mtimeMs / 1000,
    mode: stats.mode & 0o7777,
    uid: stats.uid,
  };
}

/** Reads a whole file; null when it is missing. */
async function bytesOf(file: string): Promise<Buffer | Unreadable | null> {
  try {
    return await readFile(file);
  } catch (error) {
    if (isMissing(error)) return null;
    const code = unreadableCode(error);
    if (code === null) throw error;
    return { kind: 'unreadable', code };
  }
}

/** A sidecar as the rule on backups looks at it; null when it is missing or none. */
async function candidateAt(file: string, sessionId: string): Promise<Candidate | null> {
  const bytes = await bytesOf(file);
  const parsed = Buffer.isBuffer(bytes) ? parseSidecar(sessionId, bytes) : '';
  if (typeof parsed === 'string') return null;
  return { header: parsed.header, rows: unpack(parsed.rows).length, tail: JSON.parse(parsed.tail.text) };
}

/** "SQLite format 3" and a zero. Source: the SQLite file format, section 1.3. */
const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');
const [READ_VERSION_AT, APPLICATION_ID_AT, HEADER] = [19, 68, 100];

export function createHomeFiles(home: string): HomeFiles {
  const paths = createPaths(home);
  const absolute = (name: string): string => path.join(home, name);

  const entry = async (name: string): Promise<HomeEntry | null> => {
    try {
      // The home itself may be a link to where it is.
      return entryOf(name, await (name === '' ? stat : lstat)(absolute(name)));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  };

  const isAllowed = async (name: string, mode: number): Promise<boolean> => {
    try {
      await access(absolute(name), mode);
      return true;
    } catch {
      return false;
    }
  };

  return {
    entry,

    async *list(folder) {
      try {
        for await (const { name } of await opendir(absolute(folder))) {
          // What went away since is none of the home's any more.
          const found = await entry(path.posix.join(folder, name));
          if (found) yield found;
        }
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },

    async stateDb() {
      const file = await entry('state.db');
      const wal = await entry('state.db-wal');
      const hasSharedMemory = (await entry('state.db-shm')) !== null;
      const about = { wal: wal?.size ?? null, hasSharedMemory, bytes: file?.size ?? 0 };
      const unknown = { begins: 'empty', applicationId: 0, usesWal: false } as const;
      if (!file) return { kind: 'missing', ...unknown, ...about };
      if (file.kind === 'folder') return { kind: 'folder', ...unknown, ...about };
      const handle = await open(absolute('state.db'), 'r');
      try {
        const header = Buffer.alloc(HEADER);
        const { bytesRead } = await handle.read(header, 0, HEADER, 0);
        if (bytesRead === 0) return { kind: 'file', ...unknown, ...about };
        const isDatabase = header.subarray(0, MAGIC.length).equals(MAGIC);
        return {
          kind: 'file',
          begins: isDatabase ? 'as a database' : 'otherwise',
          applicationId: header.readUInt32BE(APPLICATION_ID_AT),
          usesWal: header[READ_VERSION_AT] === 2,
          ...about,
        };
      } finally {
        await handle.close();
      }
    },

    async sidecar(sessionId) {
      const bytes = await bytesOf(paths.sidecar(sessionId));
      if (bytes === null) return { kind: 'missing' };
      if (!Buffer.isBuffer(bytes)) {
        return bytes.code === 'EISDIR' ? { kind: 'damaged', reason: 'there is a folder in its place' } : bytes;
      }
      const seen = new Set<string>();
      const repeated = new Set<string>();
      let rows = 0;
      const parsed = parseSidecar(sessionId, bytes, (found) => {
        rows = found.length;
        for (const { id } of found) {
          if (typeof id !== 'string') continue;
          if (seen.has(id)) repeated.add(id);
          seen.add(id);
        }
      });
      if (typeof parsed === 'string') return { kind: 'damaged', reason: parsed };
      return { kind: 'sound', rows, repeatedIds: [...repeated], damage: parsed.damage };
    },

    async moreInBackup(sessionId) {
      const live = await candidateAt(paths.sidecar(sessionId), sessionId);
      const backup = await candidateAt(`${paths.sidecar(sessionId)}.bak`, sessionId);
      if (!backup) return 0;
      if (!live) return backup.rows;
      // What an edit of ours took back is older than the file.
      const isEdited = typeof live.header.edit_number === 'number' && live.header.edit_number > 0;
      return !isEdited && backupCounts(live, backup) ? backup.rows - live.rows : 0;
    },

    async journal(sessionId, runId) {
      const bytes = await bytesOf(paths.journal(sessionId, runId));
      if (bytes === null) return { kind: 'missing' };
      if (!Buffer.isBuffer(bytes)) return bytes;
      const { records, validBytes, rest } = parseJournal(bytes, runId);
      const foreign = parseForeign(bytes.toString('utf8'));
      if (foreign.kind === 'empty') return { kind: 'empty' };
      // A journal whose very first line is broken is one of ours all the same, unless its good lines say otherwise.
      if (foreign.version === 1) return { kind: 'foreign', version: 1, records: foreign.records.length };
      return {
        kind: 'ours',
        events: records.length,
        rest,
        restBytes: bytes.length - validBytes,
        sessions: [...new Set(records.map(({ event }) => event.session_id))],
      };
    },

    isWritable: (name) => isAllowed(name, constants.W_OK),
    isReadable: (name) => isAllowed(name, constants.R_OK),

    async space() {
      const { bavail, blocks, bsize } = await statfs(home);
      return { free: bavail * bsize, total: blocks * bsize };
    },
  };
}
