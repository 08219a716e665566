/**
 * Sidecars: `sessions/<id>.json`, the transcript as the person sees it, with the fields of the running turn.
 *
 * This is the files: what stands in them is `sidecar-text`, and how rows are kept in memory is `sidecar-rows`. A long file
 * is read by a thread of its own (`sidecar-thread`) where there is one.
 */
import { constants } from 'node:fs';
import { open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { isSessionId } from '../../server/core/ids.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { copyAside, isFolder, isMissing, makeFolder, moveAside, removeBeside, replaceFile } from './atomic.ts';
import type { Paths } from './paths.ts';
import { openPlainFile } from './plain-file.ts';
import { type FileIdentity, identityOf, type MergeSource, type ReadJob } from './sidecar-jobs.ts';
import { type Merged, type MergeRules, mergeRows } from './sidecar-merge.ts';
import { type FoundRow, type SidecarRow, toSidecarRow, unpack } from './sidecar-rows.ts';
import {
  lazyTail,
  MARK,
  parseHeader,
  parseSidecar,
  type Sidecar,
  type SidecarHeader,
  serialiseSidecar,
  toSidecar,
} from './sidecar-text.ts';
import { createSidecarThread } from './sidecar-thread.ts';

export { type FileIdentity, type FoundRow, type Sidecar, type SidecarHeader, type SidecarRow, toSidecarRow };

export type SidecarRead =
  | { kind: 'missing' }
  | { kind: 'damaged'; reason: string; identity: FileIdentity }
  /** `damage` says what stands among its rows and is no message; null in a sound file. */
  | { kind: 'found'; sidecar: Sidecar<FoundRow>; identity: FileIdentity; damage: string | null };

export interface SidecarStore {
  /** Identity of the file now, or null when there is none. */
  identity(sessionId: string): Promise<FileIdentity | null>;
  /** @param meanwhile called when another thread is at it, so that the time can be used */
  read(sessionId: string, meanwhile?: () => void): Promise<SidecarRead>;
  /** Ids of all sessions that have a file, in no order. */
  ids(): Promise<string[]>;
  /** Only the fields before `messages`; null when the file is missing or damaged. */
  readHeader(sessionId: string): Promise<SidecarHeader | null>;
  /** Replaces the file (SC1, SC2). Returns its new identity. */
  save(sessionId: string, sidecar: Sidecar): Promise<FileIdentity>;
  /**
   * The same, but only over the file of this identity, or over none: null, and nothing replaced, when it is another.
   * @param copiedAt epoch seconds; given, a copy of the file that is replaced is kept as `<name>.damaged-<time>`
   */
  saveOver(
    sessionId: string,
    sidecar: Sidecar,
    expected: FileIdentity | null,
    copiedAt?: number,
  ): Promise<FileIdentity | null>;
  /** Moves a damaged file to `<name>.damaged-<time>`, over nothing. @param now epoch seconds; @returns the new name */
  moveAside(sessionId: string, now: number): Promise<string>;
  /** Removes the file with all that was put aside of it. */
  remove(sessionId: string): Promise<void>;
  /** Makes one list of rows of other programs, on either side; of many rows away from this thread. */
  merge(sessionId: string, input: MergeInput): Promise<MergedRows>;
}

export interface MergeInput extends MergeRules {
  /** What was read of the file; null when there is none. */
  found: { rows: readonly FoundRow[]; identity: FileIdentity } | null;
  /** Those of its rows that count, in their order. */
  rows: readonly FoundRow[];
  /** How many rows the state DB has. */
  stateCount: number;
  /** Reads them, piece by piece; asked for once or twice. */
  state(): AsyncIterable<RawRow[]>;
}

/** The rows of both; each has an id now. */
export interface MergedRows extends Omit<Merged, 'rows' | 'unnamed' | 'namedAt'> {
  rows: readonly SidecarRow[];
  /** Rows of the state DB without an id, by their numbers, and the id that each has got. */
  names: { rowId: number; id: string }[];
}

const isForbidden = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EACCES';

export interface SidecarStoreOptions {
  /** The thread for long transcripts failed, and its work is done in this one. */
  onThreadFailure?(error: unknown): void;
}

export function createSidecarStore(paths: Paths, options: SidecarStoreOptions = {}): SidecarStore {
  const { onThreadFailure = (error) => process.emitWarning(error instanceof Error ? error : String(error)) } = options;
  const thread = createSidecarThread({ onFailure: onThreadFailure });

  /** Reads and parses a file: a long one elsewhere, so that this thread goes on. @throws the system's error */
  async function readFound(sessionId: string, meanwhile?: () => void): Promise<ReadJob> {
    const file = paths.sidecar(sessionId);
    // What is no file (a pipe, say) must not hold up whoever looks.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      // Identity and content of the same file, whatever is renamed over it meanwhile.
      const stats = await handle.stat();
      if (!stats.isFile() && !stats.isDirectory()) {
        return { kind: 'damaged', reason: 'it is no file', identity: identityOf(stats) };
      }
      const job = stats.size > LONG_BYTES ? await thread.read({ sessionId, file }, meanwhile) : null;
      if (job) return job;
      const sidecar = parseSidecar(sessionId, await handle.readFile());
      return typeof sidecar === 'string'
        ? { kind: 'damaged', reason: sidecar, identity: identityOf(stats) }
        : { kind: 'found', sidecar, identity: identityOf(stats) };
    } finally {
      await handle.close();
    }
  }

  async function identityNow(sessionId: string): Promise<FileIdentity | null> {
    try {
      return identityOf(await stat(paths.sidecar(sessionId)));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Replaces the file. @returns its new identity; null when at the last moment it was not wanted any more */
  async function replace(sessionId: string, sidecar: Sidecar, isStillWanted?: () => Promise<boolean>) {
    const file = paths.sidecar(sessionId);
    await makeFolder(paths.sessions);
    const chunks: (string | Buffer)[] = [];
    for (const chunk of serialiseSidecar(sidecar)) {
      // A long transcript is put together in pieces, and others have their turn in between.
      if (chunks.length > 2) await setImmediate();
      chunks.push(chunk);
    }
    const isReplaced = await replaceFile(file, chunks, isStillWanted);
    return isReplaced ? identityOf(await stat(file)) : null;
  }

  return {
    identity: identityNow,

    async read(sessionId, meanwhile) {
      try {
        const job = await readFound(sessionId, meanwhile);
        if (job.kind === 'damaged') return job;
        const { sidecar, identity } = job;
        const { header, tail, damage } = sidecar;
        return { kind: 'found', sidecar: toSidecar(header, unpack(sidecar.rows), lazyTail(tail)), identity, damage };
      } catch (error) {
        if (isMissing(error)) return { kind: 'missing' };
        // What this user may not read, in a folder of its own, is moved aside like what nobody can read.
        if (!isFolder(error) && !isForbidden(error)) throw error;
        const identity = identityOf(await stat(paths.sidecar(sessionId)));
        const reason = isFolder(error) ? 'there is a folder in its place' : 'it may not be read';
        return { kind: 'damaged', reason, identity };
      }
    },

    async ids() {
      try {
        const names = await readdir(paths.sessions);
        return names.flatMap((name) => {
          const id = name.endsWith('.json') ? name.slice(0, -'.json'.length) : '';
          return isSessionId(id) ? [id] : [];
        });
      } catch (error) {
        if (isMissing(error)) return [];
        throw error;
      }
    },

    async readHeader(sessionId) {
      const file = paths.sidecar(sessionId);
      try {
        const handle = await openPlainFile(file);
        if (!handle) return null;
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
          const whole = parseSidecar(sessionId, await readFile(file));
          return typeof whole === 'string' ? null : whole.header;
        } finally {
          await handle.close();
        }
      } catch (error) {
        if (isMissing(error) || isFolder(error) || isForbidden(error)) return null;
        throw error;
      }
    },

    save: async (sessionId, sidecar) => (await replace(sessionId, sidecar))!,

    saveOver: (sessionId, sidecar, expected, copiedAt) =>
      replace(sessionId, sidecar, async () => {
        if ((await identityNow(sessionId)) !== expected) return false;
        // Only now, when the new file is complete: a save that fails for want of room leaves no copies behind.
        if (copiedAt !== undefined) await copyAside(paths.sidecar(sessionId), copiedAt);
        return true;
      }),

    moveAside: (sessionId, now) => moveAside(paths.sidecar(sessionId), now),

    async remove(sessionId) {
      await rm(paths.sidecar(sessionId), { force: true });
      await removeBeside(paths.sidecar(sessionId));
    },

    async merge(sessionId, { found, rows, stateCount, state, fences, liveRunId, taken }) {
      const rules = { fences, liveRunId, ...(taken ? { taken } : {}) };
      const isLong = rows.length + stateCount > LONG_ROWS;
      const merged = isLong ? await thread.merge(sourceOf(sessionId, found, rows), state(), rules) : null;
      if (merged) return mergedRows(merged);
      const all: RawRow[] = [];
      for await (const some of state()) all.push(...some);
      return mergedRows(mergeRows(rows.map(parsedRow), all, rules));
    },
  };

  /** What the thread is told of a file's rows: where they stand, or the few that there are. */
  function sourceOf(sessionId: string, found: MergeInput['found'], rows: readonly FoundRow[]): MergeSource {
    if (!found || rows.length <= LONG_ROWS) return { kind: 'rows', rows: rows.map(parsedRow) };
    const file = paths.sidecar(sessionId);
    const source = { kind: 'file', sessionId, file, identity: found.identity } as const;
    if (rows.length === found.rows.length) return { ...source, kept: null };
    const kept = new Set(rows);
    return { ...source, kept: Uint32Array.from(found.rows.flatMap((row, at) => (kept.has(row) ? [at] : []))) };
  }
}

/** What was merged, as rows: each has an id. */
function mergedRows({ rows: packed, unnamed, namedAt, ...rest }: Merged): MergedRows {
  const rows = unpack(packed) as SidecarRow[];
  return { ...rest, rows, names: Array.from(namedAt, (at, n) => ({ rowId: unnamed[n]!, id: rows[at]!.id })) };
}

const parsedRow = (row: FoundRow): RawRow => JSON.parse(row.json) as RawRow;

/** From how many bytes on a file is read, and from how many rows on they are merged, in a thread of its own. */
const LONG_BYTES = 262_144;
const LONG_ROWS = 500;
