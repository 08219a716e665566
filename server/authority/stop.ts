/** Cancelling a prompt that waits, interrupting the turn that runs, resolving one whose fate is unknown. */
import type { Stores } from '../../db/stores.ts';
import type { Admission } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import { notOwned } from '../lease/not-owned.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Completions } from './completions.ts';
import type { Drain } from './drain.ts';

export interface StopParts {
  stores: Pick<Stores, 'admissions' | 'sessions' | 'epochs'>;
  registry: LiveRegistry;
  drain: Drain;
  completions: Completions;
  /** Whether something happens within the time that a request may take. */
  within(event: Promise<void>): Promise<boolean>;
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

export function createStop({ stores, registry, drain, completions, within, now, onChange }: StopParts): Stop {
  async function cancel(sessionId: string, admissionId: string): Promise<Admission> {
    const outcome = await stores.admissions.cancel(sessionId, admissionId, now());
    if (outcome.kind === 'not_found') throw new AppError('prompt_not_found');
    if (outcome.kind === 'stale_generation') {
      throw new AppError('stale_generation', 'This prompt has started. Interrupt the session to stop it.');
    }
    if (outcome.kind === 'unknown_execution') throw new AppError('unknown_execution');
    if (outcome.kind === 'cancelled') tellCancelled(sessionId, [outcome.admission]);
    return outcome.admission;
  }

  /** Each of them is told its one end, and the queue behind them moves. */
  function tellCancelled(sessionId: string, cancelled: readonly Admission[]): void {
    for (const admission of cancelled) {
      registry.peek(sessionId)?.publishCancelled(admission);
      completions.settle(admission.admission_id);
    }
    if (cancelled.length === 0) return;
    onChange(sessionId, 'cancelled');
    drain.arm(sessionId);
  }

  return {
    cancel,

    async interrupt(sessionId, { generation, clearQueue }) {
      // A prompt that is about to be claimed is what a person who presses stop now means.
      if (!(await within(drain.begun(sessionId)))) throw new AppError('storage_unavailable');
      const session = await stores.sessions.get(sessionId);
      if (!session) throw new AppError('session_not_found');
      const run = registry.peek(sessionId)?.run;
      const current = run?.generation ?? session.generation;
      if (generation !== null && generation !== current) {
        throw new AppError('stale_generation', undefined, { generation: current });
      }
      const started = session.open.find((row) => row.status === 'started');
      if (!run && started) {
        throw notOwned(sessionId, (await stores.epochs.process(started.epoch!)) ?? { pid: 0 });
      }
      if (!run?.agentEnded) run?.stop.abort();
      if (clearQueue) tellCancelled(sessionId, await stores.admissions.cancelQueued(sessionId, now()));
      return { status: run && !run.agentEnded ? 'interrupted' : 'idle', generation: current };
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
