/**
 * Sidecars: `sessions/<id>.json`, the transcript as the person sees it, with the fields of the running turn.
 *
 * One JSON object. Scalars come before `messages`, so a reader that wants only them need not parse the transcript: in a
 * file written by us (or by any writer that indents by two) the bytes newline, two spaces, `"messages": [` can stand
 * nowhere else, because JSON strings hold no raw newline. Rows are kept as serialised text: a save never stringifies
 * an old row again.
 */
import type { Stats } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import type { Message } from '../../server/core/terms.ts';
import { isMissing, makeFolder, replaceFile, syncFolder, underFreeName } from './atomic.ts';
import type { Paths } from './paths.ts';

/** The scalar fields, in the order of the file. Fields that we do not know are kept. */
export interface SidecarHeader {
  session_id: string;
  active_stream_id: string | null;
  pending_user_message: string | null;
  pending_attachments: string[];
  /** Epoch seconds. */
  pending_started_at: number | null;
  pending_user_source: string | null;
  /** Number of the edit that these rows have seen. */
  edit_number: number;
  message_count: number;
  [other: string]: unknown;
}

export interface SidecarRow {
  id: string;
  runId: string | null;
  role: string;
  /** The row as JSON text on one line. */
  json: string;
}

export interface Sidecar {
  header: SidecarHeader;
  rows: readonly SidecarRow[];
  /** The fields behind `messages`, `tool_calls` first, as they were found. */
  tail: Record<string, unknown>;
}

/** What tells one state of a file from another without reading it. */
export type FileIdentity = string;

export type SidecarRead =
  | { kind: 'missing' }
  | { kind: 'damaged'; reason: string }
  | { kind: 'found'; sidecar: Sidecar; identity: FileIdentity };

export interface SidecarStore {
  /** Identity of the file now, or null when there is none. */
  identity(sessionId: string): Promise<FileIdentity | null>;
  read(sessionId: string): Promise<SidecarRead>;
  /** Only the fields before `messages`; null when the file is missing or damaged. */
  readHeader(sessionId: string): Promise<SidecarHeader | null>;
  /** Replaces the file (SC1, SC2). Returns its new identity. */
  save(sessionId: string, sidecar: Sidecar): Promise<FileIdentity>;
  /** Moves a damaged file to `<name>.damaged-<time>`, over nothing. @param now epoch seconds; @returns the new name */
  moveAside(sessionId: string, now: number): Promise<string>;
  remove(sessionId: string): Promise<void>;
}

const MESSAGES_KEY = '\n  "messages": [';
/** What stands between the header and the rows. */
const MARK = `,${MESSAGES_KEY}`;

/** A transcript row as the sidecar keeps it. */
export function toSidecarRow(message: Message): SidecarRow {
  return { id: message.id, runId: message.run_id ?? null, role: message.role, json: JSON.stringify(message) };
}

