/**
 * Storage that cannot do its work right now: the database is locked past all patience, the disk is full or read-only.
 * A named outcome of any store call, told by the system's own codes and never by a message text.
 */

export type StorageTroubleKind = 'busy' | 'disk_full' | 'unavailable';

export class StorageTrouble extends Error {
  readonly kind: StorageTroubleKind;

  constructor(kind: StorageTroubleKind, cause: unknown) {
    super(`storage: ${kind}`, { cause });
    this.name = 'StorageTrouble';
    this.kind = kind;
  }
}

/** Who may run a session cannot be found out: the registry of leases cannot be read, written or understood (LE8). */
export class RegistryTrouble extends StorageTrouble {
  constructor(cause: unknown) {
    super('unavailable', cause);
    this.name = 'RegistryTrouble';
  }
}

const KINDS: [prefix: string, kind: StorageTroubleKind][] = [
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_FULL', 'disk_full'],
  // No room for the shared memory of a WAL.
  ['SQLITE_IOERR_SHMSIZE', 'disk_full'],
  ['SQLITE_IOERR', 'unavailable'],
  ['SQLITE_READONLY', 'unavailable'],
  ['SQLITE_CANTOPEN', 'unavailable'],
  ['SQLITE_CORRUPT', 'unavailable'],
  ['SQLITE_NOTADB', 'unavailable'],
  ['ENOSPC', 'disk_full'],
  ['EDQUOT', 'disk_full'],
  ['EROFS', 'unavailable'],
  ['EIO', 'unavailable'],
  ['EACCES', 'unavailable'],
  ['EPERM', 'unavailable'],
  ['ESTALE', 'unavailable'],
  ['EBUSY', 'unavailable'],
  ['ETIMEDOUT', 'unavailable'],
  ['SQLITE_PROTOCOL', 'unavailable'],
  ['SQLITE_NOMEM', 'unavailable'],
  ['ELOOP', 'unavailable'],
  ['EMFILE', 'unavailable'],
  ['ENFILE', 'unavailable'],
];

/** What kind of trouble an error of SQLite or of the file system is; null when it is something else (a bug). */
export function storageTroubleKind(error: unknown): StorageTroubleKind | null {
  if (error instanceof StorageTrouble) return error.kind;
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const known = KINDS.find(([prefix]) => code.startsWith(prefix))?.[1];
  return known ?? (error.cause ? storageTroubleKind(error.cause) : null);
}

/** Whether an error is one of SQLite's own, of whatever kind. */
export function isSqliteError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return code.startsWith('SQLITE_') || isSqliteError(error.cause);
}
