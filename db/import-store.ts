/**
 * Conversations of other homes in our state DB. What belongs to one comes in one transaction: the session, its rows, where
 * it comes from, and the lease under which its files follow. Which earlier ones have all their files by now is noted in the
 * same transaction, so that it costs none of its own.
 */
import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import { judgeEdit } from '../server/core/edit-rules.ts';
import type { Db, StateDb } from './client.ts';
import { type ImportRow, type ImportSession, insertRows, insertSession } from './import-rows.ts';
import { takeLease } from './lease-store.ts';
import { activeSessions, importedSessions, messages, sessions, sessionTombstones } from './schema.ts';
import { changeSession } from './session-change.ts';
import { applyCut } from './session-edits.ts';
import { readSession } from './session-store.ts';
import { given, statement } from './statement.ts';
import type { AliveProbe, Kind, LeaseRequest, SessionRow } from './stores.ts';

/** What is known of a conversation that was imported. */
export interface ImportRecord {
  home: string;
  original_id: string;
  session_id: string;
  /** Of the first `row_count` rows there. */
  digest: string;
  /** What its stores there looked like from outside. */
  seen: string;
  row_count: number;
  /** The number of the last row that was imported. */
  last_row: number;
  edit_number: number;
  files_done: boolean;
}

/** What every write needs: who writes, and which sessions have all their files since. */
export interface ImportTurn {
  lease: LeaseRequest;
  done: readonly string[];
  now: number;
}

/** How a session stands that was imported before. */
export interface OwnState {
  session: SessionRow;
  /** The number of the last row that was imported. */
  lastRow: number;
  /** The ids of those that were imported and are still shown, in their order. */
  ids: string[];
  /** Rows behind those that were imported, in their order. */
  later: { id: string | null; runId: string | null; active: boolean }[];
}

/** Somebody else has the session: another import, which brings it, or whoever works in it. */
type NotOwned = { kind: 'not_owned'; byImport: boolean };

/** A conversation that is to be stored. */
export interface NewConversation {
  /** Its id here, if that is free. */
  session_id: string;
  session: ImportSession;
  rows: readonly ImportRow[];
  record: Omit<ImportRecord, 'files_done' | 'last_row' | 'session_id'>;
  /** The session that it was known as here, or null. */
  expected: string | null;
  /** Sessions that went on in this one: they are listed no more, unless they went on here as well. */
  behind: readonly Pick<ImportRecord, 'session_id' | 'edit_number'>[];
}

export type CreateOutcome = { kind: 'created'; session: SessionRow; record: ImportRecord } | Kind<'id_taken' | 'moved'>;

export interface ImportStore {
  /** All that was ever imported, and whether it is still there. */
  records(): Promise<(ImportRecord & { isThere: boolean })[]>;
  /** @param lastRow the number of the last row that was imported. @returns null when the session is not there */
  look(sessionId: string, lastRow: number): Promise<OwnState | null>;
  /**
   * Stores conversations, all in one transaction, each under an id that is free; what became of each, in their order.
   * `moved` when another import has brought it meanwhile.
   */
  create(all: readonly NewConversation[], turn: ImportTurn): Promise<CreateOutcome[]>;
  /**
   * Adds rows behind those that were imported, if the session is still as it was looked at.
   * @param cut rows that took the place of what is told better now
   */
  grow(
    grown: {
      record: Omit<ImportRecord, 'files_done' | 'edit_number' | 'last_row'>;
      seen: OwnState;
      rows: readonly ImportRow[];
      cut: { kept: { id: string; timestamp: number } | null; remove: readonly string[] } | null;
      lastMessageAt: number | null;
    },
    turn: ImportTurn,
  ): Promise<{ kind: 'grown'; session: SessionRow; record: ImportRecord } | Kind<'moved'> | NotOwned>;
  /** Takes the lease of a session whose files are to be finished. */
  hold(sessionId: string, turn: ImportTurn): Promise<{ kind: 'held'; session: SessionRow } | Kind<'gone'> | NotOwned>;
  /** Remembers a conversation without changing anything of it. */
  note(record: ImportRecord, now: number): Promise<void>;
  /** Settles the connection for many writes. */
  begin(): Promise<void>;
  /** Says that these sessions have all their files, and gives back their leases. */
  finish(turn: Pick<ImportTurn, 'lease' | 'done'>): Promise<void>;
}

