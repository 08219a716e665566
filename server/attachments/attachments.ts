/**
 * The files that people give to a session (AT): taken in, looked at, given out, and read for a turn. What a file is comes
 * from its bytes, what it is called from its sender, made safe; which session may have it from where it stands.
 */
import type { Readable } from 'node:stream';
import type { AttachmentStore, IncomingAttachment, OpenAttachment } from '../../db/files/attachment-store.ts';
import type { Stores } from '../../db/stores.ts';
import { attachmentName } from '../core/attachment-names.ts';
import { HEAD_BYTES, sniffType } from '../core/file-kinds.ts';
import { AppError } from '../errors.ts';
import type { TurnAttachment } from '../runners/runner.ts';
import type { SessionLock } from '../sessions/session-lock.ts';
import type { Sessions } from '../sessions/sessions.ts';

/** What a client is told of an attachment. */
export interface AttachmentView {
  id: string;
  /** For people; safe as the name of a file. */
  name: string;
  /** By its bytes. */
  mime: string;
  /** Bytes. */
  size: number;
}

/** A file that a client sends. Exactly one of `keep` and `discard` ends it. */
export interface Upload {
  /** @throws AppError too_large past the bound, and storage trouble; call `discard` then */
  write(bytes: Uint8Array): Promise<void>;
  /** All of it is there. @throws AppError session_not_found, too_many_attachments; nothing is left then */
  keep(): Promise<AttachmentView>;
  discard(): Promise<void>;
}

export interface Download {
  attachment: AttachmentView;
  /** Tells this file from every other; opaque. */
  tag: string;
  stream(): Readable;
  /** For whoever does not read the stream to its end. */
  close(): Promise<void>;
}

export interface AttachmentsParts {
  store: AttachmentStore;
  stores: Pick<Stores, 'sessions'>;
  sessions: Pick<Sessions, 'get'>;
  lock: SessionLock;
  /** Most bytes of one file. */
  maxBytes: number;
  /** 32 hexadecimal digits, new each time. */
  newId(): string;
}

export interface Attachments {
  maxBytes: number;
  /** Begins to take a file in. @throws AppError session_not_found, also for a session without a row yet */
  begin(sessionId: string, name: string): Promise<Upload>;
  /** @throws AppError session_not_found, attachment_not_found */
  open(sessionId: string, id: string): Promise<Download>;
  /** @throws AppError session_not_found */
  list(sessionId: string): Promise<AttachmentView[]>;
  /** Which of these the session does not have. */
  missing(sessionId: string, ids: readonly string[]): Promise<string[]>;
  /** The names of all that a session has, by their ids. */
  names(sessionId: string): Promise<Map<string, string>>;
  /** @returns null when the session has none of this id (any more) */
  forTurn(sessionId: string, id: string): Promise<TurnAttachment | null>;
}

/** Most files that are taken in for one session. */
export const MAX_ATTACHMENTS = 500;

export function createAttachments(parts: AttachmentsParts): Attachments {
  const { store, stores, sessions, lock, maxBytes } = parts;

  const tooMany = () => new AppError('too_many_attachments');

  /** Under the lock of the session's files: nobody deletes it meanwhile in this process, and two uploads count each other. */
  async function keep(sessionId: string, file: IncomingAttachment): Promise<void> {
    if (!(await stores.sessions.get(sessionId))) throw new AppError('session_not_found');
    if ((await store.list(sessionId)).length >= MAX_ATTACHMENTS) throw tooMany();
    await file.keep();
    // Another process may have deleted it, and not have seen what came in just now.
    if (!(await stores.sessions.get(sessionId))) throw new AppError('session_not_found');
  }

  /** Looks at one that is there; the caller closes it. */
  async function look(sessionId: string, id: string): Promise<[OpenAttachment, AttachmentView] | null> {
    const file = await store.open(sessionId, id);
    if (!file) return null;
    try {
      const { name, size } = file;
      return [file, { id, name, mime: sniffType(await file.first(HEAD_BYTES)), size }];
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async function viewOf(sessionId: string, id: string): Promise<AttachmentView | null> {
    const found = await look(sessionId, id);
    await found?.[0].close();
    return found?.[1] ?? null;
  }

  return {
    maxBytes,

    async begin(sessionId, rawName) {
      await sessions.get(sessionId);
      // Early, so that nobody sends for nothing; what counts is the count when it is kept.
      if ((await store.list(sessionId)).length >= MAX_ATTACHMENTS) throw tooMany();
      const entry = { id: parts.newId(), name: attachmentName(rawName) };
      const file = await store.begin(sessionId, entry);
      let size = 0;
      let head: Uint8Array = Buffer.alloc(0);
      return {
        async write(bytes) {
          size += bytes.length;
          if (size > maxBytes) throw tooLarge(maxBytes);
          if (head.length < HEAD_BYTES) head = Buffer.concat([head, bytes]).subarray(0, HEAD_BYTES);
          await file.write(bytes);
        },
        async keep() {
          try {
            const kept = await file.finish();
            await lock(sessionId, () => keep(sessionId, file));
            return { ...entry, mime: sniffType(head), size: kept };
          } catch (error) {
            await file.discard();
            await store.remove(sessionId, entry);
            throw error;
          }
        },
        discard: () => file.discard(),
      };
    },

    async open(sessionId, id) {
      await sessions.get(sessionId);
      const found = await look(sessionId, id);
      if (!found) throw new AppError('attachment_not_found');
      const [file, attachment] = found;
      return {
        attachment,
        tag: `${file.size.toString(36)}-${Math.floor(file.changedAt).toString(36)}`,
        stream: () => file.stream(),
        close: () => file.close(),
      };
    },

    async list(sessionId) {
      await sessions.get(sessionId);
      const views: AttachmentView[] = [];
      for (const { id } of await store.list(sessionId)) {
        const view = await viewOf(sessionId, id);
        if (view) views.push(view);
      }
      return views;
    },

    async missing(sessionId, ids) {
      const there = new Set((await store.list(sessionId)).map(({ id }) => id));
      return ids.filter((id) => !there.has(id));
    },

    names: async (sessionId) => new Map((await store.list(sessionId)).map(({ id, name }) => [id, name])),

    async forTurn(sessionId, id) {
      const view = await viewOf(sessionId, id);
      if (!view) return null;
      const { name, mime, size } = view;
      return {
        name,
        mime,
        size,
        async read(limit) {
          const file = await store.open(sessionId, id);
          if (!file) return Buffer.alloc(0);
          return file.first(limit).finally(() => file.close());
        },
      };
    },
  };
}

/** The refusal of a file that is larger than the configuration allows. */
export const tooLarge = (maxBytes: number): AppError =>
  new AppError('too_large', `The file is larger than ${maxBytes} bytes, which is the most here (limits.upload_mb).`);
