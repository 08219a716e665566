/** Leases: which process may run a session. `BEGIN IMMEDIATE` is the lock across processes (LE1). */
import { and, eq, ne, sql } from 'drizzle-orm';
import { judgeLease, type LeaseOwner } from '../server/core/lease-rules.ts';
import type { Db, StateDb } from './client.ts';
import { activeSessions, sessionAdmissions } from './schema.ts';
import { given, statement } from './statement.ts';
import type { AliveProbe, LeaseRequest, LeaseStore } from './stores.ts';

type Granted = { kind: 'granted' } | { kind: 'capacity' } | { kind: 'not_owned'; holder: LeaseOwner };

const toOwner = (row: typeof activeSessions.$inferSelect): LeaseOwner => ({
  pid: row.pid,
  start: row.processStartTime,
  liveSessionId: row.liveSessionId,
  epoch: row.epoch,
});

const HELD = statement((db) =>
  db
    .select()
    .from(activeSessions)
    .where(eq(activeSessions.sessionId, given('session')))
    .prepare(),
);
const RENEW = statement((db) =>
  db
    .update(activeSessions)
    .set({ updatedAt: sql`${given('now')}` })
    .where(eq(activeSessions.sessionId, given('session')))
    .prepare(),
);
const DROP = statement((db) =>
  db
    .delete(activeSessions)
    .where(eq(activeSessions.sessionId, given('session')))
    .prepare(),
);
const TAKE = statement((db) =>
  db
    .insert(activeSessions)
    .values({
      sessionId: given('sessionId'),
      leaseId: given('leaseId'),
      surface: given('surface'),
      pid: given('pid'),
      processStartTime: given('processStartTime'),
      liveSessionId: given('liveSessionId'),
      epoch: given('epoch'),
      startedAt: given('startedAt'),
      updatedAt: given('updatedAt'),
    })
    .prepare(),
);
const OPEN = statement((db) =>
  db
    .select({ id: sessionAdmissions.admissionId })
    .from(sessionAdmissions)
    .where(and(ne(sessionAdmissions.status, sql`'terminal'`), eq(sessionAdmissions.targetSessionId, given('session'))))
    .limit(1)
    .prepare(),
);

/** Takes or keeps the lease of a session, inside a transaction of the caller. A refusal leaves no slot behind. */
export function takeLease(db: Db, sessionId: string, request: LeaseRequest, alive: AliveProbe): Granted {
  const { owner, now } = request;
  const held = HELD(db).get({ session: sessionId });
  const others =
    request.cap === null
      ? []
      : db.select().from(activeSessions).where(ne(activeSessions.sessionId, sessionId)).all().map(toOwner);
  const verdict = judgeLease(owner, held ? toOwner(held) : null, others, request.cap, alive);
  if (verdict.kind === 'not_owned') return { kind: 'not_owned', holder: verdict.holder };
  if (verdict.kind === 'capacity') return { kind: 'capacity' };
  for (const dead of verdict.prune) {
    db.delete(activeSessions)
      .where(and(eq(activeSessions.pid, dead.pid), eq(activeSessions.liveSessionId, dead.liveSessionId)))
      .run();
  }
  if (verdict.renew) {
    RENEW(db).run({ session: sessionId, now });
    return { kind: 'granted' };
  }
  const row = {
    sessionId,
    leaseId: request.leaseId,
    surface: request.surface,
    pid: owner.pid,
    processStartTime: owner.start,
    liveSessionId: owner.liveSessionId,
    epoch: owner.epoch,
    startedAt: now,
    updatedAt: now,
  };
  DROP(db).run({ session: sessionId });
  TAKE(db).run(row);
  return { kind: 'granted' };
}

export function createLeaseStore(state: StateDb, alive: AliveProbe): LeaseStore {
  return {
    acquire: (sessionId, { wait = true, ...request }) =>
      state.write((db) => takeLease(db, sessionId, request, alive), { wait }),

    releaseIdle: (sessionId, owner) =>
      state.write((db) => {
        const open = OPEN(db).get({ session: sessionId });
        if (open) return false;
        const held = HELD(db).get({ session: sessionId });
        // The same pid with another start time is another process.
        const own =
          held?.pid === owner.pid &&
          held.processStartTime === owner.start &&
          held.liveSessionId === owner.liveSessionId;
        if (own) DROP(db).run({ session: sessionId });
        return own;
      }),
  };
}
