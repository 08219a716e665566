/**
 * Conversations of other homes in our state DB. Each is one transaction: the session, its rows, where it comes from, and the
 * lease under which its files follow. What of earlier ones has been finished meanwhile is noted in the same transaction,
 * so that a conversation costs one.
 */
import { and, asc, eq, sql } from 'drizzle-orm';
import { judgeEdit } from '../server/core/edit-rules.ts';
import type { Message, Usage } from '../server/core/terms.ts';
import type { Db, StateDb } from './client.ts';
import { takeLease } from './lease-store.ts';
import { toMessageRecord } from './rows.ts';
import { activeSessions, importedSessions, messages, projects, sessions, sessionTombstones } from './schema.ts';
import { changeSession } from './session-change.ts';
import { applyCut } from './session-edits.ts';
import { readSession } from './session-store.ts';
import { given, statement } from './statement.ts';
import type { AliveProbe, Kind, LeaseRequest, Project, SessionRow } from './stores.ts';

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
  edit_number: number;
  files_done: boolean;
}

/** A row to be stored: what is shown of it, and what only a model or another program has of it. */
export interface ImportRow {
  message: Message;
  /** Content that is not plain text, as it is kept for the model. */
  parts?: readonly unknown[];
  /** Fields that only a provider understands. */
  provider?: Readonly<Record<string, unknown>>;
}

export interface ImportSession {
  source: string;
  title: string | null;
  title_source: SessionRow['title_source'];
  model: string | null;
  workspace: string | null;
  parent_session_id: string | null;
  project: Project | null;
  /** Epoch seconds, as all times. */
  created_at: number;
  updated_at: number;
  pinned: boolean;
  archived: boolean;
  hidden: boolean;
  draft: string;
  usage: Usage | null;
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
  /** Rows behind those that were imported, in their order. */
  later: { id: string | null; runId: string | null; active: boolean }[];
}

type NotOwned = { kind: 'not_owned'; pid: number };

export interface ImportStore {
  /** All that was ever imported. */
  records(): Promise<ImportRecord[]>;
  /** Whether an id names a session here, or did. */
  idState(sessionId: string): Promise<'free' | 'there' | 'deleted'>;
  /** @param rowCount how many of its rows were imported; null when it is not there */
  look(sessionId: string, rowCount: number): Promise<OwnState | null>;
  /** Stores a conversation under an id that is free. */
  create(
    made: {
      session_id: string;
      session: ImportSession;
      rows: readonly ImportRow[];
      record: Omit<ImportRecord, 'files_done'>;
    },
    turn: ImportTurn,
  ): Promise<{ kind: 'created'; session: SessionRow } | Kind<'id_taken'>>;
  /**
   * Adds rows behind those that were imported, if the session is still as it was looked at.
   * @param cut rows that took the place of what is told better now
   */
  grow(
    grown: {
      record: Omit<ImportRecord, 'files_done' | 'edit_number'>;
      seen: OwnState;
      rows: readonly ImportRow[];
      cut: { kept: { id: string; timestamp: number } | null; remove: readonly string[] } | null;
      lastMessageAt: number | null;
    },
    turn: ImportTurn,
  ): Promise<{ kind: 'grown'; session: SessionRow } | Kind<'moved'> | NotOwned>;
  /** Takes the lease of a session whose files are to be finished. */
  hold(sessionId: string, turn: ImportTurn): Promise<{ kind: 'held'; session: SessionRow } | Kind<'gone'> | NotOwned>;
  /** Remembers a conversation without changing anything of it. */
  note(record: ImportRecord, now: number): Promise<void>;
  /** Says that these sessions have all their files, and gives back their leases. */
  finish(turn: Pick<ImportTurn, 'lease' | 'done'>): Promise<void>;
}

const COLUMNS = [
  'sessionId',
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

const INSERT = statement((db) => {
  const values = Object.fromEntries(COLUMNS.map((column) => [column, given(column)]));
  return db
    .insert(messages)
    .values(values as never)
    .prepare();
});
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
        editNumber: sql`excluded.edit_number`,
        filesDone: sql`excluded.files_done`,
        importedAt: sql`excluded.imported_at`,
      },
    })
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
const NEW_SESSION = statement((db) => {
  const columns = [
    'id',
    'source',
    'model',
    'parentSessionId',
    'startedAt',
    'messageCount',
    'toolCallCount',
    'inputTokens',
    'outputTokens',
    'cacheReadTokens',
    'reasoningTokens',
    'estimatedCostUsd',
    'contextUsed',
    'contextLength',
    'cwd',
    'title',
    'titleSource',
    'projectId',
    'archived',
    'pinned',
    'hidden',
    'draft',
    'updatedAt',
    'lastActivityAt',
    'lastMessageAt',
  ];
  const values = Object.fromEntries(columns.map((column) => [column, given(column)]));
  // A session of generation 0 never ran and has no files; this one has a sidecar.
  return db
    .insert(sessions)
    .values({ ...values, runtimeRevision: 1, runtimeGeneration: 1 } as never)
    .prepare();
});
/** Rows of a session behind the first so many. */
const LATER = statement((db) =>
  db
    .select({ id: messages.messageId, runId: messages.runId, active: messages.active })
    .from(messages)
    .where(eq(messages.sessionId, given('session')))
    .orderBy(asc(messages.id))
    .limit(-1)
    .offset(given('count') as never)
    .prepare(),
);

