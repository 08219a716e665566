/**
 * Cancel and interrupt belong to the process that has the session (LE1): the readers and waiters of a prompt are where
 * it was accepted, and are told there. Another one is refused with who has it, and nothing is changed. A session that a
 * dead process left is taken first, and what it left is resolved.
 */
import type { SessionRow, Stores } from '../../db/stores.ts';
import { AppError } from '../errors.ts';
import type { Leases } from '../lease/leases.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Drain } from './drain.ts';
import type { Stop } from './stop.ts';

export interface OwnedStopParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  registry: LiveRegistry;
  leases: Pick<Leases, 'own'>;
  drain: Pick<Drain, 'wake'>;
  /** Resolves what dead processes left of the session. */
  recover(session: SessionRow): Promise<void>;
  stop: Stop;
}

export function createOwnedStop({ stores, registry, leases, drain, recover, stop }: OwnedStopParts): Stop {
  /** Changes what waits in a session as its owner. @throws AppError session_not_owned */
  async function owned<T>(sessionId: string, change: () => Promise<T>): Promise<T> {
    const release = registry.hold(sessionId);
    let isNew = false;
    try {
      isNew = (await leases.own(registry.open(sessionId))) === 'taken';
      return await change();
    } finally {
      // Whoever takes a session runs what waits in it, and gives it back when nothing does.
      if (isNew) drain.wake(sessionId);
      release();
    }
  }

  return {
    async cancel(sessionId, admissionId) {
      const admission = await stores.admissions.get(sessionId, admissionId);
      const cancel = () => stop.cancel(sessionId, admissionId);
      // What has begun or ended is not changed by this: its receipt, or the refusal, is the same everywhere.
      return admission?.status === 'queued' ? owned(sessionId, cancel) : cancel();
    },

    async interrupt(sessionId, options) {
      const interrupt = () => stop.interrupt(sessionId, options);
      if (registry.peek(sessionId)?.run) return interrupt();
      const session = await stores.sessions.get(sessionId);
      if (!session) throw new AppError('session_not_found');
      await recover(session);
      const open = (await stores.sessions.get(sessionId))?.open ?? [];
      const isWaiting = open.some((one) => one.status === 'queued') && open.every((one) => one.status !== 'started');
      // A prompt that waits elsewhere is what is meant by a stop that finds nothing running here.
      return isWaiting ? owned(sessionId, interrupt) : interrupt();
    },

    resolve: (sessionId, admissionId) => stop.resolve(sessionId, admissionId),
  };
}
