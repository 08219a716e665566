/**
 * Restoring: a backup becomes a home, whole or not at all, where none is (BK4, BK5). It is unpacked beside its place,
 * proven, made durable, and then gets its name. What ran at the moment of the backup is recovered by the first start.
 */
import path from 'node:path';
import type { Manifest } from '../../db/files/archive-manifest.ts';
import { isMounted, makeWorkplace, placeAt, realPlace, syncFolders } from '../../db/files/archive-place.ts';
import { unendedProcesses } from '../../db/snapshot.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { CommandError } from '../commands/command.ts';
import type { ProcessIdentity } from '../core/terms.ts';
import { type ReadParts, readBackup } from './read-backup.ts';

export interface RestoreRequest {
  /** Absolute path of the archive. */
  file: string;
  /** Absolute path of the home that is to be. */
  home: string;
}

export interface RestoreParts extends ReadParts {
  isAlive(process: ProcessIdentity): boolean;
}

/**
 * Makes a home of a backup.
 * @throws CommandError when there is something at its place already; ArchiveRefused; a storage error. Nothing is left then
 */
export async function restore(request: RestoreRequest, parts: RestoreParts): Promise<Manifest> {
  const home = await realPlace(request.home);
  await checkFree(home, parts.isAlive);
  const work = await makeWorkplace(home);
  try {
    const unpacked = path.join(work.folder, 'home');
    const manifest = await readBackup({ file: request.file, folder: unpacked, keep: 'everything' }, parts);
    await syncFolders(unpacked);
    parts.signal.throwIfAborted();
    // Once more, for it took a while: a rename takes the place of an empty folder, and of nothing else.
    await checkFree(home, parts.isAlive);
    await work.moveTo(unpacked, home).catch((error) => {
      throw isOtherPlace(error) ? new CommandError(notReplaced(home)) : error;
    });
    return manifest;
  } finally {
    await work.remove();
  }
}

/**
 * Proves a backup and changes nothing.
 * @param scratch a name beside which there is room for the database
 * @throws ArchiveRefused; a storage error
 */
export async function checkBackup(file: string, scratch: string, parts: ReadParts): Promise<Manifest> {
  const work = await makeWorkplace(scratch);
  try {
    return await readBackup({ file, folder: work.folder, keep: 'database' }, parts);
  } finally {
    await work.remove();
  }
}

const notReplaced = (home: string): string =>
  `${home} is a place of its own, such as a mounted disk, and cannot be replaced: ` +
  `restore into a folder in it (--home ${path.join(home, 'home')}).`;

const isOtherPlace = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EXDEV' || error.code === 'EBUSY');

/** @throws CommandError unless a home can be made there */
async function checkFree(home: string, isAlive: RestoreParts['isAlive']): Promise<void> {
  const place = await placeAt(home);
  if (place === 'empty folder' && (await isMounted(home))) throw new CommandError(notReplaced(home));
  if (place === 'nothing' || place === 'empty folder') return;
  if (place === 'file') throw new CommandError(`${home} is a file: choose a folder (--home DIR).`);
  const file = path.join(home, 'state.db');
  if ((await placeAt(file)) === 'file') {
    const living = processesOn(file).find(isAlive);
    if (living) {
      throw new CommandError(
        `a server works on ${home} (pid ${living.pid}), and a restore never replaces a home: choose another one (--home DIR).`,
      );
    }
    throw new CommandError(
      `${home} is a home already, and a restore never replaces one: choose another one (--home DIR) or move it away.`,
    );
  }
  throw new CommandError(
    `${home} is not empty, and a restore never mixes with what is there: choose another one (--home DIR) or move it away.`,
  );
}

/** Those that a database names; none when it cannot be read. */
function processesOn(file: string): ProcessIdentity[] {
  try {
    return unendedProcesses(file);
  } catch (error) {
    if (storageTroubleKind(error) === null) throw error;
    return [];
  }
}
