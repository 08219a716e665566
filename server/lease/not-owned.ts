/** The refusal of work on a session that another process runs. */
import type { ProcessIdentity } from '../core/terms.ts';
import { AppError } from '../errors.ts';

/** The reason is the contract, the sentence is for a person: it names the session and who holds it. */
export function notOwned(sessionId: string, holder: Pick<ProcessIdentity, 'pid'>): AppError {
  return new AppError(
    'session_not_owned',
    `Session ${sessionId} is run by another Turnkeep process (pid ${holder.pid}) on this home.`,
    { holder: { pid: holder.pid } },
  );
}
