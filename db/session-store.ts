/** Sessions: create, list, patch, remove. The row owns title, flags, model, workspace, draft and the counters. */
import { and, eq, sql } from 'drizzle-orm';
import type { Db, StateDb } from './client.ts';
import { openRowsOf, sessionsWithOpenRows } from './open-rows.ts';
import { toSessionRow } from './rows.ts';
import {
  activeSessions,
  agentSessions,
  contextSummaries,
  messages,
  projects,
  sessionAdmissions,
  sessions,
  sessionTombstones,
} from './schema.ts';
import { changeSession } from './session-change.ts';
import { createSessionList } from './session-list.ts';
import { given, statement } from './statement.ts';
import type { NewSession, SessionPatch, SessionRow, SessionStore } from './stores.ts';

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
    .onConflictDoNothing({ target: sessions.id })
    .returning()
    .prepare(),
);
const DRAFT = statement((db) =>
  db
    .update(sessions)
    .set({ draft: given('draft') as never })
    .where(eq(sessions.id, given('id')))
    .returning()
    .prepare(),
);
/** Of some ids those that no session has or had. */
const UNKNOWN = statement((db) => {
  const asked = db
    .select({ id: sql<string>`value`.as('id') })
    .from(sql`json_each(${given('ids')})`)
    .as('asked');
  return db
    .select({ id: asked.id })
    .from(asked)
    .where(
      and(
        sql`NOT EXISTS (SELECT 1 FROM ${sessions} WHERE ${sessions.id} = ${asked.id})`,
        sql`NOT EXISTS (SELECT 1 FROM ${sessionTombstones} WHERE ${sessionTombstones.sessionId} = ${asked.id})`,
      ),
    )
    .prepare();
});
/** A child that is no copy and no helper of its parent: the conversation goes on in it. */
const CONTINUATION = statement((db) =>
  db
    .select({ id: sessions.id })
    .from(sessions)
    .where(
      and(
        eq(sessions.parentSessionId, given('id')),
        sql`${sessions.source} NOT IN ('fork', 'subagent', 'tool', 'delegate')`,
      ),
    )
    .limit(1)
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
    .delete(contextSummaries)
    .where(eq(contextSummaries.sessionId, given('id')))
    .prepare(),
  db
    .delete(agentSessions)
    .where(eq(agentSessions.sessionId, given('id')))
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

/** One session with its open admissions, inside a transaction of the caller. */
export function readSession(db: Db, sessionId: string): SessionRow | null {
  const row = BY_ID(db).get({ id: sessionId });
  return row ? toSessionRow(row, openRowsOf(db, sessionId)) : null;
}

/** Whether a session had this id and was deleted: it is never revived. */
export const wasDeleted = (db: Db, id: string): boolean => TOMBSTONE(db).get({ id }) !== undefined;

/** Inserts the row of a session, inside a transaction of the caller; undefined when its id is taken. */
export function insertSession(db: Db, input: NewSession): typeof sessions.$inferSelect | undefined {
  return INSERT(db).get({
    id: input.session_id,
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
}

const hasProject = (db: Db, projectId: string): boolean => PROJECT(db).get({ id: projectId }) !== undefined;

export function createSessionStore(state: StateDb): SessionStore {
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
        if (wasDeleted(db, input.session_id)) return { kind: 'id_taken' };
        const made = insertSession(db, input);
        return made ? { kind: 'created', session: toSessionRow(made, []) } : { kind: 'id_taken' };
      }),

    byCreateKey: (key) =>
      state.read((db) => {
        const row = BY_CREATE_KEY(db).get({ key });
        return row ? { session: readSession(db, row.id)!, digest: row.createDigest } : null;
      }),

    get: (sessionId) => state.read((db) => readSession(db, sessionId)),

    list: createSessionList(state),

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
        const after = seen
          ? changeSession(db, sessionId, now, change)
          : change.draft === undefined
            ? before
            : DRAFT(db).get({ id: sessionId, draft: change.draft });
        return { kind: 'patched', session: toSessionRow(after!, openRowsOf(db, sessionId)) };
      }),

    remove: (sessionId, now, hasFiles) =>
      state.write((db) => {
        const session = BY_ID(db).get({ id: sessionId });
        if (!session) return 'not_found';
        if (openRowsOf(db, sessionId).length > 0) return 'live';
        // A session that never ran never had a file of ours.
        const filesRemoved = !(hasFiles ?? session.runtimeGeneration > 0);
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

    unknown: (sessionIds) =>
      state.read((db) =>
        UNKNOWN(db)
          .all({ ids: JSON.stringify(sessionIds) })
          .map((row) => row.id),
      ),

    isContinued: (sessionId) => state.read((db) => CONTINUATION(db).get({ id: sessionId }) !== undefined),

    withOpenAdmissions: () => state.read(sessionsWithOpenRows),
  };
}

/** The columns that a patch names; a field that is undefined is not one of them. */
function columnsOf(patch: SessionPatch): Partial<typeof sessions.$inferInsert> {
  const { title_source, workspace, project_id, ...same } = patch;
  const change = { ...same, titleSource: title_source, cwd: workspace, projectId: project_id };
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}
