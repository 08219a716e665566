/** Writing an archive: the manifest, then the files that it names, as they stand in a folder that nobody else changes. */
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { HOME_PREFIX, MANIFEST_NAME, type Manifest } from './archive-manifest.ts';
import { END, headerOf, paddingOf } from './archive-tar.ts';

export interface ArchiveSource {
  manifest: Manifest;
  /** The folder that has the files of the manifest. */
  folder: string;
  /** Epoch seconds, for the manifest's own entry. */
  now: number;
}

/**
 * Writes an archive and makes it durable. Mode 0600: it may hold secrets, and it holds every conversation.
 * @param target a file that is not there yet
 * @param onBytes told how many bytes of the files were packed, piece by piece
 * @throws the system's error, or the reason of the signal; what was written so far stays
 */
export async function writeArchive(
  target: string,
  source: ArchiveSource,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<void> {
  const out = createWriteStream(target, { flags: 'wx', mode: 0o600 });
  await pipeline(Readable.from(piecesOf(source, signal, onBytes)), createGzip(), out);
  const handle = await open(target, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function* piecesOf(
  { manifest, folder, now }: ArchiveSource,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  const text = Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`);
  yield headerOf({ name: MANIFEST_NAME, size: text.length, mode: 0o600, mtime: now });
  yield text;
  yield Buffer.alloc(paddingOf(text.length));
  for (const { path: name, size } of manifest.files) {
    const handle = await open(path.join(folder, name), 'r');
    try {
      const { mode, mtimeMs } = await handle.stat();
      yield headerOf({ name: `${HOME_PREFIX}${name}`, size, mode, mtime: mtimeMs / 1000 });
      for await (const piece of handle.createReadStream({ autoClose: false })) {
        signal.throwIfAborted();
        onBytes(piece.length);
        yield piece;
      }
    } finally {
      await handle.close();
    }
    yield Buffer.alloc(paddingOf(size));
  }
  yield END;
}
