/**
 * Reading some lines of an open file: bounded in memory and in output, chunk by chunk, so that the size of the file
 * does not matter. Owns nothing; the caller opened the file and closes it.
 */
import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';

/** Most bytes of text that one read gives. */
export const MAX_READ_BYTES = 64 * 1024;
/** Most bytes that are gone through to find the first line. */
export const MAX_SCAN_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 10;

export type Lines =
  | {
      kind: 'text';
      /** Without the newline of the last line. */
      text: string;
      /** Number of the first line of `text`, from 1. */
      from: number;
      /** How many lines `text` has. */
      count: number;
      /** Number of the next line, or null when the file ends here. */
      next: number | null;
      /** The only line given is itself longer than may be given. */
      lineCut: boolean;
    }
  | { kind: 'past_end' /** Lines of the file. */; total: number }
  | { kind: 'too_far' }
  | { kind: 'binary' }
  | { kind: 'aborted' };

/**
 * Reads lines.
 * @param from first line, from 1
 * @param limit most lines
 */
export async function readLines(handle: FileHandle, from: number, limit: number, signal?: AbortSignal): Promise<Lines> {
  const found = await collectLines(handle, from, limit, MAX_READ_BYTES, signal);
  return found.kind === 'bytes' ? cutLines(found.bytes, from, found.more) : found;
}

/** `too_long`: it has more bytes than may be given; `not_text`: they are no UTF-8. */
export type Text =
  | { kind: 'text'; text: string }
  | Exclude<Lines, { kind: 'text' }>
  | { kind: 'too_long' | 'not_text' };

/**
 * Reads lines as they stand there, with their ends, whole or not at all.
 * @param limit most lines; Infinity for all
 * @param most bytes that are given
 */
export async function readText(
  handle: FileHandle,
  from: number,
  limit: number,
  most: number,
  signal?: AbortSignal,
): Promise<Text> {
  const found = await collectLines(handle, from, limit, most, signal);
  if (found.kind !== 'bytes') return found;
  if (found.bytes.length > most) return { kind: 'too_long' };
  if (!isUtf8(found.bytes)) return { kind: 'not_text' };
  return { kind: 'text', text: found.bytes.toString('utf8') };
}

/** Lines with their ends, until there are enough of them, or more than `most` bytes. */
async function collectLines(
  handle: FileHandle,
  from: number,
  limit: number,
  most: number,
  signal?: AbortSignal,
): Promise<{ kind: 'bytes'; bytes: Buffer; more: boolean } | Exclude<Lines, { kind: 'text' }>> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let keptLines = 0;
  let line = 1;
  let position = 0;
  let lastByte = NEWLINE;
  let more = false;
  while (!more) {
    if (signal?.aborted) return { kind: 'aborted' };
    if (position >= MAX_SCAN_BYTES) return { kind: 'too_far' };
    const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) break;
    const bytes = chunk.subarray(0, bytesRead);
    if ((position === 0 || line >= from) && bytes.includes(0)) return { kind: 'binary' };
    position += bytesRead;
    lastByte = bytes[bytesRead - 1]!;
    let at = 0;
    for (; line < from; line++) {
      const end = bytes.indexOf(NEWLINE, at);
      if (end < 0) break;
      at = end + 1;
    }
    if (line < from) continue;
    const start = at;
    while (keptLines < limit) {
      const end = bytes.indexOf(NEWLINE, at);
      if (end < 0) break;
      at = end + 1;
      keptLines++;
    }
    const stop = keptLines === limit ? at : bytesRead;
    kept.push(Buffer.from(bytes.subarray(start, stop)));
    keptBytes += stop - start;
    more = stop < bytesRead || keptBytes > most;
  }
  if (keptBytes === 0) return { kind: 'past_end', total: lastByte === NEWLINE ? line - 1 : line };
  return { kind: 'bytes', bytes: Buffer.concat(kept), more };
}

/** Cuts what was kept at the last line that fits, so that the next read can go on where this one ends. */
function cutLines(bytes: Buffer, from: number, more: boolean): Lines {
  let whole = bytes;
  let lineCut = false;
  if (bytes.length > MAX_READ_BYTES) {
    const end = bytes.lastIndexOf(NEWLINE, MAX_READ_BYTES - 1);
    lineCut = end < 0;
    whole = bytes.subarray(0, lineCut ? characterStart(bytes, MAX_READ_BYTES) : end + 1);
  }
  const text = whole.toString('utf8').replace(/\r?\n$/, '');
  const count = text.split('\n').length;
  return { kind: 'text', text, from, count, next: more || whole.length < bytes.length ? from + count : null, lineCut };
}

/** The last place at or before `at` where a UTF-8 character begins. */
function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > at - 4 && (bytes[start]! & 0xc0) === 0x80) start--;
  return start;
}
