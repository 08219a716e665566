/** The admission store in memory. */
import type { AdmissionStore, AliveProbe, Fence, TurnEnd } from '../../db/stores.ts';
import { headOf, judgeAdmission, judgeCancel, type OpenAdmission } from '../../server/core/admission-rules.ts';
import { judgeEdit } from '../../server/core/edit-rules.ts';
import type { Admission, Message } from '../../server/core/terms.ts';
import { applyCut } from './memory-edits.ts';
import {
  addSession,
  atomic,
  type MemoryState,
  openOf,
  putRows,
  type StoredSession,
  takeLease,
  touch,
} from './memory-state.ts';

export function createMemoryAdmissions(state: MemoryState, alive: AliveProbe): AdmissionStore {
  const find = (sessionId: string, admissionId: string): Admission | undefined =>
    state.admissions.find((one) => one.session_id === sessionId && one.admission_id === admissionId);

  const write = (sessionId: string, rows: readonly Message[]): void => putRows(state, sessionId, rows);

  const holds = (fence: Fence): boolean => {
    const admission = find(fence.session_id, fence.admission_id);
    return (
      admission?.status === 'started' &&
      admission.epoch === fence.epoch &&
      admission.generation === fence.generation &&
      state.sessions.get(fence.session_id)?.generation === fence.generation
    );
  };

  const claimed = (sessionId: string): Admission[] =>
    state.admissions
      .filter((one) => one.session_id === sessionId && one.generation !== null)
      .sort((a, b) => a.generation! - b.generation!);

  return {
    admit: (input, { maxQueued, lease, cut, draft }) =>
      atomic(() => {
        const stored = state.sessions.get(input.session_id);
        if (!stored && (!draft || state.tombstones.has(input.session_id))) return { kind: 'not_found' };
        const existing = state.admissions.find(
          (one) =>
            one.principal_id === input.principal_id &&
            one.session_id === input.session_id &&
            one.request_id === input.request_id,
        );
        const open = openOf(state, input.session_id);
        const verdict = judgeAdmission({
          existing: existing ?? null,
          digest: input.digest,
          mode: input.mode,
          queued: open.filter((one) => one.status === 'queued').length,
          busy: open.some((one) => one.status !== 'queued'),
          maxQueued,
        });
        if (verdict === 'repeat') return { kind: 'repeat', admission: existing! };
        if (verdict !== 'admit') return { kind: verdict };
        if (cut && stored) {
          const mayCut = judgeEdit({ open, revision: stored.revision, expected: cut.revision });
          if (mayCut !== 'edit') return { kind: mayCut };
        }
        const granted = takeLease(state, input.session_id, lease, alive);
        if (granted.kind !== 'granted') return granted;
        const session = stored ?? addSession(state, draft!);
        if (cut) applyCut(state, session, cut, input.now);
        const { now, ...named } = input;
        state.accepted += 1;
        const admission: Admission = {
          ...named,
          sequence: state.accepted,
          status: 'queued',
          outcome: null,
          epoch: null,
          generation: null,
          created_at: now,
          started_at: null,
          ended_at: null,
          last_seq: null,
          message_id: null,
          error: null,
          journal_pruned: false,
        };
        state.admissions.push(admission);
        touch(session, now);
        session.last_activity_at = now;
        return { kind: 'admitted', admission };
      }),

    claim: (sessionId, admissionId, { epoch, now }) =>
      atomic(() => {
        const head = headOf(openOf(state, sessionId) as OpenAdmission[]);
        if (head.kind === 'blocked') return { kind: 'blocked' };
        if (head.kind === 'empty' || head.admissionId !== admissionId) return { kind: 'moved' };
        const session = state.sessions.get(sessionId)!;
        const admission = find(sessionId, admissionId)!;
        session.generation += 1;
        session.message_count += 1;
        session.last_activity_at = now;
        session.last_message_at = now;
        touch(session, now);
        Object.assign(admission, { status: 'started', epoch, generation: session.generation, started_at: now });
        const { run_id, text, attachments } = admission;
        const prompt: Message = { id: `${run_id}.0`, role: 'user', content: text, timestamp: now, run_id };
        if (attachments.length) prompt.attachments = attachments;
        write(sessionId, [prompt]);
        const fence: Fence = {
          session_id: sessionId,
          admission_id: admissionId,
          run_id,
          epoch,
          generation: session.generation,
        };
        return { kind: 'claimed', admission, fence };
      }),

    appendRows: (fence, rows) =>
      atomic(() => {
        if (!holds(fence)) return 'fenced';
        write(fence.session_id, rows);
        return 'appended';
      }),

    absorb: (fence, admissionId, rows, now) =>
      atomic(() => {
        if (!holds(fence)) return 'fenced';
        const admission = find(fence.session_id, admissionId);
        if (admission?.status !== 'queued' || admission.mode !== 'steer') return 'moved';
        write(fence.session_id, rows);
        const end = { status: 'terminal', outcome: 'completed', ended_at: now, message_id: rows.at(-1)!.id } as const;
        Object.assign(admission, end, { journal_pruned: true });
        touch(state.sessions.get(fence.session_id)!, now);
        return 'absorbed';
      }),

    settle: ({ fence, outcome, now, ...end }) =>
      atomic(() => {
        if (!holds(fence)) return 'fenced';
        write(fence.session_id, end.rows);
        const admission = find(fence.session_id, fence.admission_id)!;
        const { error, message_id, last_seq } = end;
        Object.assign(admission, { status: 'terminal', outcome, error, message_id, last_seq, ended_at: now });
        const session = state.sessions.get(fence.session_id)!;
        countTurn(session, end, now);
        touch(session, now);
        return 'settled';
      }),

    markUnknown: (admissionId) =>
      atomic(() => {
        const admission = state.admissions.find((one) => one.admission_id === admissionId);
        if (admission?.status !== 'started') return;
        admission.status = 'unknown';
        touch(state.sessions.get(admission.session_id)!, null);
      }),

    resolve: (sessionId, admissionId, now, end) =>
      atomic(() => {
        const admission = find(sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        if (admission.status !== 'unknown') return { kind: 'not_unknown', admission };
        Object.assign(admission, { status: 'terminal', outcome: 'interrupted', ended_at: now });
        if (end) {
          write(sessionId, end.rows);
          Object.assign(admission, { error: end.error, message_id: end.message_id, last_seq: end.last_seq });
          countTurn(state.sessions.get(sessionId)!, end, now);
        }
        touch(state.sessions.get(sessionId)!, now);
        return { kind: 'resolved', admission };
      }),

    cancel: (sessionId, admissionId, now) =>
      atomic(() => {
        const admission = find(sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        const verdict = judgeCancel(admission.status);
        if (verdict !== 'cancel') return { kind: verdict, admission };
        // It never ran, so there is no journal to be kept.
        Object.assign(admission, { status: 'terminal', outcome: 'cancelled', ended_at: now, journal_pruned: true });
        touch(state.sessions.get(sessionId)!, now);
        return { kind: 'cancelled', admission };
      }),

    cancelQueued: (sessionId, now) =>
      atomic(() => {
        const waiting = state.admissions.filter((one) => one.session_id === sessionId && one.status === 'queued');
        for (const one of waiting) {
          Object.assign(one, { status: 'terminal', outcome: 'cancelled', ended_at: now, journal_pruned: true });
          touch(state.sessions.get(sessionId)!, now);
        }
        return waiting;
      }),

    get: (sessionId, admissionId) => atomic(() => find(sessionId, admissionId) ?? null),

    byRun: (sessionId, runId) =>
      atomic(() => state.admissions.find((one) => one.session_id === sessionId && one.run_id === runId) ?? null),

    byRequest: (principalId, sessionId, requestId) =>
      atomic(
        () =>
          state.admissions.find(
            (one) => one.principal_id === principalId && one.session_id === sessionId && one.request_id === requestId,
          ) ?? null,
      ),

    list: (sessionId, { pending, limit }) =>
      atomic(() =>
        pending
          ? openOf(state, sessionId)
          : state.admissions.filter((one) => one.session_id === sessionId).slice(-limit),
      ),

    claimedSince: (sessionId, generation, limit) =>
      atomic(() =>
        claimed(sessionId)
          .filter((one) => one.generation! > generation)
          .slice(0, limit),
      ),

    prunedSince: (sessionId, generation) =>
      atomic(() => claimed(sessionId).some((one) => one.generation! > generation && one.journal_pruned)),

    lastClaimed: (sessionId) => atomic(() => claimed(sessionId).at(-1) ?? null),

    withJournalBefore: (time, limit) =>
      atomic(() =>
        state.admissions
          .filter((one) => one.status === 'terminal' && !one.journal_pruned && one.ended_at! < time)
          .sort((a, b) => a.ended_at! - b.ended_at!)
          .slice(0, limit)
          .map(({ session_id, run_id, admission_id }) => ({ session_id, run_id, admission_id })),
      ),

    countOpen: () =>
      atomic(() => {
        const counts = { queued: 0, started: 0, unknown: 0 };
        for (const { status } of state.admissions) if (status !== 'terminal') counts[status] += 1;
        return counts;
      }),

    journalPruned: (admissionId) =>
      atomic(() => {
        const admission = state.admissions.find((one) => one.admission_id === admissionId);
        if (admission) admission.journal_pruned = true;
      }),
  };
}

function countTurn(session: StoredSession, { rows, usage, flag }: TurnEnd, now: number): void {
  session.message_count += rows.length;
  session.last_activity_at = now;
  session.last_message_at = rows.at(-1)?.timestamp ?? session.last_message_at;
  if (flag && !session.flags.includes(flag)) session.flags.push(flag);
  if (!usage) return;
  session.input_tokens += usage.input_tokens;
  session.output_tokens += usage.output_tokens;
  session.cached_tokens += usage.cached_tokens ?? 0;
  session.reasoning_tokens += usage.reasoning_tokens ?? 0;
  session.context_used = usage.context_used ?? session.context_used;
  if (usage.context_used !== undefined) session.context_estimated = usage.context_estimated ?? false;
  session.context_length = usage.context_length ?? session.context_length;
  if (usage.cost_usd !== undefined) session.cost_usd = (session.cost_usd ?? 0) + usage.cost_usd;
}