const RECORD = statement((db) =>
  db
    .insert(importedSessions)
    .values({
      home: given('home'),
      originalId: given('originalId'),
      sessionId: given('sessionId'),
      digest: given('digest'),
      seen: given('seen'),
      rowCount: given('rowCount'),
      lastRow: given('lastRow'),
      editNumber: given('editNumber'),
      filesDone: given('filesDone'),
      importedAt: given('importedAt'),
    } as never)
    .onConflictDoUpdate({
      target: [importedSessions.home, importedSessions.originalId],
      set: {
        sessionId: sql`excluded.session_id`,
        digest: sql`excluded.digest`,
        seen: sql`excluded.seen`,
        rowCount: sql`excluded.row_count`,
        lastRow: sql`excluded.last_row`,
        editNumber: sql`excluded.edit_number`,
        filesDone: sql`excluded.files_done`,
        importedAt: sql`excluded.imported_at`,
      },
    })
    .prepare(),
);
const KNOWN = statement((db) =>
  db
    .select({ id: importedSessions.sessionId })
    .from(importedSessions)
    .where(and(eq(importedSessions.home, given('home')), eq(importedSessions.originalId, given('id'))))
    .prepare(),
);
const FILES_DONE = statement((db) =>
  db
    .update(importedSessions)
    .set({ filesDone: true })
    .where(sql`${importedSessions.sessionId} IN (SELECT value FROM json_each(${given('ids')}))`)
    .prepare(),
);
const GIVE_BACK = statement((db) =>
  db
    .delete(activeSessions)
    .where(
      and(
        sql`${activeSessions.sessionId} IN (SELECT value FROM json_each(${given('ids')}))`,
        eq(activeSessions.leaseId, given('lease')),
      ),
    )
    .prepare(),
);
const SESSION = statement((db) =>
  db
    .select({ id: sessions.id })
    .from(sessions)
    .where(eq(sessions.id, given('id')))
    .prepare(),
);
const TOMBSTONE = statement((db) =>
  db
    .select({ id: sessionTombstones.sessionId })
    .from(sessionTombstones)
    .where(eq(sessionTombstones.sessionId, given('id')))
    .prepare(),
);
/** Rows of a session behind one of them. */
const LATER = statement((db) =>
  db
    .select({ id: messages.messageId, runId: messages.runId, active: messages.active })
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), sql`${messages.id} > ${given('last')}`))
    .orderBy(asc(messages.id))
    .prepare(),
);
const FORMER = statement((db) =>
  db
    .select({ id: messages.messageId })
    .from(messages)
    .where(
      and(eq(messages.sessionId, given('session')), sql`${messages.id} <= ${given('last')}`, eq(messages.active, 1)),
    )
    .orderBy(asc(messages.id))
    .prepare(),
);
const LAST = statement((db) =>
  db
    .select({ last: sql<number>`coalesce(max(${messages.id}), 0)` })
    .from(messages)
    .where(eq(messages.sessionId, given('session')))
    .prepare(),
);
const TOOLS = statement((db) =>
  db
    .select({ tools: sql<number>`count(*)` })
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 1), eq(messages.role, sql`'tool'`)))
    .prepare(),
);

const CACHE_KB = 65_536;
const WAL_PAGES = 8_000;

function writeRecord(db: Db, record: ImportRecord, now: number): void {
  RECORD(db).run({
    home: record.home,
    originalId: record.original_id,
    sessionId: record.session_id,
    digest: record.digest,
    seen: record.seen,
    rowCount: record.row_count,
    lastRow: record.last_row,
    editNumber: record.edit_number,
    filesDone: record.files_done ? 1 : 0,
    importedAt: now,
  });
}

function finish(db: Db, { lease, done }: Pick<ImportTurn, 'lease' | 'done'>): void {
  if (done.length === 0) return;
  const ids = JSON.stringify(done);
  FILES_DONE(db).run({ ids });
  GIVE_BACK(db).run({ ids, lease: lease.leaseId });
}

function look(db: Db, sessionId: string, last: number): OwnState | null {
  const session = readSession(db, sessionId);
  if (!session) return null;
  const later = LATER(db).all({ session: sessionId, last });
  const ids = FORMER(db).all({ session: sessionId, last });
  return {
    session,
    lastRow: last,
    ids: ids.map(({ id }) => id!),
    later: later.map((row) => ({ ...row, active: row.active === 1 })),
  };
}

/** The generation of a session that was made with its transcript, and of which no prompt was ever run. */
const FIRST_GENERATION = 1;

function stepBehind(db: Db, { session_id: id, edit_number }: NewConversation['behind'][number], now: number): void {
  const row = readSession(db, id);
  if (!row || row.generation !== FIRST_GENERATION || row.open.length > 0 || row.edit_number !== edit_number) return;
  changeSession(db, id, now, { hidden: true });
}

const SURFACE = statement((db) =>
  db
    .select({ surface: activeSessions.surface })
    .from(activeSessions)
    .where(eq(activeSessions.sessionId, given('session')))
    .prepare(),
);

