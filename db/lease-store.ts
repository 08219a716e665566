/**
 * Leases: which process may run a session. `BEGIN IMMEDIATE` is the lock across processes (LE1). What of the registry
 * cannot be read, written or understood is `RegistryTrouble`: then nobody is let in (LE8).
 */
import { and, eq, ne, sql } from 'drizzle-orm';
import { judgeLease, type LeaseOwner, needsLease, sameProcess, sameWriter } from '../server/core/lease-rules.ts';
import type { Db, StateDb } from './client.ts';
import { activeSessions, sessionAdmissions } from './schema.ts';
import { given, statement } from './statement.ts';
import { isSqliteError, RegistryTrouble, storageTroubleKind } from './storage-trouble.ts';
import type { AliveProbe, LeaseRequest, LeaseStore } from './stores.ts';

type Granted = { kind: 'granted' } | { kind: 'capacity' } | { kind: 'not_owned'; holder: LeaseOwner };

/** A record as an owner. SQLite keeps whatever was written into a column, so it is looked at before it is believed. */
function toOwner(row: typeof activeSessions.$inferSelect): LeaseOwner {
  const owner = { pid: row.pid, start: row.processStartTime, liveSessionId: row.liveSessionId, epoch: row.epoch };
  const isProcess = Number.isSafeInteger(owner.pid) && owner.pid > 0;
  const isDated = owner.start === null || typeof owner.start === 'string';
  if (isProcess && isDated && typeof owner.liveSessionId === 'string') return owner;
  throw new RegistryTrouble(new Error(`the lease of session ${row.sessionId} names no process`));
}

/** Works on the registry. A lock and a full disk are told as everywhere; any other trouble is the registry's. */
function onRegistry<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const kind = storageTroubleKind(error);
    if (kind === 'busy' || kind === 'disk_full' || !isSqliteError(error)) throw error;
    throw new RegistryTrouble(error);
  }
}

/** Asks whether a process lives. A system that does not answer at all is no reason to take anybody's session. */
const asking =
  (alive: AliveProbe): AliveProbe =>
  (process) => {
    try {
      return alive(process);
    } catch (error) {
      throw new RegistryTrouble(error);
    }
  };

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

/** Sessions with prompts that wait or ran, none of unknown fate before them, each with who has its lease. */
const MOVING = statement((db) =>
  db
    .select({ id: sessionAdmissions.targetSessionId, held: activeSessions })
    .from(sessionAdmissions)
    .leftJoin(activeSessions, eq(activeSessions.sessionId, sessionAdmissions.targetSessionId))
    .where(ne(sessionAdmissions.status, sql`'terminal'`))
    .groupBy(sessionAdmissions.targetSessionId)
    .having(sql`sum(${sessionAdmissions.status} = 'unknown') = 0`)
    .prepare(),
);

/**
 * Takes or keeps the lease of a session, inside a transaction of the caller. A refusal leaves no slot behind.
 * @throws RegistryTrouble when it cannot be known who has it
 */
export function takeLease(db: Db, sessionId: string, request: LeaseRequest, alive: AliveProbe): Granted {
  return needsLease(sessionId) ? onRegistry(() => take(db, sessionId, request, asking(alive))) : { kind: 'granted' };
}

function take(db: Db, sessionId: string, request: LeaseRequest, alive: AliveProbe): Granted {
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

    releaseIdle: (sessionId, owner, options) =>
      state.write((db) => {
        const open = OPEN(db).get({ session: sessionId });
        if (open) return false;
        return onRegistry(() => {
          const held = HELD(db).get({ session: sessionId });
          // The same pid with another start time is another process.
          const own = held !== undefined && sameWriter(toOwner(held), owner);
          if (own) DROP(db).run({ session: sessionId });
          return own;
        });
      }, options),

    holder: (sessionId) =>
      state.read((db) =>
        onRegistry(() => {
          const held = HELD(db).get({ session: sessionId });
          const owner = held ? toOwner(held) : null;
          return owner && asking(alive)(owner) ? owner : null;
        }),
      ),

    abandoned: (own) =>
      state.read((db) =>
        onRegistry(() => {
          const rows = MOVING(db).all();
          const others = rows.filter(({ held }) => held === null || !sameProcess(toOwner(held), own));
          const sessions = others.filter(({ held }) => held === null || !asking(alive)(toOwner(held)));
          return { sessions: sessions.map((row) => row.id), othersRun: others.length > sessions.length };
        }),
      ),
  };
}
