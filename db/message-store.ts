/** Messages: the rows that went to and came from the model, and the full-text search over them. */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Message } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { toMessage, toMessageRecord } from './rows.ts';
import { messages } from './schema.ts';
import { given, statement } from './statement.ts';
import type { MessageStore, SearchHit } from './stores.ts';

const COLUMNS = [
  'role',
  'content',
  'toolCallId',
  'toolCalls',
  'toolName',
  'timestamp',
  'tokenCount',
  'finishReason',
  'reasoning',
  'displayKind',
  'messageId',
  'runId',
  'extra',
] as const;

const UPSERT = statement((db) => {
  const values = Object.fromEntries(['sessionId', ...COLUMNS].map((column) => [column, given(column)]));
  const excluded = COLUMNS.map((column) => [column, sql.raw(`excluded.${messages[column].name}`)]);
  return db
    .insert(messages)
    .values(values as never)
    .onConflictDoUpdate({ target: [messages.sessionId, messages.messageId], set: Object.fromEntries(excluded) })
    .prepare();
});
const LIST = statement((db) =>
  db
    .select()
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 1)))
    .orderBy(asc(messages.id))
    .prepare(),
);

/**
 * Brings rows to this state, by message id: what is there is updated, what is missing is appended. Inside a
 * transaction of the caller, which has checked that the run may still write.
 */
export function upsertMessages(db: Db, sessionId: string, rows: readonly Message[]): void {
  for (const row of rows) UPSERT(db).run(toMessageRecord(sessionId, row));
}

/**
 * A query of the full-text index from what a person typed: each word as it is, all of them, the last one as a
 * beginning. Null when there is no word in it.
 */
export function toMatch(q: string): string | null {
  const words = q.match(/[\p{L}\p{N}\p{M}_]+/gu);
  if (!words) return null;
  return `${words.map((word) => `"${word}"`).join(' ')}*`;
}

export function createMessageStore(state: StateDb): MessageStore {
  return {
    list: (session) => state.read((db) => LIST(db).all({ session }).map(toMessage)),

    search: (q, limit) =>
      state.read((db) => {
        const match = toMatch(q);
        if (match === null) return [];
        return db.all<SearchHit>(sql`
          SELECT m.session_id, s.title, coalesce(m.message_id, 'row.' || m.id) AS message_id, m.role,
            snippet(messages_fts, 0, '', '', '…', 16) AS snippet, m.timestamp
          FROM messages_fts
          JOIN messages m ON m.id = messages_fts.rowid
          JOIN sessions s ON s.id = m.session_id
          WHERE messages_fts MATCH ${match} AND m.active = 1 AND s.hidden = 0 AND coalesce(m.display_kind, '') = ''
          ORDER BY rank, m.id DESC
          LIMIT ${limit}`);
      }),
  };
}
