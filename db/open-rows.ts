/** The admissions of sessions that have not ended: what a session's row is shown with. */
import { and, asc, eq, ne, sql } from 'drizzle-orm';
import type { Db } from './client.ts';
import { toOpenRow } from './rows.ts';
import { sessionAdmissions } from './schema.ts';
import { given, statement } from './statement.ts';
import type { OpenRow } from './stores.ts';

/** Written as the index of open admissions says it, or SQLite would not take that index. */
const OPEN = ne(sessionAdmissions.status, sql`'terminal'`);

const OF_ONE = statement((db) =>
  db
    .select()
    .from(sessionAdmissions)
    .where(and(OPEN, eq(sessionAdmissions.targetSessionId, given('id'))))
    .orderBy(asc(sessionAdmissions.seq))
    .prepare(),
);
const OF_SOME = statement((db) =>
  db
    .select()
    .from(sessionAdmissions)
    .where(
      and(
        OPEN,
        // One variable, however many sessions: a statement has room for 32,766 of them.
        sql`${sessionAdmissions.targetSessionId} IN (SELECT value FROM json_each(${given('ids')}))`,
      ),
    )
    .orderBy(asc(sessionAdmissions.seq))
    .prepare(),
);
const SESSIONS = statement((db) =>
  db.selectDistinct({ id: sessionAdmissions.targetSessionId }).from(sessionAdmissions).where(OPEN).prepare(),
);

/** The open admissions of a session, in their order, inside a transaction of the caller. */
export const openRowsOf = (db: Db, sessionId: string): OpenRow[] => OF_ONE(db).all({ id: sessionId }).map(toOpenRow);

/** Those of some sessions, by session; a session that has none is not in it. */
export function openRowsOfSome(db: Db, sessionIds: readonly string[]): Map<string, OpenRow[]> {
  const found = new Map<string, OpenRow[]>();
  if (sessionIds.length === 0) return found;
  for (const row of OF_SOME(db).all({ ids: JSON.stringify(sessionIds) })) {
    const list = found.get(row.targetSessionId);
    if (list) list.push(toOpenRow(row));
    else found.set(row.targetSessionId, [toOpenRow(row)]);
  }
  return found;
}

/** The sessions that have any. */
export const sessionsWithOpenRows = (db: Db): string[] =>
  SESSIONS(db)
    .all()
    .map((row) => row.id);
