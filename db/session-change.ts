/** A change of a session that one can see: it moves the revision and the time of the last change. */
import { eq, sql } from 'drizzle-orm';
import type { Db } from './client.ts';
import { sessions } from './schema.ts';
import { given, statements } from './statement.ts';

type SessionRecord = typeof sessions.$inferSelect;
export type SessionChange = Partial<typeof sessions.$inferInsert>;

/** The update of a set of columns. */
const UPDATE = statements((db, columns: readonly string[]) => {
  const change = Object.fromEntries(columns.map((column) => [column, given(column)])) as unknown as SessionChange;
  return db
    .update(sessions)
    .set({ ...change, updatedAt: given('now') as never, runtimeRevision: sql`${sessions.runtimeRevision} + 1` })
    .where(eq(sessions.id, given('changedId')))
    .returning()
    .prepare();
});

/**
 * Changes columns of a session, inside a transaction of the caller.
 * @param now epoch seconds
 * @returns the row after it; undefined when there is no such session
 */
export function changeSession(
  db: Db,
  sessionId: string,
  now: number,
  change: SessionChange = {},
): SessionRecord | undefined {
  return UPDATE(db, Object.keys(change).sort()).get({ ...change, now, changedId: sessionId });
}
