/**
 * Admissions: one durable row for each accepted prompt, and every step of its way as one conditional transaction.
 * A write of a run names its claim (admission, epoch, generation) and changes nothing when that is no longer the
 * session's; the caller is told so.
 */
import { and, asc, count, desc, eq, gt, isNotNull, lt, ne, sql } from 'drizzle-orm';
import { headOf, judgeAdmission, judgeCancel, type OpenAdmission } from '../server/core/admission-rules.ts';
import { judgeEdit } from '../server/core/edit-rules.ts';
import { promptRow } from '../server/core/prompt-row.ts';
import type { Admission } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { takeLease } from './lease-store.ts';
import { upsertMessages } from './message-store.ts';
import { flagsOf, type Payload, toAdmission } from './rows.ts';
import { sessionAdmissions, sessions } from './schema.ts';
import { changeSession } from './session-change.ts';
import { applyCut } from './session-edits.ts';
import { insertSession, wasDeleted } from './session-store.ts';
import { given, statement } from './statement.ts';
import type { AdmissionStore, AliveProbe, Fence, TurnEnd } from './stores.ts';

const rows = sessionAdmissions;

const OPEN = statement((db) =>
  db
    .select({ admission_id: rows.admissionId, sequence: rows.seq, status: rows.status })
    .from(rows)
    .where(and(ne(rows.status, sql`'terminal'`), eq(rows.targetSessionId, given('session'))))
    .orderBy(asc(rows.seq))
    .prepare(),
);
const ONE = statement((db) =>
  db
    .select()
    .from(rows)
    .where(and(eq(rows.admissionId, given('admission')), eq(rows.targetSessionId, given('session'))))
    .prepare(),
);
const BY_KEY = statement((db) =>
  db
    .select()
    .from(rows)
    .where(
      and(
        eq(rows.principalId, given('principal')),
        eq(rows.targetSessionId, given('session')),
        eq(rows.requestId, given('request')),
      ),
    )
    .prepare(),
);
const BY_RUN = statement((db) =>
  db
    .select()
    .from(rows)
    .where(and(eq(rows.runId, given('run')), eq(rows.targetSessionId, given('session'))))
    .prepare(),
);
const CLAIMED_SINCE = statement((db) =>
  db
    .select()
    .from(rows)
    .where(and(eq(rows.targetSessionId, given('session')), gt(rows.generation, given('generation'))))
    .orderBy(asc(rows.generation))
    .limit(given('limit'))
    .prepare(),
);
const PRUNED_SINCE = statement((db) =>
  db
    .select({ id: rows.admissionId })
    .from(rows)
    .where(
      and(
        eq(rows.targetSessionId, given('session')),
        gt(rows.generation, given('generation')),
        eq(rows.journalPruned, true),
      ),
    )
    .limit(1)
    .prepare(),
);
const LAST_CLAIMED = statement((db) =>
  db
    .select()
    .from(rows)
    .where(and(eq(rows.targetSessionId, given('session')), isNotNull(rows.generation)))
    .orderBy(desc(rows.generation))
    .limit(1)
    .prepare(),
);
const SESSION = statement((db) =>
  db
    .select()
    .from(sessions)
    .where(eq(sessions.id, given('id')))
    .prepare(),
);
const INSERT = statement((db) =>
  db
    .insert(rows)
    .values({
      admissionId: given('admissionId'),
      requestId: given('requestId'),
      principalId: given('principalId'),
      targetSessionId: given('targetSessionId'),
      payloadJson: given('payloadJson'),
      payloadDigest: given('payloadDigest'),
      intent: given('intent'),
      status: 'queued',
      runId: given('runId'),
      createdAt: given('createdAt'),
    })
    .prepare(),
);
const CLAIM_SESSION = statement((db) =>
  db
    .update(sessions)
    .set({
      runtimeGeneration: sql`${sessions.runtimeGeneration} + 1`,
      runtimeRevision: sql`${sessions.runtimeRevision} + 1`,
      messageCount: sql`${sessions.messageCount} + 1`,
      updatedAt: sql`${given('now')}`,
      lastActivityAt: sql`${given('now')}`,
      lastMessageAt: sql`${given('now')}`,
    })
    .where(eq(sessions.id, given('id')))
    .returning({ generation: sessions.runtimeGeneration })
    .prepare(),
);
const START = statement((db) =>
  db
    .update(rows)
    .set({
      status: 'started',
      ownerEpoch: sql`${given('epoch')}`,
      generation: sql`${given('generation')}`,
      startedAt: sql`${given('now')}`,
    })
    .where(eq(rows.admissionId, given('admission')))
    .prepare(),
);
const SETTLE = statement((db) =>
  db
    .update(rows)
    .set({
      status: 'terminal',
      outcome: sql`${given('outcome')}`,
      endedAt: sql`${given('now')}`,
      lastSeq: sql`${given('lastSeq')}`,
      messageId: sql`${given('messageId')}`,
      error: sql`${given('error')}`,
    })
    .where(eq(rows.admissionId, given('admission')))
    .prepare(),
);