const identityOf = (stats: Stats): FileIdentity =>
  `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;

/** Parses the text of a sidecar; a string says why it is none. */
export function parseSidecar(sessionId: string, text: string): Sidecar | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim() === '' ? 'the file is empty' : 'the file is not JSON';
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return 'the file is not a JSON object';
  const fields = Object.entries(value);
  const messages = fields.find(([key]) => key === 'messages')?.[1];
  if (!Array.isArray(messages)) return 'it has no list of messages';
  const at = fields.findIndex(([key]) => key === 'messages');
  const header = Object.fromEntries(fields.slice(0, at)) as SidecarHeader;
  if (header.session_id !== sessionId) return `it is of session ${JSON.stringify(header.session_id)}`;
  const rows: SidecarRow[] = [];
  for (const row of messages) {
    if (row === null || typeof row !== 'object' || typeof row.id !== 'string' || typeof row.role !== 'string') {
      return `row ${rows.length} is not a message`;
    }
    rows.push(toSidecarRow(row as Message));
  }
  return { header, rows, tail: Object.fromEntries(fields.slice(at + 1)) };
}

/** Parses the text before the transcript; null when that was no top-level field after all. */
function parseHeader(text: string): SidecarHeader | null {
  try {
    return JSON.parse(`${text}}`) as SidecarHeader;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const isFolder = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EISDIR';

/** The text of a sidecar, in chunks for `replaceFile`. */
export function serialiseSidecar(sidecar: Sidecar): string[] {
  const header = JSON.stringify({ ...sidecar.header, message_count: sidecar.rows.length }, null, 2);
  const rows = sidecar.rows.map((row) => `    ${row.json}`).join(',\n');
  // A file whose fields came in another order may have these before the transcript: no field is said twice.
  const fields = Object.entries({ tool_calls: [], ...sidecar.tail }).filter(
    ([key]) => key !== 'message_count' && !Object.hasOwn(sidecar.header, key),
  );
  const tail = fields.length ? `,${JSON.stringify(Object.fromEntries(fields), null, 2).slice(1)}` : '\n}';
  return [header.slice(0, -2), MARK, rows ? `\n${rows}\n  ]` : ']', tail, '\n'];
}

export function createSidecarStore(paths: Paths): SidecarStore {
  return {
    async identity(sessionId) {
      try {
        return identityOf(await stat(paths.sidecar(sessionId)));
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    },

    async read(sessionId) {
      const file = paths.sidecar(sessionId);
      try {
        const handle = await open(file, 'r');
        try {
          // Identity and content of the same file, whatever is renamed over it meanwhile.
          const identity = identityOf(await handle.stat());
          const sidecar = parseSidecar(sessionId, await handle.readFile('utf8'));
          return typeof sidecar === 'string'
            ? { kind: 'damaged', reason: sidecar }
            : { kind: 'found', sidecar, identity };
        } finally {
          await handle.close();
        }
      } catch (error) {
        if (isMissing(error)) return { kind: 'missing' };
        if (isFolder(error)) return { kind: 'damaged', reason: 'there is a folder in its place' };
        throw error;
      }
    },

    async readHeader(sessionId) {
      const file = paths.sidecar(sessionId);
      try {
        const handle = await open(file, 'r');
        try {
          const chunks: Buffer[] = [];
          let size = 0;
          let rest = Buffer.alloc(0);
          for (;;) {
            const chunk = Buffer.allocUnsafe(65_536);
            const { bytesRead } = await handle.read(chunk, 0, chunk.length, size);
            if (bytesRead === 0) break;
            chunks.push(chunk.subarray(0, bytesRead));
            const seam = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
            const at = seam.indexOf(MARK);
            if (at >= 0) {
              const header = parseHeader(Buffer.concat(chunks).toString('utf8', 0, size - rest.length + at));
              if (header) return header.session_id === sessionId ? header : null;
              break;
            }
            size += bytesRead;
            rest = seam.subarray(Math.max(0, seam.length - MARK.length));
          }
          // Not as we write it: on one line, say, or indented otherwise.
          const whole = parseSidecar(sessionId, await readFile(file, 'utf8'));
          return typeof whole === 'string' ? null : whole.header;
        } finally {
          await handle.close();
        }
      } catch (error) {
        if (isMissing(error) || isFolder(error)) return null;
        throw error;
      }
    },

    async save(sessionId, sidecar) {
      const file = paths.sidecar(sessionId);
      await makeFolder(paths.sessions);
      await replaceFile(file, serialiseSidecar(sidecar));
      return identityOf(await stat(file));
    },

    async moveAside(sessionId, now) {
      const file = paths.sidecar(sessionId);
      const isDirectory = (await stat(file)).isDirectory();
      // A rename replaces what it finds, so the place is taken first, by something empty of the same kind.
      const [aside] = await underFreeName(`${file}.damaged-${Math.floor(now)}`, async (name) => {
        if (isDirectory) await mkdir(name, 0o700);
        else await (await open(name, 'wx', 0o600)).close();
      });
      try {
        await rename(file, aside);
      } catch (error) {
        await rm(aside, { recursive: isDirectory, force: true });
        throw error;
      }
      await syncFolder(paths.sessions);
      return aside;
    },

    async remove(sessionId) {
      await rm(paths.sidecar(sessionId), { force: true });
    },
  };
}
