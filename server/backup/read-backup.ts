/**
 * Reading a backup as what it is: beside the archive's own sums, every transcript must be one, and the database must be
 * sound, of a schema that is known, and hold what the manifest says.
 */
import path from 'node:path';
import { isDamagedSidecar, sidecarOf } from '../../db/files/archive-home.ts';
import type { Manifest } from '../../db/files/archive-manifest.ts';
import { createFile } from '../../db/files/archive-place.ts';
import { type FileSink, readArchive } from '../../db/files/archive-read.ts';
import { ArchiveRefused } from '../../db/files/archive-refused.ts';
import { checkSnapshot, knownSchema } from '../../db/snapshot.ts';
import type { Progress } from './progress.ts';

export interface ReadRequest {
  /** The archive. */
  file: string;
  /** An empty folder that gets what is kept. */
  folder: string;
  /** All files, or only what must be unpacked to be proven. */
  keep: 'everything' | 'database';
}

export interface ReadParts {
  signal: AbortSignal;
  progress: Progress;
}

const DATABASE = 'state.db';

/** @throws ArchiveRefused; a storage error; the reason of the signal @returns the manifest, all of which is proven */
export async function readBackup(
  { file, folder, keep }: ReadRequest,
  { signal, progress }: ReadParts,
): Promise<Manifest> {
  const damaged: string[] = [];
  const manifest = await readArchive(file, {
    signal,
    onBytes: progress.add,
    begin({ schema, files }) {
      // Before anything is unpacked: it may take long.
      if (schema > knownSchema()) throw newer(schema);
      if (!files.some((one) => one.path === DATABASE)) throw new ArchiveRefused('it has no database');
      progress.begin(
        keep === 'everything' ? 'unpacking' : 'checking',
        files.reduce((sum, one) => sum + one.size, 0),
      );
    },
    async open(name, mode) {
      const isKept = keep === 'everything' || name === DATABASE;
      const sink = isKept ? await createFile(folder, name, mode) : NOWHERE;
      const sessionId = sidecarOf(name);
      if (sessionId === null) return sink;
      return watched(sink, (bytes) => {
        if (isDamagedSidecar(sessionId, bytes)) damaged.push(name);
      });
    },
  });
  // One that was damaged in the home already is as it was there.
  const broken = damaged.find((name) => !manifest.damaged.includes(name));
  if (broken !== undefined) throw new ArchiveRefused(`${broken} is no transcript`);
  checkDatabase(path.join(folder, DATABASE), manifest);
  return manifest;
}

const newer = (schema: number): ArchiveRefused =>
  new ArchiveRefused(`it is of a newer Turnkeep (schema ${schema}, this one knows ${knownSchema()})`, 'newer');

function checkDatabase(file: string, manifest: Manifest): void {
  const check = checkSnapshot(file);
  if (check.kind === 'damaged') throw new ArchiveRefused(`its database is damaged: ${check.reason}`);
  for (const [key, count] of Object.entries(check.facts)) {
    if (manifest[key as keyof typeof check.facts] === count) continue;
    throw new ArchiveRefused(`its database holds another number of ${key} than its manifest says`);
  }
}

const NOWHERE: FileSink = { write: async () => {}, close: async () => {} };

/** A sink that looks at the whole content as well. */
function watched(sink: FileSink, look: (bytes: Buffer) => void): FileSink {
  const pieces: Buffer[] = [];
  return {
    async write(piece) {
      pieces.push(piece);
      await sink.write(piece);
    },
    async close() {
      await sink.close();
      look(Buffer.concat(pieces));
    },
  };
}
