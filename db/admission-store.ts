/**
 * Admissions: one durable row for each accepted prompt, and every step of its way as one conditional transaction.
 * A write of a run names its claim (admission, epoch, generation) and changes nothing when that is no longer the
 * session's; the caller is told so.
 */
import { and, asc, desc, eq, gt, isNotNull, lt, ne, sql } from 'drizzle-orm';
import { headOf, judgeAdmission, judgeCancel, type OpenAdmission } from '../server/core/admission-rules.ts';
import type { Admission, Message } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { takeLease } from './lease-store.ts';
import { upsertMessages } from './message-store.ts';
import { type Payload, toAdmission } from './rows.ts';
import { sessionAdmissions, sessions } from './schema.ts';
import type { AdmissionStore, AliveProbe, Fence } from './stores.ts';

const rows = sessionAdmissions;

function openOf(db: Db, sessionId: string): OpenAdmission[] {
  return db
    .select({ admission_id: rows.admissionId, sequence: rows.seq, status: rows.status })
    .from(rows)
    .where(and(ne(rows.status, sql`'terminal'`), eq(rows.targetSessionId, sessionId)))
    .orderBy(asc(rows.seq))
    .all() as OpenAdmission[];
}

function one(db: Db, sessionId: string, admissionId: string): Admission | null {
  const row = db
    .select()
    .from(rows)
    .where(and(eq(rows.admissionId, admissionId), eq(rows.targetSessionId, sessionId)))
    .get();
  return row ? toAdmission(row) : null;
}

/** Whether a claim is still the session's: started, same epoch, same generation on both sides. */
function holds(db: Db, fence: Fence): boolean {
  const admission = one(db, fence.session_id, fence.admission_id);
  const session = db
    .select({ generation: sessions.runtimeGeneration })
    .from(sessions)
    .where(eq(sessions.id, fence.session_id))
    .get();
  return (
    admission?.status === 'started' &&
    admission.epoch === fence.epoch &&
    admission.generation === fence.generation &&
    session?.generation === fence.generation
  );
}

/** What a person can see of a session changed. */
const seen = (db: Db, sessionId: string, now: number, change: Partial<typeof sessions.$inferInsert> = {}): void => {
  db.update(sessions)
    .set({ ...change, updatedAt: now, runtimeRevision: sql`${sessions.runtimeRevision} + 1` })
    .where(eq(sessions.id, sessionId))
    .run();
};

