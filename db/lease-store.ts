/** Leases: which process may run a session. `BEGIN IMMEDIATE` is the lock across processes (LE1). */
import { and, eq, isNull, ne, sql } from 'drizzle-orm';
import { judgeLease, type LeaseOwner } from '../server/core/lease-rules.ts';
import type { Db, StateDb } from './client.ts';
import { activeSessions, sessionAdmissions } from './schema.ts';
import type { AliveProbe, LeaseRequest, LeaseStore } from './stores.ts';

type Granted = { kind: 'granted' } | { kind: 'capacity' } | { kind: 'not_owned'; holder: LeaseOwner };

const toOwner = (row: typeof activeSessions.$inferSelect): LeaseOwner => ({
  pid: row.pid,
  start: row.processStartTime,
  liveSessionId: row.liveSessionId,
  epoch: row.epoch,
});

/** Takes or keeps the lease of a session, inside a transaction of the caller. A refusal leaves no slot behind. */
export function takeLease(db: Db, sessionId: string, request: LeaseRequest, alive: AliveProbe): Granted {
  const { owner, now } = request;
  const held = db.select().from(activeSessions).where(eq(activeSessions.sessionId, sessionId)).get();
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
    db.update(activeSessions).set({ updatedAt: now }).where(eq(activeSessions.sessionId, sessionId)).run();
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
  db.insert(activeSessions).values(row).onConflictDoUpdate({ target: activeSessions.sessionId, set: row }).run();
  return { kind: 'granted' };
}

export function createLeaseStore(state: StateDb, alive: AliveProbe): LeaseStore {
  return {
    acquire: (sessionId, request) => state.write((db) => takeLease(db, sessionId, request, alive)),

    releaseIdle: (sessionId, owner) =>
      state.write((db) => {
        const open = db
          .select({ id: sessionAdmissions.admissionId })
          .from(sessionAdmissions)
          .where(and(ne(sessionAdmissions.status, sql`'terminal'`), eq(sessionAdmissions.targetSessionId, sessionId)))
          .get();
        if (open) return false;
        const gone = db
          .delete(activeSessions)
          .where(
            and(
              eq(activeSessions.sessionId, sessionId),
              eq(activeSessions.pid, owner.pid),
              // The same pid with another start time is another process.
              owner.start === null
                ? isNull(activeSessions.processStartTime)
                : eq(activeSessions.processStartTime, owner.start),
              eq(activeSessions.liveSessionId, owner.liveSessionId),
            ),
          )
          .run();
        return gone.changes > 0;
      }),

    holder: (sessionId) =>
      state.read((db) => {
        const row = db.select().from(activeSessions).where(eq(activeSessions.sessionId, sessionId)).get();
        return row ? toOwner(row) : null;
      }),
  };
}
