/**
 * The headers of a tar archive, in the POSIX form (ustar, with pax records where a name or a size does not fit), so that
 * every `tar` can list and unpack what we write. Regular files only: links, devices and folders are never written and never read.
 * Source of the format: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header".
 */

/** What stands before the bytes of a file. */
export interface TarEntry {
  /** Parts with `/` between them. */
  name: string;
  /** Bytes. */
  size: number;
  mode: number;
  /** Epoch seconds. */
  mtime: number;
}

export type TarHeader =
  | { kind: 'file'; entry: TarEntry }
  /** The next header's name or size stand in a text of this many bytes. */
  | { kind: 'extended'; size: number }
  | { kind: 'end' }
  | { kind: 'refused'; reason: string };

export const BLOCK = 512;

/** How many bytes follow a content of this size, up to the next block. */
export const paddingOf = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

/** What ends an archive. */
export const END = Buffer.alloc(2 * BLOCK);

/** The most that eleven octal digits hold. */
const MAX_SIZE = 8 ** 11 - 1;

/** The bytes before a file's content. */
export function headerOf(entry: TarEntry): Buffer {
  const parts = splitName(entry.name);
  if (parts && entry.size <= MAX_SIZE) return block(parts, entry, '0');
  const records = Buffer.concat([record('path', entry.name), record('size', String(entry.size))]);
  const extended = block({ prefix: '', name: 'PaxHeader' }, { ...entry, size: records.length }, 'x');
  // Who knows no pax records sees a file whose name is cut.
  const short = { prefix: '', name: Buffer.from(entry.name).subarray(-NAME).toString('latin1') };
  const plain = block(short, { ...entry, size: Math.min(entry.size, MAX_SIZE) }, '0');
  return Buffer.concat([extended, records, Buffer.alloc(paddingOf(records.length)), plain]);
}

const [NAME, PREFIX] = [100, 155];

/** A name in the two fields that there are for it; null when it does not fit. */
function splitName(name: string): { prefix: string; name: string } | null {
  if (!/^[\x20-\x7e]+$/.test(name)) return null; // Nobody says in which encoding others would be.
  if (name.length <= NAME) return { prefix: '', name };
  const at = name.indexOf('/', name.length - NAME - 1);
  return at > 0 && at <= PREFIX && at < name.length - 1
    ? { prefix: name.slice(0, at), name: name.slice(at + 1) }
    : null;
}

/** A record says its own length first, those digits included. */
function record(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function block(parts: { prefix: string; name: string }, { size, mode, mtime }: TarEntry, type: '0' | 'x'): Buffer {
  const bytes = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) =>
    bytes.write(
      `${Math.floor(value)
        .toString(8)
        .padStart(width - 1, '0')}\0`,
      at,
      'latin1',
    );
  bytes.write(parts.name, 0, NAME, 'latin1');
  octal(mode & 0o777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.max(0, mtime), 136, 12);
  bytes.write(type, 156, 'latin1');
  bytes.write('ustar\x0000', 257, 'latin1');
  bytes.write(parts.prefix, 345, PREFIX, 'latin1');
  bytes.write(`${checksumOf(bytes).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}

/** The sum of all bytes, those of the sum itself taken for spaces. */
function checksumOf(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1) sum += at >= 148 && at < 156 ? 32 : bytes[at]!;
  return sum;
}

/** Reads one block as a header. */
export function parseHeader(bytes: Buffer): TarHeader {
  if (bytes.every((byte) => byte === 0)) return { kind: 'end' };
  const text = (at: number, width: number): string => bytes.toString('latin1', at, at + width).split('\0')[0]!;
  const octal = (at: number, width: number): number => {
    const digits = text(at, width).trim();
    return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
  };
  if (octal(148, 8) !== checksumOf(bytes) || !bytes.toString('latin1', 257, 263).startsWith('ustar')) {
    return { kind: 'refused', reason: 'a header is damaged' };
  }
  const [size, mode, mtime] = [octal(124, 12), octal(100, 8), octal(136, 12)];
  if (Number.isNaN(size + mode + mtime)) return { kind: 'refused', reason: 'a header is damaged' };
  const prefix = text(345, PREFIX);
  const name = `${prefix === '' ? '' : `${prefix}/`}${text(0, NAME)}`;
  const type = bytes.toString('latin1', 156, 157);
  if (type === 'x') return { kind: 'extended', size };
  if (type !== '0' && type !== '\0') return { kind: 'refused', reason: `${JSON.stringify(name)} is no regular file` };
  return { kind: 'file', entry: { name, size, mode, mtime } };
}

/** What pax records say of the next file; null when they are damaged. */
export function parseExtended(bytes: Buffer): Partial<Pick<TarEntry, 'name' | 'size'>> | null {
  const found: Partial<Pick<TarEntry, 'name' | 'size'>> = {};
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(32, at);
    const length = space < 0 ? Number.NaN : Number(bytes.toString('latin1', at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > bytes.length) return null;
    const [, key, value] = /^(\w+)=(.*)\n$/s.exec(bytes.toString('utf8', space + 1, at + length)) ?? [];
    if (key === undefined || value === undefined) return null;
    if (key === 'path') found.name = value;
    if (key === 'size') found.size = Number(value);
    at += length;
  }
  return found.size !== undefined && !Number.isSafeInteger(found.size) ? null : found;
}

/** Whether a name leads to a place below the folder that it is unpacked in, whoever made it. */
export const isSafeName = (name: string): boolean =>
  !/[\\\0]/.test(name) && name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