export function createAdmissionStore(state: StateDb, alive: AliveProbe): AdmissionStore {
  return {
    admit: (input, { maxQueued, lease }) =>
      state.write((db) => {
        const sessionId = input.session_id;
        const session = db.select({ id: sessions.id }).from(sessions).where(eq(sessions.id, sessionId)).get();
        if (!session) return { kind: 'not_found' };
        const existing = db
          .select()
          .from(rows)
          .where(
            and(
              eq(rows.principalId, input.principal_id),
              eq(rows.targetSessionId, sessionId),
              eq(rows.requestId, input.request_id),
            ),
          )
          .get();
        const open = openOf(db, sessionId);
        const verdict = judgeAdmission({
          existing: existing ? toAdmission(existing) : null,
          digest: input.digest,
          mode: input.mode,
          queued: open.filter((row) => row.status === 'queued').length,
          busy: open.some((row) => row.status !== 'queued'),
          maxQueued,
        });
        if (verdict === 'repeat') return { kind: 'repeat', admission: toAdmission(existing!) };
        if (verdict !== 'admit') return { kind: verdict };
        const granted = takeLease(db, sessionId, lease, alive);
        if (granted.kind !== 'granted') return granted;
        const payload: Payload = { text: input.text, attachments: input.attachments, mode: input.mode };
        db.insert(rows)
          .values({
            admissionId: input.admission_id,
            requestId: input.request_id,
            principalId: input.principal_id,
            targetSessionId: sessionId,
            payloadJson: JSON.stringify(payload),
            payloadDigest: input.digest,
            intent: input.mode,
            status: 'queued',
            runId: input.run_id,
            createdAt: input.now,
          })
          .run();
        seen(db, sessionId, input.now, { lastActivityAt: input.now });
        return { kind: 'admitted', admission: one(db, sessionId, input.admission_id)! };
      }),

    claim: (sessionId, admissionId, { epoch, now }) =>
      state.write((db) => {
        const head = headOf(openOf(db, sessionId));
        if (head.kind === 'blocked') return { kind: 'blocked' };
        if (head.kind === 'empty' || head.admissionId !== admissionId) return { kind: 'moved' };
        const session = db
          .update(sessions)
          .set({
            runtimeGeneration: sql`${sessions.runtimeGeneration} + 1`,
            runtimeRevision: sql`${sessions.runtimeRevision} + 1`,
            messageCount: sql`${sessions.messageCount} + 1`,
            updatedAt: now,
            lastActivityAt: now,
            lastMessageAt: now,
          })
          .where(eq(sessions.id, sessionId))
          .returning({ generation: sessions.runtimeGeneration })
          .get();
        db.update(rows)
          .set({ status: 'started', ownerEpoch: epoch, generation: session.generation, startedAt: now })
          .where(eq(rows.admissionId, admissionId))
          .run();
        const admission = one(db, sessionId, admissionId)!;
        upsertMessages(db, sessionId, [promptRow(admission, now)]);
        return { kind: 'claimed', admission, fence: fenceOf(admission) };
      }),

    appendRows: (fence, added) =>
      state.write((db) => {
        if (!holds(db, fence)) return 'fenced';
        upsertMessages(db, fence.session_id, added);
        return 'appended';
      }),

    settle: (settlement) =>
      state.write((db) => {
        const { fence, now, usage } = settlement;
        if (!holds(db, fence)) return 'fenced';
        upsertMessages(db, fence.session_id, settlement.rows);
        db.update(rows)
          .set({
            status: 'terminal',
            outcome: settlement.outcome,
            endedAt: now,
            lastSeq: settlement.last_seq,
            messageId: settlement.message_id,
            error: settlement.error ? JSON.stringify(settlement.error) : null,
          })
          .where(eq(rows.admissionId, fence.admission_id))
          .run();
        const session = db.select().from(sessions).where(eq(sessions.id, fence.session_id)).get()!;
        const flags = JSON.parse(session.flags) as string[];
        if (settlement.flag && !flags.includes(settlement.flag)) flags.push(settlement.flag);
        seen(db, fence.session_id, now, {
          messageCount: session.messageCount + settlement.rows.length,
          toolCallCount: session.toolCallCount + settlement.rows.filter((row) => row.role === 'tool').length,
          lastActivityAt: now,
          lastMessageAt: settlement.rows.at(-1)?.timestamp ?? session.lastMessageAt,
          flags: JSON.stringify(flags),
          ...(usage && {
            inputTokens: session.inputTokens + usage.input_tokens,
            outputTokens: session.outputTokens + usage.output_tokens,
            cacheReadTokens: session.cacheReadTokens + (usage.cached_tokens ?? 0),
            reasoningTokens: session.reasoningTokens + (usage.reasoning_tokens ?? 0),
            contextUsed: usage.context_used ?? session.contextUsed,
            contextLength: usage.context_length ?? session.contextLength,
            estimatedCostUsd:
              usage.cost_usd === undefined
                ? session.estimatedCostUsd
                : (session.estimatedCostUsd ?? 0) + usage.cost_usd,
          }),
        });
        return 'settled';
      }),

    markUnknown: (admissionId) =>
      state.write((db) => {
        const marked = db
          .update(rows)
          .set({ status: 'unknown' })
          .where(and(eq(rows.admissionId, admissionId), eq(rows.status, 'started')))
          .returning({ sessionId: rows.targetSessionId })
          .get();
        if (!marked) return;
        db.update(sessions)
          .set({ runtimeRevision: sql`${sessions.runtimeRevision} + 1` })
          .where(eq(sessions.id, marked.sessionId))
          .run();
      }),

    resolve: (sessionId, admissionId, now) =>
      state.write((db) => {
        const admission = one(db, sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        if (admission.status !== 'unknown') return { kind: 'not_unknown', admission };
        db.update(rows)
          .set({ status: 'terminal', outcome: 'interrupted', endedAt: now })
          .where(eq(rows.admissionId, admissionId))
          .run();
        seen(db, sessionId, now);
        return { kind: 'resolved', admission: one(db, sessionId, admissionId)! };
      }),

    cancel: (sessionId, admissionId, now) =>
      state.write((db) => {
        const admission = one(db, sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        const verdict = judgeCancel(admission.status);
        if (verdict !== 'cancel') return { kind: verdict, admission };
        db.update(rows)
          .set({ status: 'terminal', outcome: 'cancelled', endedAt: now, journalPruned: true })
          .where(eq(rows.admissionId, admissionId))
          .run();
        seen(db, sessionId, now);
        return { kind: 'cancelled', admission: one(db, sessionId, admissionId)! };
      }),

    get: (sessionId, admissionId) => state.read((db) => one(db, sessionId, admissionId)),

    byRun: (sessionId, runId) =>
      state.read((db) => {
        const row = db
          .select()
          .from(rows)
          .where(and(eq(rows.runId, runId), eq(rows.targetSessionId, sessionId)))
          .get();
        return row ? toAdmission(row) : null;
      }),

    list: (sessionId, { pending, limit }) =>
      state.read((db) =>
        db
          .select()
          .from(rows)
          .where(and(eq(rows.targetSessionId, sessionId), pending ? ne(rows.status, sql`'terminal'`) : undefined))
          .orderBy(desc(rows.seq))
          .limit(pending ? -1 : limit) // Less than 0 is no limit.
          .all()
          .map(toAdmission)
          .reverse(),
      ),

    claimedSince: (sessionId, generation) =>
      state.read((db) =>
        db
          .select()
          .from(rows)
          .where(and(eq(rows.targetSessionId, sessionId), gt(rows.generation, generation)))
          .orderBy(asc(rows.generation))
          .all()
          .map(toAdmission),
      ),

    lastClaimed: (sessionId) =>
      state.read((db) => {
        const row = db
          .select()
          .from(rows)
          .where(and(eq(rows.targetSessionId, sessionId), isNotNull(rows.generation)))
          .orderBy(desc(rows.generation))
          .limit(1)
          .get();
        return row ? toAdmission(row) : null;
      }),

    withJournalBefore: (time, limit) =>
      state.read((db) =>
        db
          .select({ session_id: rows.targetSessionId, run_id: rows.runId, admission_id: rows.admissionId })
          .from(rows)
          .where(and(eq(rows.journalPruned, sql`0`), eq(rows.status, sql`'terminal'`), lt(rows.endedAt, time)))
          .orderBy(asc(rows.endedAt))
          .limit(limit)
          .all(),
      ),

    journalPruned: (admissionId) =>
      state.write((db) => {
        db.update(rows).set({ journalPruned: true }).where(eq(rows.admissionId, admissionId)).run();
      }),
  };
}

/** The row of a prompt: what a person wrote, at the time of its claim. */
function promptRow(admission: Admission, timestamp: number): Message {
  const row: Message = {
    id: `${admission.run_id}.0`,
    role: 'user',
    content: admission.text,
    timestamp,
    run_id: admission.run_id,
  };
  if (admission.attachments.length) row.attachments = admission.attachments;
  return row;
}

/** The fence of a claimed admission. */
export function fenceOf(admission: Admission): Fence {
  return {
    session_id: admission.session_id,
    admission_id: admission.admission_id,
    run_id: admission.run_id,
    epoch: admission.epoch!,
    generation: admission.generation!,
  };
}
