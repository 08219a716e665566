/**
 * Reading an archive, from its first byte to its last: every file is given to whoever takes it and proven by its size and
 * its sum; what is not as the manifest says, or stands where nothing should, is refused. The archive itself is never changed.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { HOME_PREFIX, MANIFEST_NAME, MAX_MANIFEST_BYTES, type Manifest, parseManifest } from './archive-manifest.ts';
import { ArchiveRefused } from './archive-refused.ts';
import { BLOCK, paddingOf, parseExtended, parseHeader, type TarEntry } from './archive-tar.ts';

/** Where the content of one file goes. `close` is called on every way out. */
export interface FileSink {
  write(piece: Buffer): Promise<void>;
  close(): Promise<void>;
}

export interface ArchiveReader {
  /** Called once, before the first file. May refuse by throwing. */
  begin(manifest: Manifest): void;
  /** @param path where the file stands in a home; it is safe to join; @param mode of the file */
  open(path: string, mode: number): Promise<FileSink>;
  signal: AbortSignal;
  /** Told how many bytes of the files were read, piece by piece. */
  onBytes(count: number): void;
}

/**
 * Reads an archive whole.
 * @throws ArchiveRefused for what is wrong with it; the system's error; whatever the reader throws
 */
export async function readArchive(file: string, reader: ArchiveReader): Promise<Manifest> {
  const gunzip = createGunzip();
  // Its end is seen below: an error of either stream is thrown by the one that is read.
  pipeline(createReadStream(file), gunzip).catch(() => {});
  try {
    return await readTar(createByteReader(gunzip), reader);
  } catch (error) {
    if (isZlibError(error)) throw new ArchiveRefused('it is damaged or cut off');
    throw error;
  } finally {
    gunzip.destroy();
  }
}

const isZlibError = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_');

async function readTar(bytes: ByteReader, reader: ArchiveReader): Promise<Manifest> {
  const first = await nextEntry(bytes);
  if (first?.name !== MANIFEST_NAME || first.size > MAX_MANIFEST_BYTES) {
    throw new ArchiveRefused('it is no backup of Turnkeep');
  }
  const manifest = parseManifest(await bytes.take(first.size));
  await bytes.take(paddingOf(first.size));
  reader.begin(manifest);
  const wanted = new Map(manifest.files.map((one) => [`${HOME_PREFIX}${one.path}`, one]));
  for (let entry = await nextEntry(bytes); entry; entry = await nextEntry(bytes)) {
    const known = wanted.get(entry.name);
    // By the manifest's names alone, which are safe: nothing is ever made of a name that only a header has.
    if (!known) throw new ArchiveRefused(`${JSON.stringify(entry.name)} is in it and not in its manifest`);
    wanted.delete(entry.name);
    if (entry.size !== known.size) throw new ArchiveRefused(`${known.path} has another size than its manifest says`);
    const hash = createHash('sha256');
    const sink = await reader.open(known.path, entry.mode);
    try {
      for await (const piece of bytes.pieces(entry.size)) {
        reader.signal.throwIfAborted();
        hash.update(piece);
        await sink.write(piece);
        reader.onBytes(piece.length);
      }
    } finally {
      await sink.close();
    }
    if (hash.digest('hex') !== known.sha256) throw new ArchiveRefused(`${known.path} is damaged`);
    await bytes.take(paddingOf(entry.size));
  }
  const [lacking] = wanted.values();
  if (lacking) throw new ArchiveRefused(`${lacking.path} is missing`);
  // To the last byte: only there the archive's own sum is compared.
  for await (const piece of bytes.rest()) {
    if (piece.some((byte) => byte !== 0)) throw new ArchiveRefused('something stands behind its end');
  }
  return manifest;
}

/** The next file; null at the end of the archive. */
async function nextEntry(bytes: ByteReader): Promise<TarEntry | null> {
  let said: Partial<TarEntry> = {};
  for (;;) {
    const header = parseHeader(await bytes.take(BLOCK));
    if (header.kind === 'refused') throw new ArchiveRefused(header.reason);
    if (header.kind === 'end') return null;
    if (header.kind === 'file') return { ...header.entry, ...said };
    const records = header.size <= MAX_RECORDS ? parseExtended(await bytes.take(header.size)) : null;
    if (!records) throw new ArchiveRefused('a header is damaged');
    said = records;
    await bytes.take(paddingOf(header.size));
  }
}

const MAX_RECORDS = 65_536;

interface ByteReader {
  /** Exactly so many bytes. @throws ArchiveRefused when there are fewer */
  take(size: number): Promise<Buffer>;
  /** The same, as they come. */
  pieces(size: number): AsyncGenerator<Buffer>;
  rest(): AsyncGenerator<Buffer>;
}

function createByteReader(source: AsyncIterable<Buffer>): ByteReader {
  const iterator = source[Symbol.asyncIterator]();
  let left: Buffer = Buffer.alloc(0);
  /** Up to so many bytes; null at the end. */
  async function some(most: number): Promise<Buffer | null> {
    while (left.length === 0) {
      const step = await iterator.next();
      if (step.done) return null;
      left = step.value;
    }
    const piece = left.subarray(0, most);
    left = left.subarray(piece.length);
    return piece;
  }
  async function* pieces(size: number): AsyncGenerator<Buffer> {
    for (let missing = size; missing > 0; ) {
      const piece = await some(missing);
      if (!piece) throw new ArchiveRefused('it is cut off');
      missing -= piece.length;
      yield piece;
    }
  }
  return {
    pieces,
    async take(size) {
      const found: Buffer[] = [];
      for await (const piece of pieces(size)) found.push(piece);
      return Buffer.concat(found);
    },
    async *rest() {
      for (let piece = await some(65_536); piece; piece = await some(65_536)) yield piece;
    },
  };
}
