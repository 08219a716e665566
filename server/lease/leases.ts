/** This process as an owner of sessions: takes and gives back leases under its own identity. */
import { RegistryTrouble } from '../../db/storage-trouble.ts';
import type { LeaseRequest, LeaseStore } from '../../db/stores.ts';
import { type LeaseOwner, sameProcess, sameWriter } from '../core/lease-rules.ts';
import type { ProcessIdentity } from '../core/terms.ts';
import type { LiveSession } from '../live/live-session.ts';
import { notOwned } from './not-owned.ts';

export interface LeasesParts {
  store: LeaseStore;
  process: ProcessIdentity;
  epoch: number;
  /** `max_concurrent_sessions`. */
  cap: number | null;
  now(): number;
  newId(): string;
  log?: { warn(fields: object, message: string): void };
}

export interface Leases {
  /** What this process asks for when it wants to run a session. */
  request(live: LiveSession): LeaseRequest;
  /** Takes the lease for work that no prompt asked for (recovery, healing): no cap applies. */
  acquire(live: LiveSession): Promise<'granted' | 'not_owned'>;
  /** The same, but a state DB that is locked right now is a failure at once: for work that a reader must not wait for. */
  acquireNow(live: LiveSession): Promise<'granted' | 'not_owned'>;
  /**
   * Takes it unless this process has it. No cap applies.
   * @throws AppError session_not_owned when another process lives and has it
   */
  own(live: LiveSession): Promise<'held' | 'taken'>;
  /** Who else lives and has the lease of a session; null when nobody else does. */
  elsewhere(sessionId: string): Promise<ProcessIdentity | null>;
  /** Sessions whose queue has lost its owner, and whether other living processes have sessions with prompts. */
  abandoned(): Promise<{ sessions: string[]; othersRun: boolean }>;
  /** Gives it back unless prompts are still open or gateway clients hold the session. @param wait false: not now, when the state DB is locked */
  releaseIdle(live: LiveSession, wait?: boolean): Promise<void>;
}

export function createLeases({ store, process, epoch, cap, now, newId, log }: LeasesParts): Leases {
  const owner = (live: LiveSession): LeaseOwner => ({ ...process, liveSessionId: live.runtimeId, epoch });
  const request = (live: LiveSession): LeaseRequest => ({
    owner: owner(live),
    surface: 'turnkeep',
    leaseId: newId(),
    cap,
    now: now(),
  });
  const acquire = (live: LiveSession, wait = true) =>
    store.acquire(live.sessionId, { ...request(live), cap: null, wait });
  const kindOf = async (live: LiveSession, wait: boolean) =>
    (await acquire(live, wait)).kind === 'granted' ? ('granted' as const) : ('not_owned' as const);
  return {
    request,
    acquire: (live) => kindOf(live, true),
    acquireNow: (live) => kindOf(live, false),

    async own(live) {
      const { sessionId } = live;
      const holder = await store.holder(sessionId);
      if (holder && sameWriter(holder, owner(live))) return 'held';
      // Also from a runtime of this process that is gone from memory: under its name nobody would give it back.
      const isOthers = holder !== null && !sameProcess(holder, process);
      const answer = isOthers ? { kind: 'not_owned' as const, holder } : await acquire(live);
      if (answer.kind === 'not_owned') throw notOwned(sessionId, answer.holder);
      return 'taken';
    },

    async elsewhere(sessionId) {
      const holder = await store.holder(sessionId);
      return holder && !sameProcess(holder, process) ? holder : null;
    },

    abandoned: () => store.abandoned(process),

    async releaseIdle(live, wait = true) {
      if (live.held) return;
      try {
        await store.releaseIdle(live.sessionId, owner(live), { wait });
      } catch (error) {
        if (!(error instanceof RegistryTrouble)) throw error;
        // The end of a turn is not held up for it: it stays ours, and is taken again with the next prompt.
        log?.warn({ session_id: live.sessionId, err: error }, 'a lease could not be given back');
      }
    },
  };
}
