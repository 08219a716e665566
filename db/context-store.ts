/** Summaries of the beginnings of transcripts, for the models of their sessions (CX4). The transcripts stay as they are. */
import { and, eq, sql } from 'drizzle-orm';
import type { Db, StateDb } from './client.ts';
import { contextSummaries } from './schema.ts';
import { changeSession } from './session-change.ts';
import { readSession } from './session-store.ts';
import { given, statement } from './statement.ts';
import type { ContextStore, ContextSummary } from './stores.ts';

const OF_SESSION = statement((db) =>
  db
    .select()
    .from(contextSummaries)
    .where(eq(contextSummaries.sessionId, given('session')))
    .prepare(),
);
const PUT = statement((db) =>
  db
    .insert(contextSummaries)
    .values({
      sessionId: given('session'),
      anchor: given('anchor'),
      covers: given('covers'),
      summary: given('summary'),
      createdAt: given('createdAt'),
    })
    .onConflictDoUpdate({
      target: contextSummaries.sessionId,
      set: {
        anchor: sql`excluded.anchor`,
        covers: sql`excluded.covers`,
        summary: sql`excluded.summary`,
        createdAt: sql`excluded.created_at`,
      },
    })
    .prepare(),
);
const FORGET = statement((db) =>
  db
    .delete(contextSummaries)
    .where(
      and(
        eq(contextSummaries.sessionId, given('session')),
        sql`(${given('ids')} IS NULL OR ${contextSummaries.anchor} IN (SELECT value FROM json_each(${given('ids')})))`,
      ),
    )
    .prepare(),
);

/** Stores a summary, inside a transaction of the caller. */
export function putSummary(db: Db, session: string, { anchor, covers, text, created_at }: ContextSummary): void {
  PUT(db).run({ session, anchor, covers, summary: text, createdAt: created_at });
}

/**
 * Forgets a summary that tells of what an edit takes back, inside its transaction: nothing of it stays anywhere.
 * @param gone ids of the rows that are taken back; null for all
 */
export function forgetSummary(db: Db, session: string, gone: readonly string[] | null): void {
  FORGET(db).run({ session, ids: gone && JSON.stringify(gone) });
}

export function createContextStore(state: StateDb): ContextStore {
  return {
    summary: (session) =>
      state.read((db) => {
        const row = OF_SESSION(db).get({ session });
        if (!row) return null;
        return { anchor: row.anchor, covers: row.covers, text: row.summary, created_at: row.createdAt };
      }),

    summarise: (sessionId, summary, { editNumber, contextUsed }) =>
      state.write((db) => {
        if (readSession(db, sessionId)?.edit_number !== editNumber) return 'stale';
        putSummary(db, sessionId, summary);
        changeSession(db, sessionId, summary.created_at, { contextUsed, contextEstimated: true });
        return 'saved';
      }),
  };
}
