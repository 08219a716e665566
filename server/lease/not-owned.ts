/** The refusal of work on a session that another process runs. */
import type { ProcessIdentity } from '../core/terms.ts';
import { AppError, type ErrorCode } from '../errors.ts';

/** The reason is the contract, the sentence is for a person: it names the session and who holds it. */
export function notOwned(sessionId: string, holder: Pick<ProcessIdentity, 'pid'>): AppError {
  return new AppError(
    'session_not_owned',
    `Session ${sessionId} is run by another Turnkeep process (pid ${holder.pid}) on this home.`,
    { holder: { pid: holder.pid } },
  );
}

/**
 * Why something cannot be done to a session now. Where another process has the session that is the reason, whatever the
 * session looks like from here: waiting for it to be free would be the wrong advice.
 */
export async function unlessElsewhere(
  code: ErrorCode,
  sessionId: string,
  leases: { elsewhere(sessionId: string): Promise<Pick<ProcessIdentity, 'pid'> | null> },
): Promise<AppError> {
  const holder = await leases.elsewhere(sessionId);
  return holder ? notOwned(sessionId, holder) : new AppError(code);
}