const TOOLS = statement((db) =>
  db
    .select({ tools: sql<number>`count(*)` })
    .from(messages)
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 1), eq(messages.role, sql`'tool'`)))
    .prepare(),
);

/** What other programs put before content that is not plain text. */
const STRUCTURED = '\0json:';

function insertRows(db: Db, sessionId: string, rows: readonly ImportRow[]): void {
  const insert = INSERT(db);
  for (const { message, parts, provider } of rows) {
    const record = toMessageRecord(sessionId, message);
    if (parts) record.content = STRUCTURED + JSON.stringify(parts);
    // Under one private name: nothing that is shown, sent or compared is made of it.
    if (provider) record.extra = JSON.stringify({ ...JSON.parse(record.extra ?? '{}'), _provider: provider });
    insert.run(record);
  }
}

function writeRecord(db: Db, record: ImportRecord, now: number): void {
  RECORD(db).run({
    home: record.home,
    originalId: record.original_id,
    sessionId: record.session_id,
    digest: record.digest,
    seen: record.seen,
    rowCount: record.row_count,
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

function projectOf(db: Db, project: Project | null, now: number): string | null {
  if (!project) return null;
  const { project_id: projectId, name, color } = project;
  const known = db
    .select({ id: projects.projectId, name: projects.name })
    .from(projects)
    .where(sql`${projects.projectId} = ${projectId} OR ${projects.name} = ${name}`)
    .all();
  // By its id where it was renamed since, else by its name: nobody wants two of one name.
  const same = known.find(({ id }) => id === projectId) ?? known[0];
  if (same) return same.id;
  db.insert(projects).values({ projectId, name, color, createdAt: now }).run();
  return projectId;
}

function insertSession(db: Db, id: string, session: ImportSession, rows: readonly ImportRow[], now: number): void {
  const { usage } = session;
  const last = rows.at(-1)?.message.timestamp;
  NEW_SESSION(db).run({
    id,
    source: session.source,
    model: session.model,
    parentSessionId: session.parent_session_id,
    startedAt: session.created_at,
    messageCount: rows.length,
    toolCallCount: rows.filter(({ message }) => message.role === 'tool').length,
    inputTokens: usage?.input_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
    cacheReadTokens: usage?.cached_tokens ?? 0,
    reasoningTokens: usage?.reasoning_tokens ?? 0,
    estimatedCostUsd: usage?.cost_usd ?? null,
    contextUsed: usage?.context_used ?? null,
    contextLength: usage?.context_length ?? null,
    cwd: session.workspace,
    title: session.title,
    titleSource: session.title_source,
    projectId: projectOf(db, session.project, now),
    archived: session.archived ? 1 : 0,
    pinned: session.pinned ? 1 : 0,
    hidden: session.hidden ? 1 : 0,
    draft: session.draft,
    updatedAt: session.updated_at,
    lastActivityAt: Math.max(session.updated_at, last ?? 0),
    lastMessageAt: last || null,
  });
}

function look(db: Db, sessionId: string, rowCount: number): OwnState | null {
  const session = readSession(db, sessionId);
  if (!session) return null;
  const later = LATER(db).all({ session: sessionId, count: rowCount });
  return { session, later: later.map((row) => ({ ...row, active: row.active === 1 })) };
}

const hasTable = (db: Db): boolean =>
  db.get(sql`SELECT 1 FROM sqlite_master WHERE name = 'imported_sessions'`) !== undefined;

/** @param state may be an older state DB that is only read: then nothing was ever imported */
export function createImportStore(state: Pick<StateDb, 'read' | 'write'>, alive: AliveProbe): ImportStore {
  const leased = (db: Db, sessionId: string, { lease }: ImportTurn): NotOwned | null => {
    const granted = takeLease(db, sessionId, lease, alive);
    // No cap is asked for, so that there is no other refusal.
    return granted.kind === 'not_owned' ? { kind: 'not_owned', pid: granted.holder.pid } : null;
  };

  return {
    records: () =>
      state.read((db) =>
        !hasTable(db)
          ? []
          : db
              .select()
              .from(importedSessions)
              .all()
              .map((row) => ({
                home: row.home,
                original_id: row.originalId,
                session_id: row.sessionId,
                digest: row.digest,
                seen: row.seen,
                row_count: row.rowCount,
                edit_number: row.editNumber,
                files_done: row.filesDone,
              })),
      ),

    idState: (id) =>
      state.read((db) => {
        if (SESSION(db).get({ id })) return 'there';
        return TOMBSTONE(db).get({ id }) ? 'deleted' : 'free';
      }),

    look: (sessionId, rowCount) => state.read((db) => look(db, sessionId, rowCount)),

    create: ({ session_id: id, session, rows, record }, turn) =>
      state.write((db) => {
        if (SESSION(db).get({ id }) || TOMBSTONE(db).get({ id })) return { kind: 'id_taken' };
        finish(db, turn);
        insertSession(db, id, session, rows, turn.now);
        insertRows(db, id, rows);
        writeRecord(db, { ...record, files_done: false }, turn.now);
        leased(db, id, turn);
        return { kind: 'created', session: readSession(db, id)! };
      }),

    grow: ({ record, seen, rows, cut, lastMessageAt }, turn) =>
      state.write((db) => {
        const { session_id: id } = record;
        const before = record.row_count - rows.length;
        const now = look(db, id, before);
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
        writeRecord(db, { ...record, edit_number: session.edit_number, files_done: false }, turn.now);
        return { kind: 'grown', session };
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
