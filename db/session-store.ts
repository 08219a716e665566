/** Sessions: create, list, patch, remove. The row owns title, flags, model, workspace, draft and the counters. */
import { and, asc, desc, eq, ne, type SQL, sql } from 'drizzle-orm';
import type { Db, StateDb } from './client.ts';
import { toOpenRow, toSessionRow } from './rows.ts';
import { activeSessions, messages, projects, sessionAdmissions, sessions, sessionTombstones } from './schema.ts';
import { changeSession } from './session-change.ts';
import { given, statement } from './statement.ts';
import type { OpenRow, SessionListQuery, SessionPatch, SessionRow, SessionStore } from './stores.ts';

/** Newest activity of a session: what the list is ordered by, kept in a column so that an index can give it. */
const ACTIVITY = sessions.lastActivityAt;

const OPEN_ROWS = statement((db) =>
  db
    .select()
    .from(sessionAdmissions)
    .where(
      and(
        ne(sessionAdmissions.status, sql`'terminal'`),
        // One variable, however many sessions: a statement has room for 32,766 of them.
        sql`${sessionAdmissions.targetSessionId} IN (SELECT value FROM json_each(${given('ids')}))`,
      ),
    )
    .orderBy(asc(sessionAdmissions.seq))
    .prepare(),
);
const BY_ID = statement((db) =>
  db
    .select()
    .from(sessions)
    .where(eq(sessions.id, given('id')))
    .prepare(),
);
const BY_CREATE_KEY = statement((db) =>
  db
    .select()
    .from(sessions)
    .where(eq(sessions.createKey, given('key')))
    .prepare(),
);
const TOMBSTONE = statement((db) =>
  db
    .select()
    .from(sessionTombstones)
    .where(eq(sessionTombstones.sessionId, given('id')))
    .prepare(),
);
const PROJECT = statement((db) =>
  db
    .select({ id: projects.projectId })
    .from(projects)
    .where(eq(projects.projectId, given('id')))
    .prepare(),
);
const INSERT = statement((db) =>
  db
    .insert(sessions)
    .values({
      id: given('id'),
      source: given('source'),
      model: given('model'),
      cwd: given('cwd'),
      title: given('title'),
      titleSource: given('titleSource'),
      startedAt: given('now'),
      updatedAt: given('now'),
      lastActivityAt: given('now'),
      runtimeRevision: 1,
      projectId: given('projectId'),
      createKey: given('createKey'),
      createDigest: given('createDigest'),
    })
    .prepare(),
);
/** Everything of a session, in the order that foreign keys ask for. */
const REMOVALS = statement((db) => [
  db
    .delete(sessionAdmissions)
    .where(eq(sessionAdmissions.targetSessionId, given('id')))
    .prepare(),
  db
    .delete(messages)
    .where(eq(messages.sessionId, given('id')))
    .prepare(),
  db
    .delete(activeSessions)
    .where(eq(activeSessions.sessionId, given('id')))
    .prepare(),
  db
    .delete(sessions)
    .where(eq(sessions.id, given('id')))
    .prepare(),
  db
    .insert(sessionTombstones)
    .values({ sessionId: given('id'), deletedAt: given('now'), filesRemoved: given('filesRemoved') })
    .onConflictDoNothing()
    .prepare(),
]);
const FILES_REMOVED = statement((db) =>
  db
    .update(sessionTombstones)
    .set({ filesRemoved: true })
    .where(eq(sessionTombstones.sessionId, given('id')))
    .prepare(),
);

/** The admissions of some sessions that have not ended, by session. */
function openRows(db: Db, sessionIds: readonly string[]): Map<string, OpenRow[]> {
  const found = new Map<string, OpenRow[]>();
  if (sessionIds.length === 0) return found;
  for (const row of OPEN_ROWS(db).all({ ids: JSON.stringify(sessionIds) })) {
    const list = found.get(row.targetSessionId);
    if (list) list.push(toOpenRow(row));
    else found.set(row.targetSessionId, [toOpenRow(row)]);
  }
  return found;
}

/** One session with its open admissions, inside a transaction of the caller. */
export function readSession(db: Db, sessionId: string): SessionRow | null {
  const row = BY_ID(db).get({ id: sessionId });
  return row ? toSessionRow(row, openRows(db, [sessionId]).get(sessionId) ?? []) : null;
}

const hasProject = (db: Db, projectId: string): boolean => PROJECT(db).get({ id: projectId }) !== undefined;

function listFilter(query: SessionListQuery): SQL | undefined {
  const parts: (SQL | undefined)[] = [eq(sessions.hidden, false)];
  if (query.archived !== 'yes') parts.push(eq(sessions.archived, query.archived === 'only'));
  if (query.project_id !== null) parts.push(eq(sessions.projectId, query.project_id));
  if (query.source !== null) parts.push(eq(sessions.source, query.source));
  if (query.q !== null) parts.push(sql`has_words(${sessions.title}, ${query.q})`);
  return and(...parts);
}

/** Rows behind the cursor in the order pinned, activity, id, each descending. */
function behind(cursor: SessionListQuery['cursor']): SQL | undefined {
  if (!cursor) return undefined;
  return sql`(${sessions.pinned}, ${ACTIVITY}, ${sessions.id}) < (${cursor.pinned ? 1 : 0}, ${cursor.activity}, ${cursor.session_id})`;
}

