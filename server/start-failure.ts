/** Why a server could not start, in one sentence for whoever starts it: what is wrong, and what helps. */
import { StateDbRefused } from '../db/client.ts';
import { StorageTrouble, type StorageTroubleKind } from '../db/storage-trouble.ts';
import { type Config, ConfigError } from './config.ts';

const STORAGE: Record<StorageTroubleKind, (home: string) => string> = {
  busy: (home) => `the database in ${home} is locked by another program: end that one, then start again.`,
  disk_full: (home) => `the disk of ${home} is full: make room, then start again.`,
  unavailable: (home) =>
    `the database in ${home} cannot be read or written: see that the disk works and that the files are yours.`,
};

const LISTENING: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (_host, port) =>
    `the port ${port} is in use already: stop the other server or choose another one (--port 0 lets the system choose).`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine: choose another one (--host ADDRESS).`,
  ENOTFOUND: (host) => `${host} is no name that this machine knows: choose another address (--host ADDRESS).`,
  EAI_AGAIN: (host) => `the address of ${host} cannot be found now: choose another one (--host ADDRESS).`,
  EACCES: (_host, port) => `the port ${port} is not for you to use: choose another one (--port N, from 1024).`,
};

const HOME: Record<string, (home: string) => string> = {
  EEXIST: (home) => `the home ${home} is a file: choose a folder (--home DIR).`,
  ENOTDIR: (home) => `the home ${home} lies below a file: choose a folder (--home DIR).`,
  ENOENT: (home) => `the home ${home} cannot be made: choose another folder (--home DIR).`,
  EACCES: (home) => `the home ${home} cannot be written: choose another folder (--home DIR).`,
  EPERM: (home) => `the home ${home} cannot be written: choose another folder (--home DIR).`,
  EROFS: (home) => `the home ${home} cannot be written: choose another folder (--home DIR).`,
  ENOSPC: (home) => STORAGE.disk_full(home),
};

/** System calls of listening; whatever else fails while a server starts concerns its home. */
const LISTEN_CALLS = ['listen', 'bind', 'getaddrinfo'];

/**
 * The sentence for an error that ended a start; null for a bug, which should be seen as it is.
 * @param config null when the error came before there was one
 */
export function startFailure(error: unknown, config: Config | null): string | null {
  if (error instanceof ConfigError || error instanceof StateDbRefused) return error.message;
  if (!config || !(error instanceof Error)) return null;
  if (error instanceof StorageTrouble) return STORAGE[error.kind](config.home);
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  const { host, port } = config.server;
  if (syscall === '') return null;
  const known = LISTEN_CALLS.includes(syscall) ? LISTENING[code]?.(host, port) : HOME[code]?.(config.home);
  return known ?? `cannot start: ${error.message}.`;
}