const CANCEL = statement((db) =>
  db
    .update(rows)
    .set({ status: 'terminal', outcome: 'cancelled', endedAt: sql`${given('now')}`, journalPruned: true })
    .where(eq(rows.admissionId, given('admission')))
    .prepare(),
);

const ABSORB = statement((db) =>
  db
    .update(rows)
    .set({
      status: 'terminal',
      outcome: 'completed',
      endedAt: sql`${given('now')}`,
      messageId: sql`${given('messageId')}`,
      journalPruned: true,
    })
    .where(eq(rows.admissionId, given('admission')))
    .prepare(),
);

const openOf = (db: Db, session: string): OpenAdmission[] => OPEN(db).all({ session }) as OpenAdmission[];

function one(db: Db, session: string, admission: string): Admission | null {
  const row = ONE(db).get({ session, admission });
  return row ? toAdmission(row) : null;
}

/** Whether a claim is still the session's: started, same epoch, same generation on both sides. */
function holds(db: Db, fence: Fence): boolean {
  const admission = one(db, fence.session_id, fence.admission_id);
  const session = SESSION(db).get({ id: fence.session_id });
  return (
    admission?.status === 'started' &&
    admission.epoch === fence.epoch &&
    admission.generation === fence.generation &&
    session?.runtimeGeneration === fence.generation
  );
}

/** Ends a waiting admission as cancelled. It never had a journal. */
function cancelOne(db: Db, session: string, admission: string, now: number): Admission {
  CANCEL(db).run({ admission, now });
  changeSession(db, session, now);
  return one(db, session, admission)!;
}

const errorText = ({ error }: Pick<TurnEnd, 'error'>): string | null => (error ? JSON.stringify(error) : null);

/** What the end of a turn adds to the counts of its session. */
function countTurn(db: Db, sessionId: string, { rows: added, usage, flag }: TurnEnd, now: number): void {
  const session = SESSION(db).get({ id: sessionId })!;
  const flags = flagsOf(session.flags);
  if (flag && !flags.includes(flag)) flags.push(flag);
  changeSession(db, sessionId, now, {
    messageCount: session.messageCount + added.length,
    toolCallCount: session.toolCallCount + added.filter((row) => row.role === 'tool').length,
    lastActivityAt: now,
    lastMessageAt: added.at(-1)?.timestamp ?? session.lastMessageAt,
    flags: JSON.stringify(flags),
    ...(usage && {
      inputTokens: session.inputTokens + usage.input_tokens,
      outputTokens: session.outputTokens + usage.output_tokens,
      cacheReadTokens: session.cacheReadTokens + (usage.cached_tokens ?? 0),
      reasoningTokens: session.reasoningTokens + (usage.reasoning_tokens ?? 0),
      contextUsed: usage.context_used ?? session.contextUsed,
      contextLength: usage.context_length ?? session.contextLength,
      ...(usage.context_used !== undefined && { contextEstimated: usage.context_estimated ?? false }),
      estimatedCostUsd:
        usage.cost_usd === undefined ? session.estimatedCostUsd : (session.estimatedCostUsd ?? 0) + usage.cost_usd,
    }),
  });
}

