/** A change of a session that one can see: it moves the revision and the time of the last change. */
import { eq, sql } from 'drizzle-orm';
import type { Db } from './client.ts';
import { sessions } from './schema.ts';
import { given, statement } from './statement.ts';

export type SessionChange = Partial<typeof sessions.$inferInsert>;

/** The update for a set of columns, made once for each set. */
const UPDATES = statement((db) => {
  const made = new Map<string, ReturnType<typeof build>>();
  const build = (columns: readonly string[]) => {
    const change = Object.fromEntries(columns.map((column) => [column, given(column)])) as unknown as SessionChange;
    return db
      .update(sessions)
      .set({ ...change, updatedAt: given('now') as never, runtimeRevision: sql`${sessions.runtimeRevision} + 1` })
      .where(eq(sessions.id, given('changedId')))
      .prepare();
  };
  return (columns: readonly string[]) => {
    const key = columns.join();
    const known = made.get(key) ?? build(columns);
    made.set(key, known);
    return known;
  };
});

/**
 * Changes columns of a session, inside a transaction of the caller.
 * @param now epoch seconds
 */
export function changeSession(db: Db, sessionId: string, now: number, change: SessionChange = {}): void {
  UPDATES(db)(Object.keys(change).sort()).run({ ...change, now, changedId: sessionId });
}