/** One page of the list, inside a transaction of the caller. */
function readPage(db: Db, query: SessionListQuery): SessionPage {
  const filter = listFilter(query);
  const page = db
    .select()
    .from(sessions)
    .where(and(filter, behind(query.cursor)))
    .orderBy(desc(sessions.pinned), desc(ACTIVITY), desc(sessions.id))
    .limit(query.limit + 1)
    .all();
  const rows = page.slice(0, query.limit);
  const open = openRows(
    db,
    rows.map((row) => row.id),
  );
  const last = page.length > query.limit ? rows.at(-1) : undefined;
  const counted = db.select({ total: sql<number>`count(*)` }).from(sessions).where(filter).get();
  return {
    sessions: rows.map((row) => toSessionRow(row, open.get(row.id) ?? [])),
    next: last ? { pinned: last.pinned, activity: last.lastActivityAt ?? 0, session_id: last.id } : null,
    total: counted?.total ?? 0,
  };
}

type SessionPage = Awaited<ReturnType<SessionStore['list']>>;

/** Answers of the list that are kept while nothing changes. */
const MOST_ANSWERS = 32;

export function createSessionStore(state: StateDb): SessionStore {
  let listed: { version: string; answers: Map<string, SessionPage> } = { version: '', answers: new Map() };
  return {
    create: (input) =>
      state.write((db) => {
        if (input.create_key !== null) {
          const same = BY_CREATE_KEY(db).get({ key: input.create_key });
          if (same) {
            if (same.createDigest !== input.create_digest) return { kind: 'key_conflict' };
            return { kind: 'existing', session: readSession(db, same.id)! };
          }
        }
        if (input.project_id !== null && !hasProject(db, input.project_id)) return { kind: 'no_project' };
        const id = input.session_id;
        if (BY_ID(db).get({ id }) ?? TOMBSTONE(db).get({ id })) return { kind: 'id_taken' };
        INSERT(db).run({
          id,
          source: input.source,
          model: input.model,
          cwd: input.workspace,
          title: input.title,
          titleSource: input.title === null ? null : 'user',
          now: input.now,
          projectId: input.project_id,
          createKey: input.create_key,
          createDigest: input.create_digest,
        });
        return { kind: 'created', session: readSession(db, input.session_id)! };
      }),

    byCreateKey: (key) =>
      state.read((db) => {
        const row = BY_CREATE_KEY(db).get({ key });
        return row ? { session: readSession(db, row.id)!, digest: row.createDigest } : null;
      }),

    get: (sessionId) => state.read((db) => readSession(db, sessionId)),

    list: (query) =>
      state.read((db) => {
        // The same question while nothing was changed has the same answer.
        const version = state.version();
        if (version !== listed.version) listed = { version, answers: new Map() };
        const key = JSON.stringify(query);
        const answer = listed.answers.get(key) ?? readPage(db, query);
        if (listed.answers.size < MOST_ANSWERS) listed.answers.set(key, answer);
        return answer;
      }),

    patch: (sessionId, patch, { now, revision }) =>
      state.write((db) => {
        const before = BY_ID(db).get({ id: sessionId });
        if (!before) return { kind: 'not_found' };
        if (revision !== null && before.runtimeRevision !== revision) return { kind: 'revision_conflict' };
        if (patch.project_id && !hasProject(db, patch.project_id)) return { kind: 'no_project' };
        const change = columnsOf(patch);
        const seen = Object.entries(change).some(
          ([column, value]) => column !== 'draft' && before[column as keyof typeof before] !== value,
        );
        if (seen) changeSession(db, sessionId, now, change);
        else if (change.draft !== undefined) {
          db.update(sessions).set({ draft: change.draft }).where(eq(sessions.id, sessionId)).run();
        }
        return { kind: 'patched', session: readSession(db, sessionId)! };
      }),

    remove: (sessionId, now) =>
      state.write((db) => {
        const session = BY_ID(db).get({ id: sessionId });
        if (!session) return 'not_found';
        if (openRows(db, [sessionId]).size > 0) return 'live';
        // A session that never ran never had a file.
        const filesRemoved = session.runtimeGeneration === 0;
        for (const removal of REMOVALS(db)) removal.run({ id: sessionId, now, filesRemoved });
        return 'removed';
      }),

    tombstones: () =>
      state.read((db) =>
        db
          .select({ id: sessionTombstones.sessionId })
          .from(sessionTombstones)
          .where(eq(sessionTombstones.filesRemoved, false))
          .all()
          .map((row) => row.id),
      ),

    filesRemoved: (sessionId) =>
      state.write((db) => {
        FILES_REMOVED(db).run({ id: sessionId });
      }),

    withOpenAdmissions: () =>
      state.read((db) =>
        db
          .selectDistinct({ id: sessionAdmissions.targetSessionId })
          .from(sessionAdmissions)
          .where(ne(sessionAdmissions.status, sql`'terminal'`))
          .all()
          .map((row) => row.id),
      ),
  };
}

/** The columns that a patch names; a field that is undefined is not one of them. */
function columnsOf(patch: SessionPatch): Partial<typeof sessions.$inferInsert> {
  const { title_source, workspace, project_id, ...same } = patch;
  const change = { ...same, titleSource: title_source, cwd: workspace, projectId: project_id };
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}
