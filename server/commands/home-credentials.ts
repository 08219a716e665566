/** The credentials of a home, for the commands that change them, beside a running server or without one. */
import { openStateDb, StateDbRefused } from '../../db/client.ts';
import { createCredentialStore } from '../../db/credential-store.ts';
import { makeFolder } from '../../db/files/atomic.ts';
import { createPaths } from '../../db/files/paths.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { type Credentials, createCredentials } from '../auth/credentials.ts';
import { createPasswords } from '../auth/passwords.ts';
import { CommandError } from './command.ts';

export interface HomeCredentialsParts {
  /** Epoch seconds. */
  now(): number;
  monotonic(): number;
  random(): number;
  sleep(ms: number): Promise<void>;
  /** Fresh random bytes. */
  newSecret(bytes: number): Buffer;
}

const PATIENCE_MS = 5_000;

/**
 * Works on the credentials of a home, which is made if it is not there yet.
 * @throws CommandError when its state DB cannot be used
 */
export async function withCredentials<T>(
  home: string,
  parts: HomeCredentialsParts,
  work: (credentials: Credentials) => Promise<T>,
): Promise<T> {
  try {
    await makeFolder(home);
    const state = await openStateDb({ file: createPaths(home).stateDb, patienceMs: PATIENCE_MS, ...parts });
    try {
      return await work(
        createCredentials({
          store: createCredentialStore(state),
          passwords: createPasswords(parts.newSecret),
          envToken: null,
          closed: false,
          now: parts.now,
          newSecret: parts.newSecret,
          background: () => {},
        }),
      );
    } finally {
      state.close();
    }
  } catch (error) {
    if (error instanceof StateDbRefused) throw new CommandError(error.message);
    if (storageTroubleKind(error) === null) throw error;
    throw new CommandError(`${home} cannot be written now. Nothing was changed; try again.`);
  }
}
