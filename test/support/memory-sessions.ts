/** The session store in memory. */
import type { SessionListCursor, SessionStore } from '../../db/stores.ts';
import { addSession, atomic, type MemoryState, openOf, rowOf, type StoredSession, touch } from './memory-state.ts';

type Place = SessionListCursor;

const placeOf = ({ pinned, last_activity_at: activity, session_id }: StoredSession): Place => ({
  pinned,
  activity,
  session_id,
});

/** Negative when `a` comes before `b` in the list: pinned first, newest activity, then the greater id. */
function order(a: Place, b: Place): number {
  if (a.pinned !== b.pinned) return a.pinned ? -1 : 1;
  if (a.activity !== b.activity) return b.activity - a.activity;
  return a.session_id > b.session_id ? -1 : a.session_id < b.session_id ? 1 : 0;
}

function titleHas(title: string | null, q: string | null): boolean {
  const words = q?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return words.length === 0 || (title !== null && words.every((word) => title.toLowerCase().includes(word)));
}

export function createMemorySessions(state: MemoryState): SessionStore {
  const hasProject = (id: string): boolean => state.projects.some((project) => project.project_id === id);

  return {
    byCreateKey: (key) =>
      atomic(() => {
        const found = [...state.sessions.values()].find((one) => one.create_key === key);
        return found ? { session: rowOf(state, found), digest: found.create_digest } : null;
      }),

    create: (input) =>
      atomic(() => {
        if (input.create_key !== null) {
          const same = [...state.sessions.values()].find((one) => one.create_key === input.create_key);
          if (same && same.create_digest !== input.create_digest) return { kind: 'key_conflict' };
          if (same) return { kind: 'existing', session: rowOf(state, same) };
        }
        if (input.project_id !== null && !hasProject(input.project_id)) return { kind: 'no_project' };
        if (state.sessions.has(input.session_id) || state.tombstones.has(input.session_id)) return { kind: 'id_taken' };
        const session = addSession(state, input);
        return { kind: 'created', session: rowOf(state, session) };
      }),

    get: (sessionId) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        return session ? rowOf(state, session) : null;
      }),

    list: (query) =>
      atomic(() => {
        const fitting = [...state.sessions.values()]
          .filter((one) => query.archived === 'yes' || one.archived === (query.archived === 'only'))
          .filter((one) => query.project_id === null || one.project_id === query.project_id)
          .filter((one) => query.source === null || one.source === query.source)
          .filter((one) => titleHas(one.title, query.q))
          .sort((a, b) => order(placeOf(a), placeOf(b)));
        const rest = fitting.filter((one) => query.cursor === null || order(query.cursor, placeOf(one)) < 0);
        const page = rest.slice(0, query.limit);
        const next = rest.length > query.limit ? placeOf(page.at(-1)!) : null;
        return { sessions: page.map((one) => rowOf(state, one)), next, total: fitting.length };
      }),

    patch: (sessionId, patch, { now, revision }) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        if (!session) return { kind: 'not_found' };
        if (revision !== null && revision !== session.revision) return { kind: 'revision_conflict' };
        if (patch.project_id && !hasProject(patch.project_id)) return { kind: 'no_project' };
        let seen = false;
        for (const [key, value] of Object.entries(patch)) {
          if (value === undefined || session[key as keyof typeof session] === value) continue;
          Object.assign(session, { [key]: value });
          if (key !== 'draft') seen = true;
        }
        if (seen) touch(session, now);
        return { kind: 'patched', session: rowOf(state, session) };
      }),

    remove: (sessionId, now, hasFiles) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        if (!session) return 'not_found';
        if (openOf(state, sessionId).length > 0) return 'live';
        state.admissions = state.admissions.filter((one) => one.session_id !== sessionId);
        state.messages.delete(sessionId);
        state.inactive.delete(sessionId);
        state.summaries.delete(sessionId);
        state.leases.delete(sessionId);
        state.sessions.delete(sessionId);
        // A session that never ran never had a file of ours.
        state.tombstones.set(sessionId, !(hasFiles ?? session.generation > 0));
        state.deletedAt.set(sessionId, now);
        return 'removed';
      }),

    tombstones: () => atomic(() => [...state.tombstones].filter(([, gone]) => !gone).map(([id]) => id)),

    filesRemoved: (sessionId) =>
      atomic(() => {
        if (state.tombstones.has(sessionId)) state.tombstones.set(sessionId, true);
      }),

    unknown: (sessionIds) =>
      atomic(() => sessionIds.filter((id) => !state.sessions.has(id) && !state.tombstones.has(id))),

    // No other program writes here, and nothing of ours compresses a session into another.
    isContinued: async () => false,

    withOpenAdmissions: () =>
      atomic(() => [...state.sessions.keys()].filter((sessionId) => openOf(state, sessionId).length > 0)),
  };
}