const hasTable = (db: Db): boolean =>
  db.get(sql`SELECT 1 FROM sqlite_master WHERE name = 'imported_sessions'`) !== undefined;

/** @param state may be an older state DB that is only read: then nothing was ever imported */
export function createImportStore(state: Pick<StateDb, 'read' | 'write'>, alive: AliveProbe): ImportStore {
  const leased = (db: Db, sessionId: string, { lease }: ImportTurn): NotOwned | null => {
    const granted = takeLease(db, sessionId, lease, alive);
    // No cap is asked for, so that there is no other refusal.
    if (granted.kind !== 'not_owned') return null;
    const surface = SURFACE(db).get({ session: sessionId })?.surface;
    return { kind: 'not_owned', byImport: surface === lease.surface };
  };

  function createOne(db: Db, made: NewConversation, turn: ImportTurn): CreateOutcome {
    const { session_id: id, session, rows, expected } = made;
    const known = KNOWN(db).get({ home: made.record.home, id: made.record.original_id });
    if ((known?.id ?? null) !== expected) return { kind: 'moved' };
    if (SESSION(db).get({ id }) || TOMBSTONE(db).get({ id })) return { kind: 'id_taken' };
    insertSession(db, id, session, rows, turn.now);
    insertRows(db, id, rows);
    const last_row = LAST(db).get({ session: id })!.last;
    const record = { ...made.record, session_id: id, last_row, files_done: false };
    writeRecord(db, record, turn.now);
    leased(db, id, turn);
    for (const one of made.behind) stepBehind(db, one, turn.now);
    return { kind: 'created', session: readSession(db, id)!, record };
  }

  return {
    records: () =>
      state.read((db) =>
        !hasTable(db)
          ? []
          : db
              .select({ ...getTableColumns(importedSessions), there: sessions.id })
              .from(importedSessions)
              .leftJoin(sessions, eq(sessions.id, importedSessions.sessionId))
              .all()
              .map((row) => ({
                home: row.home,
                original_id: row.originalId,
                session_id: row.sessionId,
                digest: row.digest,
                seen: row.seen,
                row_count: row.rowCount,
                last_row: row.lastRow,
                edit_number: row.editNumber,
                files_done: row.filesDone,
                isThere: row.there !== null,
              })),
      ),

    look: (sessionId, lastRow) => state.read((db) => look(db, sessionId, lastRow)),

    create: (all, turn) =>
      state.write((db) => {
        finish(db, turn);
        return all.map((made) => createOne(db, made, turn));
      }),

    grow: ({ record, seen, rows, cut, lastMessageAt }, turn) =>
      state.write((db) => {
        const { session_id: id } = record;
        const before = record.row_count - rows.length;
        const now = look(db, id, seen.lastRow);
        if (!now || !isSame(now, seen)) return { kind: 'moved' };
        const refused = leased(db, id, turn);
        if (refused) return refused;
        finish(db, turn);
        if (cut) applyCut(db, id, { ...cut, count: before, revision: now.session.revision }, turn.now);
        insertRows(db, id, rows);
        const { tools } = TOOLS(db).get({ session: id })!;
        changeSession(db, id, turn.now, {
          messageCount: record.row_count,
          toolCallCount: tools,
          lastMessageAt,
          lastActivityAt: turn.now,
        });
        const session = readSession(db, id)!;
        const { edit_number } = session;
        const written = { ...record, edit_number, last_row: LAST(db).get({ session: id })!.last, files_done: false };
        writeRecord(db, written, turn.now);
        return { kind: 'grown', session, record: written };
      }),

    hold: (id, turn) =>
      state.write((db) => {
        const session = readSession(db, id);
        if (!session) return { kind: 'gone' };
        const refused = leased(db, id, turn);
        if (refused) return refused;
        finish(db, turn);
        return { kind: 'held', session };
      }),

    note: (record, now) => state.write((db) => writeRecord(db, record, now)),

    begin: () =>
      state.read((db) => {
        // Settings of this connection alone: pages of long indexes are met again and again, and go to the file seldom.
        db.run(sql.raw(`PRAGMA cache_size = -${CACHE_KB}`));
        db.run(sql.raw(`PRAGMA wal_autocheckpoint = ${WAL_PAGES}`));
      }),

    finish: (turn) => state.write((db) => finish(db, turn)),
  };
}

/** Whether nothing that counts has happened to a session since it was looked at. */
function isSame(now: OwnState, seen: OwnState): boolean {
  const { revision } = seen.session;
  if (judgeEdit({ open: now.session.open, revision: now.session.revision, expected: revision }) !== 'edit')
    return false;
  return now.later.length === seen.later.length;
}
