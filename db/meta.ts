/** Single values of the state DB, by their keys in `state_meta`. */
import { eq, sql } from 'drizzle-orm';
import type { Db } from './client.ts';
import { stateMeta } from './schema.ts';
import { given, statement } from './statement.ts';

const OF_KEY = statement((db) =>
  db
    .select({ value: stateMeta.value })
    .from(stateMeta)
    .where(eq(stateMeta.key, given('key')))
    .prepare(),
);

/** The value of a key; null when there is none. */
export const readMeta = (db: Db, key: string): string | null => OF_KEY(db).get({ key })?.value ?? null;

/** Sets the value of a key, whatever it was. */
export function writeMeta(db: Db, key: string, value: string): void {
  db.insert(stateMeta)
    .values({ key, value })
    .onConflictDoUpdate({ target: stateMeta.key, set: { value: sql`excluded.value` } })
    .run();
}

export function removeMeta(db: Db, key: string): void {
  db.delete(stateMeta).where(eq(stateMeta.key, key)).run();
}
