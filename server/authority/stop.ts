/** Cancelling a prompt that waits, interrupting the turn that runs, resolving one whose fate is unknown. */
import type { Stores } from '../../db/stores.ts';
import type { Admission } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Completions } from './completions.ts';
import type { Drain } from './drain.ts';

export interface StopParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  registry: LiveRegistry;
  drain: Drain;
  completions: Completions;
  now(): number;
  onChange(sessionId: string, reason: string): void;
}

export interface Stop {
  /** Cancels a waiting prompt; the same again gives the same. @throws AppError stale_generation when it has started */
  cancel(sessionId: string, admissionId: string): Promise<Admission>;
  /** Stops the running turn. With a generation: that turn and no other. */
  interrupt(
    sessionId: string,
    options: { generation: number | null; clearQueue: boolean },
  ): Promise<{ status: 'interrupted' | 'idle'; generation: number }>;
  /** Ends a row left `unknown`; the queue behind it goes on. */
  resolve(sessionId: string, admissionId: string): Promise<Admission>;
}

export function createStop({ stores, registry, drain, completions, now, onChange }: StopParts): Stop {
  async function cancel(sessionId: string, admissionId: string): Promise<Admission> {
    const outcome = await stores.admissions.cancel(sessionId, admissionId, now());
    if (outcome.kind === 'not_found') throw new AppError('prompt_not_found');
    if (outcome.kind === 'stale_generation') {
      throw new AppError('stale_generation', 'This prompt has started. Interrupt the session to stop it.');
    }
    if (outcome.kind === 'unknown_execution') throw new AppError('unknown_execution');
    if (outcome.kind === 'cancelled') {
      registry.peek(sessionId)?.publishCancelled(outcome.admission);
      completions.settle(admissionId);
      onChange(sessionId, 'cancelled');
      drain.arm(sessionId);
    }
    return outcome.admission;
  }

  return {
    cancel,

    async interrupt(sessionId, { generation, clearQueue }) {
      // A prompt that is about to be claimed is what a person who presses stop now means.
      await drain.begun(sessionId);
      const session = await stores.sessions.get(sessionId);
      if (!session) throw new AppError('session_not_found');
      const live = registry.peek(sessionId);
      const current = live?.run?.generation ?? session.generation;
      if (generation !== null && generation !== current)
        throw new AppError('stale_generation', undefined, { generation: current });
      if (!live?.run && session.open.some((row) => row.status === 'started')) throw new AppError('session_not_owned');
      live?.run?.stop.abort();
      if (clearQueue) {
        for (const row of session.open) {
          if (row.status === 'queued') await cancel(sessionId, row.admission_id);
        }
      }
      return { status: live?.run ? 'interrupted' : 'idle', generation: current };
    },

    async resolve(sessionId, admissionId) {
      const outcome = await stores.admissions.resolve(sessionId, admissionId, now());
      if (outcome.kind === 'not_found') throw new AppError('prompt_not_found');
      if (outcome.kind === 'resolved') {
        completions.settle(admissionId);
        onChange(sessionId, 'resolved');
        drain.arm(sessionId);
      } else if (outcome.admission.status !== 'terminal') {
        throw new AppError('stale_generation', 'This prompt is not of unknown fate.');
      }
      return outcome.admission;
    },
  };
}
