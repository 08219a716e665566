/** What went wrong with a backup or a restore, as one sentence for whoever called the command. */

import { StateDbRefused } from '../../db/client.ts';
import { ArchiveRefused } from '../../db/files/archive-refused.ts';
import { type StorageTroubleKind, storageTroubleKind } from '../../db/storage-trouble.ts';
import { CommandError } from '../commands/command.ts';
import { ConfigError } from '../config.ts';

/** Exit codes beside 0, and 1 for all else; as the usage says. */
export const EXIT = { damaged: 2, interrupted: 130 } as const;

const STORAGE: Record<StorageTroubleKind, string> = {
  busy: 'the database is locked by another program: end that one, then try again.',
  disk_full: 'the disk is full: make room, then try again.',
  unavailable: 'the disk or the database cannot be read or written:',
};

export const NOTHING_LEFT = 'Nothing was left behind.';

/** What a signal ends a backup or a restore with: what was unfinished is removed. */
export const interrupted = (): CommandError => new CommandError(`Interrupted. ${NOTHING_LEFT}`, EXIT.interrupted);

/**
 * The error to be told; what is none of these is a bug and comes back as it is.
 * @param refused what is said of an archive that was read and refused
 */
export function troubleOf(error: unknown, refused: (reason: ArchiveRefused) => string): unknown {
  if (error instanceof ArchiveRefused) {
    return new CommandError(refused(error), error.kind === 'damaged' ? EXIT.damaged : undefined);
  }
  if (error instanceof StateDbRefused || error instanceof ConfigError) return new CommandError(error.message);
  const kind = storageTroubleKind(error);
  if (kind === 'unavailable') {
    return new CommandError(`${STORAGE.unavailable} ${(error as Error).message}. ${NOTHING_LEFT}`);
  }
  if (kind !== null) return new CommandError(`${STORAGE[kind]} ${NOTHING_LEFT}`);
  const { code = '', path = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (code === 'ENOENT') return new CommandError(`${path} is not there. ${NOTHING_LEFT}`);
  if (code === 'EISDIR') return new CommandError(`there is a folder where a file should be. ${NOTHING_LEFT}`);
  if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') {
    return new CommandError(`something else came to stand there meanwhile. ${NOTHING_LEFT}`);
  }
  return error;
}
