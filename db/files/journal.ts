/**
 * Run journals: `sessions/_run_journal/<session>/<run>.jsonl`, every event of a run, one JSON line each (JO1 to JO4).
 *
 * The writer appends at an offset that it knows, so a write that failed half-way is written over by the next try and
 * never leaves a broken line in the middle. The reader stops at the first line that is not the next event and says so.
 * Journals of another program (version 1) stand in the same place; they are read, and never written (JO5).
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readFile, rm, truncate } from 'node:fs/promises';
import path from 'node:path';
import type { RunEvent, StampedEvent, TerminalState } from '../../server/core/events.ts';
import { type ForeignText, parseForeign } from '../../server/core/foreign-journal/records.ts';
import { isRunId } from '../../server/core/ids.ts';
import { clearPlace, isMissing, makeFolder, moveAside, removeBeside, syncFolder, underFreeName } from './atomic.ts';
import type { Paths } from './paths.ts';

export interface JournalRecord {
  event: StampedEvent;
  /** The line itself, without its newline. */
  line: string;
  terminalState: TerminalState | null;
}

export interface JournalRead {
  records: JournalRecord[];
  /** Bytes of the file that hold `records`. */
  validBytes: number;
  /** What stands behind them: nothing, a cut last line, or something that is no event in the middle. */
  rest: 'none' | 'torn' | 'damaged';
}

/** The journal of a run as another program left it: whether it is there, and its lines if they are of version 1. */
export type ForeignRead = { kind: 'missing' } | ForeignText;

export interface JournalStore {
  /** Starts the journal of a run; it must not exist yet. The file and its folders are durable when this returns. */
  create(sessionId: string, runId: string): Promise<JournalWriter>;
  /** Reads a journal as far as it is one; null when there is none. */
  read(sessionId: string, runId: string): Promise<JournalRead | null>;
  /**
   * Reads a journal that another program may have written, for `foldForeign`. Its run id comes from that program's
   * files: what is no run id has no journal here.
   */
  readForeign(sessionId: string, runId: string): Promise<ForeignRead>;
  /** Reads lines after a `seq`, up to and with another, in bounded batches. Null when the file is missing. */
  lines(sessionId: string, runId: string, after: number, upTo: number): Promise<AsyncGenerator<string[]> | null>;
  /**
   * Opens a dead run's journal for its last line: copies what stands behind `validBytes` aside, cuts it off.
   * Makes the file when it is missing.
   * @param now epoch seconds, for the names of copies and of what is moved aside
   * @returns besides, how many of the records that were read are still in the file
   */
  reopen(
    sessionId: string,
    runId: string,
    read: JournalRead | null,
    now: number,
  ): Promise<{ writer: JournalWriter; kept: number }>;
  remove(sessionId: string, runId: string): Promise<void>;
  removeAll(sessionId: string): Promise<void>;
}

