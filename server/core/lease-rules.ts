/** Who may run a session: the decision over values (LE1, LE3, LE4, LE6, LE7). Ownership is judged before capacity. */
import type { ProcessIdentity } from './terms.ts';

export interface LeaseOwner extends ProcessIdentity {
  liveSessionId: string;
  epoch: number;
}

export type LeaseVerdict =
  | { kind: 'granted'; renew: boolean; prune: LeaseOwner[] }
  | { kind: 'not_owned'; holder: LeaseOwner }
  | { kind: 'capacity' };

/** Whether two records name one process. */
export const sameProcess = (a: ProcessIdentity, b: ProcessIdentity): boolean => a.pid === b.pid && a.start === b.start;

/** Whether two records name one live session of one process. */
export const sameWriter = (a: LeaseOwner, b: LeaseOwner): boolean =>
  sameProcess(a, b) && a.liveSessionId === b.liveSessionId;

/**
 * Whether a session needs a lease to be worked on. A draft that has no id yet is stored nowhere, so nobody can collide
 * with it; taken for a session of its own, the first one would shut out every other.
 */
export const needsLease = (sessionId: string): boolean => sessionId !== '';

/**
 * @param holder who has the lease of this session now
 * @param others the holders of all other sessions; only needed when there is a cap
 * @param alive whether a process still lives; "cannot tell" counts as alive
 */
export function judgeLease(
  claimant: LeaseOwner,
  holder: LeaseOwner | null,
  others: readonly LeaseOwner[],
  cap: number | null,
  alive: (process: ProcessIdentity) => boolean,
): LeaseVerdict {
  if (holder && sameWriter(holder, claimant)) return { kind: 'granted', renew: true, prune: [] };
  // A runtime of this same process that is gone from memory has no claim of its own any more.
  const ours = holder !== null && sameProcess(holder, claimant);
  if (holder && !ours && alive(holder)) return { kind: 'not_owned', holder };
  const dead = others.filter((other) => !alive(other));
  if (cap !== null && others.length - dead.length >= cap) return { kind: 'capacity' };
  return { kind: 'granted', renew: false, prune: dead };
}
