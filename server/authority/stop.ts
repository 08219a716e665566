/** Cancelling a prompt that waits, interrupting the turn that runs, resolving one whose fate is unknown. */
import type { Stores } from '../../db/stores.ts';
import type { Admission } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import { notOwned } from '../lease/not-owned.ts';
import type { LiveRegistry } from '../live/registry.ts';
import type { Completions } from './completions.ts';
import type { Doubts } from './doubts.ts';
import type { Drain } from './drain.ts';
import type { ResolveUnknown } from './resolve-unknown.ts';

export interface StopParts {
  stores: Pick<Stores, 'admissions' | 'sessions' | 'epochs'>;
  registry: LiveRegistry;
  drain: Drain;
  completions: Completions;
  doubts: Doubts;
  resolveUnknown: ResolveUnknown;
  /** Frees what only a prompt that will never run has kept. It may fail, and is done again by the same call again. */
  release?(admission: Admission): Promise<void>;
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

export function createStop(parts: StopParts): Stop {
  const { stores, registry, drain, completions, doubts, within, now, onChange } = parts;

  async function cancel(sessionId: string, admissionId: string): Promise<Admission> {
    const write = () => stores.admissions.cancel(sessionId, admissionId, now());
    const outcome = await doubts.during([admissionId], write, lookFor(sessionId));
    if (outcome.kind === 'not_found') throw new AppError('prompt_not_found');
    if (outcome.kind === 'stale_generation') {
      throw new AppError('stale_generation', 'This prompt has started. Interrupt the session to stop it.');
    }
    if (outcome.kind === 'unknown_execution') throw new AppError('unknown_execution');
    const { admission } = outcome;
    const isUntold = doubts.take(admissionId);
    if (outcome.kind === 'cancelled' || (isUntold && isCancelled(admission))) tellCancelled(sessionId, [admission]);
    // Behind the completion, so that its failure withholds nothing; the same call again tries it again.
    if (isCancelled(admission)) await parts.release?.(admission);
    return admission;
  }

  /** Tells of a cancelled prompt whose cancelling had reported failure, unless somebody has. */
  const lookFor = (sessionId: string) => async (admissionId: string) => {
    const admission = await stores.admissions.get(sessionId, admissionId);
    if (doubts.take(admissionId) && admission && isCancelled(admission)) tellCancelled(sessionId, [admission]);
  };

  /** Cancels all that wait. */
  async function clear(sessionId: string): Promise<Admission[]> {
    const session = await stores.sessions.get(sessionId);
    const waiting = session?.open.filter((row) => row.status === 'queued').map((row) => row.admission_id) ?? [];
    const write = () => stores.admissions.cancelQueued(sessionId, now());
    const cancelled = await doubts.during(waiting, write, lookFor(sessionId));
    for (const { admission_id } of cancelled) doubts.take(admission_id);
    tellCancelled(sessionId, cancelled);
    for (const admission of cancelled) await parts.release?.(admission);
    return cancelled;
  }

  /** Each of them is told its one end, and the queue behind them moves. */
  function tellCancelled(sessionId: string, cancelled: readonly Admission[]): void {
    for (const admission of cancelled) {
      registry.peek(sessionId)?.publishUnrun(admission, 'cancelled');
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
      const started = session.open.find((row) => row.status === 'started');
      // A head that is checked has no run yet, and one that was claimed this moment neither.
      const isMeant = generation === null || (started !== undefined && generation === session.generation);
      const head = !run && isMeant ? drain.stopHead(sessionId) : null;
      const next = session.generation + (started?.admission_id === head ? 0 : 1);
      const current = run?.generation ?? (head === null ? session.generation : next);
      if (generation !== null && generation !== current) {
        throw new AppError('stale_generation', undefined, { generation: current });
      }
      if (!run && head === null && started) {
        throw notOwned(sessionId, (await stores.epochs.process(started.epoch!)) ?? { pid: 0 });
      }
      if (!run?.agentEnded) run?.stop.abort();
      const cancelled = clearQueue ? await clear(sessionId) : [];
      const isStopped = run ? !run.agentEnded : head !== null && cancelled.every((one) => one.admission_id !== head);
      return {
        status: isStopped ? 'interrupted' : 'idle',
        generation: isStopped || run ? current : session.generation,
      };
    },

    async resolve(sessionId, admissionId) {
      const outcome = await parts.resolveUnknown(sessionId, admissionId);
      if (outcome.kind === 'not_found') throw new AppError('prompt_not_found');
      if (outcome.admission.status !== 'terminal') {
        throw new AppError('stale_generation', 'This prompt is not of unknown fate.');
      }
      return outcome.admission;
    },
  };
}

const isCancelled = ({ outcome }: Admission): boolean => outcome === 'cancelled';
