/** What changed in the state DB lately, also by another process on this home: to tell readers of it. */
import { and, eq, gt, lte, sql } from 'drizzle-orm';
import type { StateDb } from './client.ts';
import { sessions, sessionTombstones } from './schema.ts';
import { given, statement } from './statement.ts';
import type { ChangeStore } from './stores.ts';

/** Written as the index of open admissions says it. */
const IS_OPEN = sql<number>`${sessions.id} IN (SELECT target_session_id FROM session_admissions WHERE status <> 'terminal')`;

const FIELDS = {
  session_id: sessions.id,
  revision: sessions.runtimeRevision,
  created_at: sessions.startedAt,
  open: IS_OPEN,
};

/** One look at each session, and no more than that: what else is asked of a row is asked of few. */
const CHANGED = statement((db) =>
  db
    .select(FIELDS)
    .from(sessions)
    .where(and(gt(sessions.updatedAt, given('time')), eq(sessions.hidden, false)))
    .prepare(),
);
/** The time of a change is from before it waited for the database: who has an open prompt may have waited long. */
const OTHERS = statement((db) =>
  db
    .select(FIELDS)
    .from(sessions)
    .where(
      and(
        sql`${sessions.id} IN (SELECT target_session_id FROM session_admissions WHERE status <> 'terminal'
          UNION SELECT value FROM json_each(${given('also')}))`,
        lte(sessions.updatedAt, given('time')),
        eq(sessions.hidden, false),
      ),
    )
    .prepare(),
);
const DELETED = statement((db) =>
  db
    .select({ id: sessionTombstones.sessionId })
    .from(sessionTombstones)
    .where(gt(sessionTombstones.deletedAt, given('time')))
    .prepare(),
);

export function createChangeStore(state: StateDb): ChangeStore {
  return {
    since: (time, also) =>
      state.read((db) => ({
        changed: [...CHANGED(db).all({ time }), ...OTHERS(db).all({ time, also: JSON.stringify(also) })].map((row) => ({
          ...row,
          open: row.open === 1,
        })),
        deleted: DELETED(db)
          .all({ time })
          .map((row) => row.id),
      })),
  };
}
