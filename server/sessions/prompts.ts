/** Prompts as their senders see them: submit, look up, and wait for the end. */
import type { Stores } from '../../db/stores.ts';
import type { Admit, Submission } from '../authority/admit.ts';
import type { Completions } from '../authority/completions.ts';
import { completionOf } from '../core/completion.ts';
import type { Admission, Message } from '../core/terms.ts';
import { AppError } from '../errors.ts';
import { type LiveEvent, plainLiveEvent } from '../live/live-event.ts';
import { unrunCompletion } from '../live/live-session.ts';
import type { LiveRegistry } from '../live/registry.ts';
import { type AdmissionView, toAdmissionView } from './admission-view.ts';
import type { Sessions } from './sessions.ts';
import type { WhyStuck } from './stuck.ts';
import type { Transcripts } from './transcripts.ts';

export interface PromptsParts {
  stores: Pick<Stores, 'admissions' | 'sessions'>;
  admit: Admit;
  completions: Completions;
  registry: LiveRegistry;
  sessions: Sessions;
  transcripts: Transcripts;
  whyStuck: WhyStuck;
  isDraining(): boolean;
}

/** How a wait ended: with the turn, or before it because the queue does not move. */
export type Waited =
  | { kind: 'ended'; admission: AdmissionView; message: string | null }
  | { kind: 'pending'; admission: AdmissionView; reason: string };

export interface Prompts {
  submit(submission: Submission): Promise<AdmissionView>;
  /** @throws AppError prompt_not_found */
  get(sessionId: string, admissionId: string): Promise<AdmissionView>;
  /** An admission as its sender sees it now. */
  receipt(admission: Admission): Promise<AdmissionView>;
  /**
   * Refuses what nobody here can follow to its end.
   * @throws AppError unknown_execution, or session_not_owned when another process runs the session
   */
  assertFollowable(admission: AdmissionView): Promise<void>;
  list(sessionId: string, pending: boolean, limit: number): Promise<AdmissionView[]>;
  /** Why a prompt that waits will not run for now; null when nothing is in its way. */
  whyWaits(admission: AdmissionView): Promise<string | null>;
  /** @throws AppError unknown_execution when the fate of the turn cannot be known */
  waitForEnd(sessionId: string, admissionId: string, signal: AbortSignal): Promise<Waited>;
  /** `message.complete` of an ended prompt by what is stored of it, for when its journal is not there to tell. */
  completion(sessionId: string, admissionId: string): Promise<LiveEvent | null>;
}

export function createPrompts(parts: PromptsParts): Prompts {
  const { stores, registry } = parts;

  /** Nobody sees an admission ended before its `message.complete` was shown (EV3): until then it runs. */
  function presented(admission: Admission): Admission {
    const shown = registry.peek(admission.session_id)?.run?.admissionId !== admission.admission_id;
    if (shown || admission.status !== 'terminal') return admission;
    return { ...admission, status: 'started', outcome: null, error: null };
  }

  async function view(stored: Admission): Promise<AdmissionView> {
    const admission = presented(stored);
    if (admission.status !== 'queued') return toAdmissionView(admission);
    const session = await stores.sessions.get(admission.session_id);
    const queued = session?.open.filter((one) => one.status === 'queued') ?? [];
    const index = queued.findIndex((one) => one.admission_id === admission.admission_id);
    return toAdmissionView(admission, index < 0 ? undefined : index);
  }

  /** The row that the end of a turn named, as JSON text. */
  async function finalMessage(admission: Admission): Promise<string | null> {
    if (admission.message_id === null) return null;
    const { rows } = await parts.transcripts.read(admission.session_id);
    return rows.findLast((row) => row.id === admission.message_id)?.json ?? null;
  }

  return {
    submit: async (submission) => {
      // 404 first, and what a dead process left is resolved. A draft has no row yet.
      if (!submission.draft) await parts.sessions.get(submission.sessionId);
      return view(await parts.admit(submission));
    },

    async get(sessionId, admissionId) {
      const admission = await stores.admissions.get(sessionId, admissionId);
      if (!admission) throw new AppError('prompt_not_found');
      return view(admission);
    },

    receipt: view,

    async assertFollowable(admission) {
      if (admission.status === 'unknown') throw new AppError('unknown_execution');
      if (admission.status !== 'terminal') await parts.sessions.assertStreamable(admission.session_id);
    },

    whyWaits: async ({ status, session_id }) => (status === 'queued' ? parts.whyStuck(session_id) : null),

    async list(sessionId, pending, limit) {
      await parts.sessions.get(sessionId);
      const admissions = await stores.admissions.list(sessionId, { pending, limit });
      let queued = 0;
      return admissions.map((one) => toAdmissionView(presented(one), one.status === 'queued' ? queued++ : undefined));
    },

    async waitForEnd(sessionId, admissionId, signal) {
      for (;;) {
        const leave = new AbortController();
        const woken = parts.completions.wait(admissionId, AbortSignal.any([signal, leave.signal]));
        try {
          const admission = await stores.admissions.get(sessionId, admissionId);
          if (!admission) throw new AppError('prompt_not_found');
          const live = registry.peek(sessionId);
          if (admission.status === 'unknown') throw new AppError('unknown_execution');
          // Terminal for others only once its completion was published.
          if (admission.status === 'terminal' && live?.run?.admissionId !== admissionId) {
            return { kind: 'ended', admission: await view(admission), message: await finalMessage(admission) };
          }
          if (signal.aborted) return { kind: 'pending', admission: await view(admission), reason: 'disconnected' };
          const reason = admission.status === 'queued' ? await parts.whyStuck(sessionId) : null;
          if (reason !== null) return { kind: 'pending', admission: await view(admission), reason };
          if (!live?.run && parts.isDraining()) {
            return { kind: 'pending', admission: await view(admission), reason: 'draining' };
          }
          await woken;
        } finally {
          leave.abort();
        }
      }
    },

    async completion(sessionId, admissionId) {
      const admission = await stores.admissions.get(sessionId, admissionId);
      if (admission?.status !== 'terminal' || admission.outcome === null) return null;
      const { run_id, outcome, error, generation } = admission;
      if (generation === null) {
        return unrunCompletion(sessionId, admissionId, run_id, outcome === 'cancelled' ? 'cancelled' : 'completed');
      }
      const json = await finalMessage(admission);
      const rows = json === null ? [] : [JSON.parse(json) as Message];
      const payload = completionOf({ admissionId, outcome, rows, usage: rows[0]?.usage ?? null, error });
      return plainLiveEvent('message.complete', sessionId, payload, { run_id, admission_id: admissionId });
    },
  };
}
