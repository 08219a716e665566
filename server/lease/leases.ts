/** This process as an owner of sessions: takes and gives back leases under its own identity. */
import type { LeaseRequest, LeaseStore } from '../../db/stores.ts';
import type { LeaseOwner } from '../core/lease-rules.ts';
import type { ProcessIdentity } from '../core/terms.ts';
import type { LiveSession } from '../live/live-session.ts';

export interface LeasesParts {
  store: LeaseStore;
  process: ProcessIdentity;
  epoch: number;
  /** `max_concurrent_sessions`. */
  cap: number | null;
  now(): number;
  newId(): string;
}

export interface Leases {
  /** What this process asks for when it wants to run a session. */
  request(live: LiveSession): LeaseRequest;
  /** Takes the lease for work that no prompt asked for (recovery, healing): no cap applies. */
  acquire(live: LiveSession): Promise<'granted' | 'not_owned'>;
  /** The same, but a state DB that is locked right now is a failure at once: for work that a reader must not wait for. */
  acquireNow(live: LiveSession): Promise<'granted' | 'not_owned'>;
  /** Gives it back unless prompts are still open. */
  releaseIdle(live: LiveSession): Promise<void>;
}

export function createLeases({ store, process, epoch, cap, now, newId }: LeasesParts): Leases {
  const owner = (live: LiveSession): LeaseOwner => ({ ...process, liveSessionId: live.runtimeId, epoch });
  const request = (live: LiveSession): LeaseRequest => ({
    owner: owner(live),
    surface: 'turnkeep',
    leaseId: newId(),
    cap,
    now: now(),
  });
  const acquire = async (live: LiveSession, wait: boolean) => {
    const answer = await store.acquire(live.sessionId, { ...request(live), cap: null, wait });
    return answer.kind === 'granted' ? ('granted' as const) : ('not_owned' as const);
  };
  return {
    request,
    acquire: (live) => acquire(live, true),
    acquireNow: (live) => acquire(live, false),
    async releaseIdle(live) {
      await store.releaseIdle(live.sessionId, owner(live));
    },
  };
}
