/** One try of a secret under a limit of attempts, whatever the secret is. */
import { AppError } from '../errors.ts';
import type { Attempts, Caller } from './attempts.ts';
import type { Identity } from './credentials.ts';

/**
 * Runs the check of a secret, unless its caller has failed too often.
 * @param now epoch seconds
 * @returns who it is; null for a wrong secret, which counts as a failure
 * @throws AppError too_many_attempts, also when the check is too busy to be made
 */
export async function tryUnder(
  attempts: Attempts,
  caller: Caller,
  now: () => number,
  check: () => Promise<Identity | 'busy' | null>,
): Promise<Identity | null> {
  const wait = attempts.waitFor(caller, now());
  if (wait > 0) throw new AppError('too_many_attempts', undefined, { retry_after: wait });
  // Counted before it is checked, for many may come at once.
  const attempt = attempts.begin(caller, now());
  const identity = await check();
  if (identity !== null) attempt.takeBack();
  if (identity === 'busy') throw new AppError('too_many_attempts', undefined, { retry_after: 1 });
  return identity;
}
