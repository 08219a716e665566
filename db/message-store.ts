/** Messages: the rows that went to and came from the model, and the full-text search over them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { and, asc, eq, isNotNull, isNull, ne, or, sql } from 'drizzle-orm';
import type { Message } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { MESSAGE_COLUMNS } from './message-records.ts';
import { flagsOf, toMessage, toMessageRecord, toRawRow } from './rows.ts';
import { messages, sessions } from './schema.ts';
import { changeSession } from './session-change.ts';
import { given, statement } from './statement.ts';
import type { Healing, MessageStore, SearchHit, StateIndex } from './stores.ts';

const UPSERT = statement((db) => {
  const values = Object.fromEntries(['sessionId', ...MESSAGE_COLUMNS].map((column) => [column, given(column)]));
  const excluded = MESSAGE_COLUMNS.map((column) => [column, sql.raw(`excluded.${messages[column].name}`)]);
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

/** What people may see: scaffolding that only a model is given is no part of a transcript. */
const SHOWN = and(
  eq(messages.sessionId, given('session')),
  eq(messages.active, 1),
  or(isNull(messages.displayKind), ne(messages.displayKind, sql`'hidden'`)),
);
/** As two JSON texts: thousands of short values cost far more one by one. */
const INDEX = statement((db) => {
  const step = db
    .select({ rowId: messages.id, id: messages.messageId })
    .from(messages)
    .where(and(SHOWN, sql`${messages.id} > ${given('after')}`))
    .orderBy(asc(messages.id))
    .limit(given('limit'))
    .as('step');
  return db
    .select({
      rowIds: sql<string>`json_group_array(${step.rowId} ORDER BY ${step.rowId})`,
      ids: sql<string>`json_group_array(${step.id} ORDER BY ${step.rowId})`,
    })
    .from(step)
    .prepare();
});
const RAW = statement((db) =>
  db
    .select()
    .from(messages)
    .where(and(SHOWN, sql`${messages.id} IN (SELECT value FROM json_each(${given('rows')}))`))
    .orderBy(asc(messages.id))
    .prepare(),
);
const INACTIVE = statement((db) =>
  db
    .select({ id: messages.messageId })
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 0), isNotNull(messages.messageId)))
    .prepare(),
);
const NAME = statement((db) =>
  db
    .update(messages)
    .set({ messageId: given('name') as never })
    .where(and(eq(messages.sessionId, given('session')), eq(messages.id, given('rowId')), isNull(messages.messageId)))
    .prepare(),
);
const TAKE_OUT = statement((db) =>
  db
    .update(messages)
    .set({ active: 0 })
    .where(
      and(
        eq(messages.sessionId, given('session')),
        sql`${messages.messageId} IN (SELECT value FROM json_each(${given('ids')}))`,
      ),
    )
    .prepare(),
);
const EXTENT = statement((db) =>
  db
    .select({ count: sql<number>`count(*)`, last: sql<number>`coalesce(max(${messages.id}), 0)` })
    .from(messages)
    .where(eq(messages.sessionId, given('session')))
    .prepare(),
);
const INACTIVE_ROWS = statement((db) =>
  db
    .select()
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 0)))
    .prepare(),
);
const FLAGS = statement((db) =>
  db
    .select({ flags: sessions.flags, generation: sessions.runtimeGeneration })
    .from(sessions)
    .where(eq(sessions.id, given('id')))
    .prepare(),
);

/** Rows that one step of a long read takes, so that streams go on in between. */
const STEP = 2_000;

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

/** Rows that one step of a long healing writes. */
const HEAL_STEP = 1_000;
/** Who heals on the way waits for nobody (RE3). */
const NOT_NOW = { wait: false } as const;

/** Names and rows of a healing, inside a transaction. @returns null when a turn was claimed since, or the session is gone */
function prepareHealing(db: Db, session: string, { names, rows, generation }: Healing) {
  const row = FLAGS(db).get({ id: session });
  if (row?.generation !== generation) return null;
  for (const { rowId, id } of names) NAME(db).run({ session, rowId, name: id });
  upsertMessages(db, session, rows);
  return row;
}

/** Writes what a healed transcript asks for, inside a transaction. */
function heal(db: Db, session: string, healing: Healing): 'healed' | 'moved' {
  const { inactive, count, lastMessageAt, edit, now } = healing;
  const row = prepareHealing(db, session, healing);
  if (!row) return 'moved';
  if (inactive.length) TAKE_OUT(db).run({ session, ids: JSON.stringify(inactive) });
  const flags = new Set([...flagsOf(row.flags), ...(healing.flags ?? [])]);
  const seen = edit ? { editNumber: edit.number, editFence: edit.fence } : {};
  changeSession(db, session, now, { messageCount: count, lastMessageAt, flags: JSON.stringify([...flags]), ...seen });
  return 'healed';
}

export function createMessageStore(state: StateDb): MessageStore {
  /** One step after the other, each a read of its own: a change in between shows in `dataVersion`, and is read again. */
  const index = async (session: string): Promise<StateIndex> => {
    const found: StateIndex = { rowIds: [], ids: [] };
    for (let after = 0; ; after = found.rowIds.at(-1)!) {
      const step = await state.read((db) => INDEX(db).get({ session, after, limit: STEP })!);
      const rowIds = JSON.parse(step.rowIds) as number[];
      for (const rowId of rowIds) found.rowIds.push(rowId);
      for (const id of JSON.parse(step.ids) as (string | null)[]) found.ids.push(id);
      if (rowIds.length < STEP) return found;
      await nextTurn();
    }
  };

  return {
    list: (session) => state.read((db) => LIST(db).all({ session }).map(toMessage)),

    index,

    async raw(session, wanted) {
      const rowIds = wanted ?? (await index(session)).rowIds;
      const rows = [];
      for (let from = 0; from < rowIds.length; from += STEP / 4) {
        const step = JSON.stringify(rowIds.slice(from, from + STEP / 4));
        rows.push(...(await state.read((db) => RAW(db).all({ session, rows: step }).map(toRawRow))));
      }
      return rows;
    },

    inactiveIds: (session) =>
      state.read((db) =>
        INACTIVE(db)
          .all({ session })
          .map((row) => row.id!),
      ),

    async heal(session, healing) {
      const { names, rows } = healing;
      // A long one in steps, so that streams go on in between; each is right by itself, and the last one counts.
      for (let from = 0; from < Math.max(names.length, rows.length) - HEAL_STEP; from += HEAL_STEP) {
        const some = { names: names.slice(from, from + HEAL_STEP), rows: rows.slice(from, from + HEAL_STEP) };
        const isStill = await state.write((db) => prepareHealing(db, session, { ...healing, ...some }), NOT_NOW);
        if (!isStill) return 'moved';
        await nextTurn();
      }
      const last = Math.max(0, Math.ceil(Math.max(names.length, rows.length) / HEAL_STEP) - 1) * HEAL_STEP;
      const rest = { ...healing, names: names.slice(last), rows: rows.slice(last) };
      return state.write((db) => heal(db, session, rest), NOT_NOW);
    },

    extent: (session) => state.read((db) => EXTENT(db).get({ session })!),

    inactive: (session) => state.read((db) => INACTIVE_ROWS(db).all({ session }).map(toRawRow)),

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