export function createAdmissionStore(state: StateDb, alive: AliveProbe): AdmissionStore {
  return {
    admit: (input, { maxQueued, lease, cut, draft }) =>
      state.write((db) => {
        const sessionId = input.session_id;
        const session = SESSION(db).get({ id: sessionId });
        if (!session && (!draft || wasDeleted(db, sessionId))) return { kind: 'not_found' };
        const existing = BY_KEY(db).get({
          principal: input.principal_id,
          session: sessionId,
          request: input.request_id,
        });
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
        const mayCut =
          cut && session
            ? judgeEdit({ open, revision: session.runtimeRevision, expected: cut.revision })
            : ('edit' as const);
        if (mayCut !== 'edit') return { kind: mayCut };
        const granted = takeLease(db, sessionId, lease, alive);
        if (granted.kind !== 'granted') return granted;
        // A draft has its row with its first prompt or not at all: whatever refuses the prompt leaves nothing behind.
        if (!session && draft) insertSession(db, draft);
        if (cut) applyCut(db, sessionId, cut, input.now);
        const payload: Payload = { text: input.text, attachments: input.attachments, mode: input.mode };
        INSERT(db).run({
          admissionId: input.admission_id,
          requestId: input.request_id,
          principalId: input.principal_id,
          targetSessionId: sessionId,
          payloadJson: JSON.stringify(payload),
          payloadDigest: input.digest,
          intent: input.mode,
          runId: input.run_id,
          createdAt: input.now,
        });
        changeSession(db, sessionId, input.now, { lastActivityAt: input.now });
        return { kind: 'admitted', admission: one(db, sessionId, input.admission_id)! };
      }),

    claim: (sessionId, admissionId, { epoch, now }) =>
      state.write((db) => {
        const head = headOf(openOf(db, sessionId));
        if (head.kind === 'blocked') return { kind: 'blocked' };
        if (head.kind === 'empty' || head.admissionId !== admissionId) return { kind: 'moved' };
        const { generation } = CLAIM_SESSION(db).get({ id: sessionId, now });
        START(db).run({ admission: admissionId, epoch, generation, now });
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

    absorb: (fence, admissionId, added, now) =>
      state.write((db) => {
        if (!holds(db, fence)) return 'fenced';
        const admission = one(db, fence.session_id, admissionId);
        if (admission?.status !== 'queued' || admission.mode !== 'steer') return 'moved';
        upsertMessages(db, fence.session_id, added);
        ABSORB(db).run({ admission: admissionId, now, messageId: added.at(-1)!.id });
        changeSession(db, fence.session_id, now);
        return 'absorbed';
      }),

    settle: (settlement) =>
      state.write((db) => {
        const { fence, now } = settlement;
        if (!holds(db, fence)) return 'fenced';
        upsertMessages(db, fence.session_id, settlement.rows);
        SETTLE(db).run({
          admission: fence.admission_id,
          outcome: settlement.outcome,
          now,
          lastSeq: settlement.last_seq,
          messageId: settlement.message_id,
          error: errorText(settlement),
        });
        countTurn(db, fence.session_id, settlement, now);
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

    resolve: (sessionId, admissionId, now, end) =>
      state.write((db) => {
        const admission = one(db, sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        if (admission.status !== 'unknown') return { kind: 'not_unknown', admission };
        if (end) upsertMessages(db, sessionId, end.rows);
        db.update(rows)
          .set({
            status: 'terminal',
            outcome: 'interrupted',
            endedAt: now,
            ...(end && { lastSeq: end.last_seq, messageId: end.message_id, error: errorText(end) }),
          })
          .where(eq(rows.admissionId, admissionId))
          .run();
        if (end) countTurn(db, sessionId, end, now);
        else changeSession(db, sessionId, now);
        return { kind: 'resolved', admission: one(db, sessionId, admissionId)! };
      }),

    cancel: (sessionId, admissionId, now) =>
      state.write((db) => {
        const admission = one(db, sessionId, admissionId);
        if (!admission) return { kind: 'not_found' };
        const verdict = judgeCancel(admission.status);
        if (verdict !== 'cancel') return { kind: verdict, admission };
        return { kind: 'cancelled', admission: cancelOne(db, sessionId, admissionId, now) };
      }),

    cancelQueued: (sessionId, now) =>
      state.write((db) =>
        openOf(db, sessionId)
          .filter((row) => row.status === 'queued')
          .map((row) => cancelOne(db, sessionId, row.admission_id, now)),
      ),

    get: (sessionId, admissionId) => state.read((db) => one(db, sessionId, admissionId)),

    byRun: (session, run) =>
      state.read((db) => {
        const row = BY_RUN(db).get({ session, run });
        return row ? toAdmission(row) : null;
      }),

    byRequest: (principal, session, request) =>
      state.read((db) => {
        const row = BY_KEY(db).get({ principal, session, request });
        return row ? toAdmission(row) : null;
      }),

    countOpen: () =>
      state.read((db) => {
        const counts = { queued: 0, started: 0, unknown: 0 };
        const found = db
          .select({ status: rows.status, count: count() })
          .from(rows)
          .where(ne(rows.status, sql`'terminal'`))
          .groupBy(rows.status)
          .all();
        for (const row of found) counts[row.status as keyof typeof counts] = row.count;
        return counts;
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

    claimedSince: (session, generation, limit) =>
      state.read((db) => CLAIMED_SINCE(db).all({ session, generation, limit }).map(toAdmission)),

    prunedSince: (session, generation) =>
      state.read((db) => PRUNED_SINCE(db).get({ session, generation }) !== undefined),

    lastClaimed: (session) =>
      state.read((db) => {
        const row = LAST_CLAIMED(db).get({ session });
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
