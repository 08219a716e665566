/**
 * Edits of a session: rows are taken out of its transcript, or a session is made with a transcript from its beginning.
 * Each is one transaction; the sidecar follows. Rows that are taken out stay in the table, inactive, and the session's
 * row says where its transcript was cut (`edit_number`, `edit_fence`), so that an older sidecar can be cut there too.
 */
import { and, eq, sql } from 'drizzle-orm';
import { judgeEdit } from '../server/core/edit-rules.ts';
import type { Db, StateDb } from './client.ts';
import { forgetSummary, putSummary } from './context-store.ts';
import { takeLease } from './lease-store.ts';
import { insertRecords } from './message-records.ts';
import { insertNewSession } from './new-session.ts';
import { toMessageRecord } from './rows.ts';
import { messages, projects, sessions, sessionTombstones } from './schema.ts';
import { readSession } from './session-store.ts';
import { given, statement } from './statement.ts';
import type { AliveProbe, Cut, EditStore, NewCopy } from './stores.ts';

const OUT = statement((db) =>
  db
    .update(messages)
    .set({ active: 0 })
    .where(
      and(
        eq(messages.sessionId, given('session')),
        eq(messages.active, 1),
        sql`coalesce(${messages.messageId}, 'row.' || ${messages.id}) IN (SELECT value FROM json_each(${given('ids')}))`,
      ),
    )
    .prepare(),
);
const ALL_OUT = statement((db) =>
  db
    .update(messages)
    .set({ active: 0 })
    .where(and(eq(messages.sessionId, given('session')), eq(messages.active, 1)))
    .prepare(),
);
const TOOLS = sql`(SELECT count(*) FROM messages WHERE session_id = ${given('session')} AND active = 1 AND role = 'tool')`;
const FENCE = statement((db) =>
  db
    .update(sessions)
    .set({
      messageCount: sql`${given('count')}`,
      toolCallCount: TOOLS,
      lastMessageAt: sql`${given('lastMessageAt')}`,
      // How full the window was is known of a longer transcript only.
      contextUsed: null,
      contextEstimated: false,
      editNumber: sql`${sessions.editNumber} + 1`,
      editFence: sql`${given('fence')}`,
      rewindCount: sql`${sessions.rewindCount} + 1`,
      updatedAt: sql`${given('now')}`,
      runtimeRevision: sql`${sessions.runtimeRevision} + 1`,
    })
    .where(eq(sessions.id, given('session')))
    .prepare(),
);

/**
 * Takes rows out of a transcript and moves its fence, inside a transaction of the caller, which has judged the edit.
 * @param now epoch seconds
 */
export function applyCut(db: Db, session: string, cut: Cut, now: number): void {
  if (cut.kept === null) ALL_OUT(db).run({ session });
  else OUT(db).run({ session, ids: JSON.stringify(cut.remove) });
  forgetSummary(db, session, cut.kept === null ? null : cut.remove);
  const { kept, count } = cut;
  FENCE(db).run({ session, now, count, fence: kept?.id ?? null, lastMessageAt: kept?.timestamp ?? null });
}

/** Whether an id names a session now, or did. */
function isTaken(db: Db, id: string): boolean {
  const there = db.select({ id: sessions.id }).from(sessions).where(eq(sessions.id, id)).get();
  const was = db.select().from(sessionTombstones).where(eq(sessionTombstones.sessionId, id)).get();
  return there !== undefined || was !== undefined;
}

function insertCopy(db: Db, copy: NewCopy): void {
  const { usage, rows, now } = copy;
  // A project may be gone since the original was read: then the copy is in none, as the original is now.
  const project = copy.project_id === null ? null : eq(projects.projectId, copy.project_id);
  const found = project && db.select({ id: projects.projectId }).from(projects).where(project).get();
  insertNewSession(db, {
    id: copy.session_id,
    source: copy.source,
    model: copy.model,
    parentSessionId: copy.parent_session_id,
    startedAt: copy.created_at,
    messageCount: rows.length,
    toolCallCount: rows.filter((row) => row.role === 'tool').length,
    usage,
    cwd: copy.workspace,
    title: copy.title,
    titleSource: copy.title_source,
    projectId: found?.id ?? null,
    archived: false,
    pinned: false,
    hidden: false,
    draft: '',
    updatedAt: now,
    lastActivityAt: now,
    lastMessageAt: rows.at(-1)?.timestamp ?? null,
  });
  insertRecords(db, rows, (row) => toMessageRecord(copy.session_id, row));
  if (copy.summary) putSummary(db, copy.session_id, copy.summary);
}

export function createEditStore(state: StateDb, alive: AliveProbe): EditStore {
  return {
    cut: (sessionId, cut, { lease, now }) =>
      state.write((db) => {
        const session = readSession(db, sessionId);
        if (!session) return { kind: 'not_found' };
        const { open, revision } = session;
        const verdict = judgeEdit({ open, revision, expected: cut.revision });
        if (verdict === 'revision_conflict') return { kind: verdict, revision };
        if (verdict !== 'edit') return { kind: verdict };
        const granted = takeLease(db, sessionId, lease, alive);
        if (granted.kind !== 'granted') return granted;
        applyCut(db, sessionId, cut, now);
        return { kind: 'edited', session: readSession(db, sessionId)! };
      }),

    copy: (copy) =>
      state.write((db) => {
        if (isTaken(db, copy.session_id)) return { kind: 'id_taken' };
        insertCopy(db, copy);
        return { kind: 'created', session: readSession(db, copy.session_id)! };
      }),
  };
}