/** Appends to one journal. Owned by the run that writes it; `close` frees the file. */
export interface JournalWriter {
  /** Appends whole lines in one write. After an error the same lines may be tried again: nothing is doubled. */
  append(lines: string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

function createWriter(handle: FileHandle, start: number): JournalWriter {
  let offset = start;
  return {
    async append(lines) {
      const bytes = Buffer.from(lines, 'utf8');
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, offset + done);
        done += bytesWritten;
      }
      offset += bytes.length;
    },
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
}

/** Reads one line as the event with number `seq` of this run, or null when it is something else. */
function parseLine(line: string, runId: string, seq: number): JournalRecord | null {
  try {
    const value = JSON.parse(line);
    if (value === null || typeof value !== 'object' || value.run_id !== runId || value.seq !== seq) return null;
    if (typeof value.type !== 'string' || typeof value.session_id !== 'string') return null;
    const { type, payload, session_id, created_at } = value;
    const event = { type, payload, session_id, run_id: runId, seq, created_at } as RunEvent & StampedEvent;
    return { event, line, terminalState: value.terminal === true ? value.terminal_state : null };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Parses the bytes of a journal. Cut at any byte it still gives every whole event before the cut. */
export function parseJournal(bytes: Buffer, runId: string): JournalRead {
  const records: JournalRecord[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf(10, at);
    if (end < 0) return { records, validBytes: at, rest: 'torn' };
    const record = parseLine(bytes.toString('utf8', at, end), runId, records.length + 1);
    if (!record) return { records, validBytes: at, rest: bytes.indexOf(10, end + 1) < 0 ? 'torn' : 'damaged' };
    records.push(record);
    at = end + 1;
    // A run ends once: whatever stands behind its terminal line is none of its events (JO3).
    if (record.terminalState !== null && at < bytes.length) {
      return { records, validBytes: at, rest: bytes.indexOf(10, at) < 0 ? 'torn' : 'damaged' };
    }
  }
  return { records, validBytes: at, rest: 'none' };
}

/** Copies what stands in a file from `start` on, durably and over nothing. */
async function copyTail(file: string, start: number, wanted: string): Promise<void> {
  const bytes = await readFile(file);
  const [name, copy] = await underFreeName(wanted, (free) => open(free, 'wx', 0o600));
  try {
    try {
      await copy.writeFile(bytes.subarray(start));
      await copy.sync();
    } finally {
      await copy.close();
    }
  } catch (error) {
    await rm(name, { force: true });
    throw error;
  }
  // Before the original is cut: a power cut must not take both.
  await syncFolder(path.dirname(name));
}

/** What is in a file; null when there is none, or something else in its place. */
async function bytesOf(file: string): Promise<Buffer | null> {
  try {
    // What is no file (a pipe, say) must not hold up whoever looks.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return (await handle.stat()).isFile() ? await handle.readFile() : null;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function isThere(place: string): Promise<boolean> {
  try {
    await lstat(place);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** How `journalLine` begins a line. */
const OURS = '{"version":2,';
const SEQ = /"run_id":"[0-9a-f]{32}","seq":(\d+),/;

export function createJournalStore(paths: Paths): JournalStore {
  return {
    async create(sessionId, runId) {
      const file = paths.journal(sessionId, runId);
      await clearPlace(path.dirname(file));
      await makeFolder(path.dirname(file));
      const handle = await open(file, 'wx', 0o600);
      try {
        await syncFolder(path.dirname(file));
      } catch (error) {
        await handle.close();
        await rm(file, { force: true });
        throw error;
      }
      return createWriter(handle, 0);
    },

    async read(sessionId, runId) {
      const bytes = await bytesOf(paths.journal(sessionId, runId));
      return bytes && parseJournal(bytes, runId);
    },

    async readForeign(sessionId, runId) {
      const bytes = isRunId(runId) ? await bytesOf(paths.journal(sessionId, runId)) : null;
      return bytes ? parseForeign(bytes.toString('utf8')) : { kind: 'missing' };
    },

    async lines(sessionId, runId, after, upTo) {
      let handle: FileHandle;
      try {
        handle = await open(paths.journal(sessionId, runId), 'r');
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
      return readBatches(handle, after, upTo);
    },

    async reopen(sessionId, runId, read, now) {
      const file = paths.journal(sessionId, runId);
      await clearPlace(path.dirname(file));
      await makeFolder(path.dirname(file));
      // What we did not write is never written to (JO5): it is moved out of the way, like what is no file at all.
      const isOurs = read !== null && read.records[0]?.line.startsWith(OURS) !== false;
      if (!isOurs && (await isThere(file))) await moveAside(file, now);
      if (isOurs && read.rest !== 'none') {
        await copyTail(file, read.validBytes, `${file}.torn-${Math.floor(now)}`);
        await truncate(file, read.validBytes);
      }
      const handle = await open(file, isOurs ? 'r+' : 'w+', 0o600);
      await syncFolder(path.dirname(file));
      return { writer: createWriter(handle, isOurs ? read.validBytes : 0), kept: isOurs ? read.records.length : 0 };
    },

    async remove(sessionId, runId) {
      await rm(paths.journal(sessionId, runId), { force: true });
    },

    async removeAll(sessionId) {
      await rm(paths.journals(sessionId), { recursive: true, force: true });
      await removeBeside(paths.journals(sessionId));
    },
  };
}

async function* readBatches(handle: FileHandle, after: number, upTo: number): AsyncGenerator<string[]> {
  try {
    const buffer = Buffer.allocUnsafe(65_536);
    let pending = Buffer.alloc(0);
    for (let position = 0; ; ) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      const bytes = Buffer.concat([pending, buffer.subarray(0, bytesRead)]);
      const batch: string[] = [];
      let at = 0;
      for (let end = bytes.indexOf(10, at); end >= 0; end = bytes.indexOf(10, at)) {
        const line = bytes.toString('utf8', at, end);
        at = end + 1;
        const seq = Number(SEQ.exec(line)?.[1] ?? Number.NaN);
        if (seq > upTo) {
          if (batch.length) yield batch;
          return;
        }
        if (seq > after) batch.push(line);
      }
      pending = bytes.subarray(at);
      if (batch.length) yield batch;
    }
  } finally {
    await handle.close();
  }
}
