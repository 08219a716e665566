/**
 * Attachments: the files that a session was given, `attachments/<session>/<id>.<name>`. A file is whole or not there: it
 * is written beside its place under a name that begins with a dot, and renamed (AT2). It never changes after that.
 */
import { constants } from 'node:fs';
import { copyFile, type FileHandle, link, open, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import {
  attachmentOfFile,
  fileOfAttachment,
  isAttachmentId,
  isOwnAttachmentId,
} from '../../server/core/attachment-names.ts';
import { isSessionId } from '../../server/core/ids.ts';
import { namesIn, orNull } from './absent.ts';
import { isMissing, makeFolder, syncFolder } from './atomic.ts';
import type { Paths } from './paths.ts';
import { openOwnFile } from './plain-file.ts';

export interface AttachmentEntry {
  id: string;
  name: string;
}

/** An attachment that is open for reading; whoever has it closes it. */
export interface OpenAttachment extends AttachmentEntry {
  /** Bytes. */
  size: number;
  /** Milliseconds since the epoch. */
  changedAt: number;
  /** The first bytes, as many as there are up to this. */
  first(bytes: number): Promise<Buffer>;
  /** All bytes; closes the file at its end. */
  stream(): Readable;
  close(): Promise<void>;
}

/** A file that is being written: `finish` and `keep` end it, or `discard` at any moment. */
export interface IncomingAttachment {
  write(bytes: Uint8Array): Promise<void>;
  /** Nothing more is written: makes the bytes durable. @returns how many there are */
  finish(): Promise<number>;
  /** Gives it its name, durably. */
  keep(): Promise<void>;
  /** Leaves nothing of it. */
  discard(): Promise<void>;
}

export interface AttachmentStore {
  /** In the order of their files' names. */
  list(sessionId: string): Promise<AttachmentEntry[]>;
  /** @returns null when there is none of this id */
  open(sessionId: string, id: string): Promise<OpenAttachment | null>;
  /** @param entry an id of ours and a safe name */
  begin(sessionId: string, entry: AttachmentEntry): Promise<IncomingAttachment>;
  /** Gives another session these files as well, under the same ids; what is missing is left out. */
  share(from: string, to: string, ids: readonly string[]): Promise<void>;
  /** Takes a file back that was kept. */
  remove(sessionId: string, entry: AttachmentEntry): Promise<void>;
  removeAll(sessionId: string): Promise<void>;
  /**
   * Removes what uploads left whose process died.
   * @param isRunning whether there is a process with this pid
   * @param now milliseconds since the epoch; what nobody has written to for an hour has no writer, whatever its pid
   * @returns how many files
   */
  removeUnfinished(isRunning: (pid: number) => boolean, now: number): Promise<number>;
}

/** A file that is being written, by the process with this pid. */
const UNFINISHED = /^\.[0-9a-f]{32}\.tmp\.(\d+)\.\d+$/;
const STALE_MS = 3_600_000;

export function createAttachmentStore(paths: Paths): AttachmentStore {
  /** Names of the files that this process is writing. */
  const writing = new Set<string>();

  async function fileOf(sessionId: string, id: string): Promise<string | null> {
    if (!isAttachmentId(id)) return null;
    if (!isOwnAttachmentId(id)) return id;
    const start = fileOfAttachment(id, '');
    return (await namesIn(paths.attachments(sessionId))).find((name) => name.startsWith(start)) ?? id;
  }

  /** An empty folder says nothing. */
  async function removeIfEmpty(folder: string): Promise<void> {
    try {
      await rmdir(folder);
    } catch (error) {
      if (!isMissing(error) && !hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }

  return {
    async list(sessionId) {
      const names = await namesIn(paths.attachments(sessionId));
      return names.map(attachmentOfFile).filter((entry) => entry !== null);
    },

    async open(sessionId, id) {
      const file = await fileOf(sessionId, id);
      const entry = file === null ? null : attachmentOfFile(file);
      if (file === null || entry === null) return null;
      const handle = await openOwnFile(paths.attachment(sessionId, file));
      if (!handle) return null;
      try {
        const { size, mtimeMs } = await handle.stat();
        // Under the id by which it was asked for: an imported name may look like one of ours.
        return opened({ id, name: entry.name }, handle, size, mtimeMs);
      } catch (error) {
        await handle.close();
        throw error;
      }
    },

    async begin(sessionId, { id, name }) {
      const target = paths.attachment(sessionId, fileOfAttachment(id, name));
      const folder = path.dirname(target);
      const temporary = path.join(folder, `.${id}.tmp.${process.pid}.0`);
      writing.add(path.basename(temporary));
      const discard = async (): Promise<void> => {
        await rm(temporary, { force: true });
        writing.delete(path.basename(temporary));
        await removeIfEmpty(folder);
      };
      let handle: FileHandle;
      try {
        handle = await openIn(folder, temporary);
      } catch (error) {
        await discard();
        throw error;
      }
      let size = 0;
      return {
        async write(bytes) {
          await handle.writeFile(bytes);
          size += bytes.length;
        },
        async finish() {
          await handle.sync();
          await handle.close();
          return size;
        },
        async keep() {
          await rename(temporary, target);
          writing.delete(path.basename(temporary));
          await syncFolder(folder);
        },
        async discard() {
          await handle.close();
          await discard();
        },
      };
    },

    async share(from, to, ids) {
      let shared = false;
      for (const id of new Set(ids)) {
        const name = await fileOf(from, id);
        if (name === null) continue;
        const source = paths.attachment(from, name);
        if (!(await isFile(source))) continue;
        if (!shared) await makeFolder(paths.attachments(to));
        shared = true;
        await linkOrCopy(source, paths.attachment(to, name));
      }
      if (shared) await syncFolder(paths.attachments(to));
    },

    async remove(sessionId, { id, name }) {
      await rm(paths.attachment(sessionId, fileOfAttachment(id, name)), { force: true });
      await removeIfEmpty(paths.attachments(sessionId));
    },

    // What comes into the folder meanwhile goes with it at another try.
    removeAll: (sessionId) => rm(paths.attachments(sessionId), { recursive: true, force: true, maxRetries: 5 }),

    async removeUnfinished(isRunning, now) {
      let removed = 0;
      const root = path.join(paths.home, 'attachments');
      for (const session of (await namesIn(root)).filter(isSessionId)) {
        const folder = paths.attachments(session);
        const before = removed;
        for (const name of await namesIn(folder)) {
          const pid = Number(UNFINISHED.exec(name)?.[1] ?? Number.NaN);
          if (Number.isNaN(pid) || writing.has(name)) continue;
          // The first process of a container has the pid of the one that was killed.
          const hasWriter = pid !== process.pid && isRunning(pid);
          const file = path.join(folder, name);
          if (hasWriter && now - ((await orNull(stat(file)))?.mtimeMs ?? now) < STALE_MS) continue;
          await rm(file, { force: true });
          removed += 1;
        }
        if (removed > before) await removeIfEmpty(folder);
      }
      return removed;
    },
  };
}

function opened(entry: AttachmentEntry, handle: FileHandle, size: number, changedAt: number): OpenAttachment {
  return {
    ...entry,
    size,
    changedAt,
    async first(bytes) {
      const buffer = Buffer.alloc(Math.min(bytes, size));
      let at = 0;
      while (at < buffer.length) {
        const { bytesRead } = await handle.read(buffer, at, buffer.length - at, at);
        if (bytesRead === 0) break;
        at += bytesRead;
      }
      return buffer.subarray(0, at);
    },
    stream: () => handle.createReadStream({ start: 0 }),
    close: () => handle.close(),
  };
}

/** Opens a new file in a folder that is made if it has to be; uploads beside it may take it away, empty, while it is made too. */
async function openIn(folder: string, file: string): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    try {
      await makeFolder(folder);
      return await open(file, 'wx', 0o600);
    } catch (error) {
      if (!isMissing(error) || tries >= 20) throw error;
    }
  }
}

/** The file never changes, so two names may share it; not every file system can. */
async function linkOrCopy(source: string, target: string): Promise<void> {
  try {
    await link(source, target);
  } catch (error) {
    if (hasCode(error, 'EEXIST') || isMissing(error)) return;
    if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'EXDEV', 'ENOSYS')) throw error;
    await copyFile(source, target, constants.COPYFILE_EXCL);
  }
}

const isFile = async (file: string): Promise<boolean> => (await orNull(stat(file)))?.isFile() === true;

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code));
