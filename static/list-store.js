/**
 * The list of conversations, as a pure function of what happened to it: no clock, no network, no document.
 *
 * `sessions` is the beginning of what the server has for `view`, in its order; `next` leads to the rest. An answer to
 * a view that was left is dropped: each view is an object of its own, and an answer brings the one it was asked for.
 */

/** Everything that is not archived. */
const ALL = { q: '', project: null, archived: false };

/** The list before anything is known of it. */
export const emptyList = () => ({
  /** What is looked for: words, one project or all, and the archived in place of the others. */
  view: ALL,
  ...nothingYet(),
  sessions: [],
  /** What the full text search found; null while that is not known. */
  hits: null,
  projects: [],
  /** Ids of conversations that are gone from the list while their deletion can be undone. */
  removing: [],
  /** What was seen in this browser (unread.js). */
  seen: { since: null, at: {} },
});

const nothingYet = () => ({
  next: null,
  total: 0,
  wanted: 1,
  loaded: 0,
  loading: false,
  /** Sessions that changed while a page of the list was on its way: newer than that page. */
  touched: {},
  /** Whether all titles that match are shown, and not the first of them. */
  expanded: false,
});

/** The next state of the list. */
export function reduceList(list, action) {
  switch (action.type) {
    case 'list.view':
      return viewed(list, action.view);
    case 'list.expand':
      return { ...list, expanded: !list.expanded };
    case 'list.requested':
      return { ...list, loading: true, touched: {}, requested: list.wanted };
    case 'list.loaded':
      return action.view === list.view ? listLoaded(list, action) : list;
    case 'list.failed':
      return action.view === list.view ? { ...list, loading: false } : list;
    case 'hits.loaded':
      return action.view === list.view ? { ...list, hits: action.hits } : list;
    case 'projects.loaded':
      return projectsLoaded(list, action.projects);
    case 'list.removing':
      return { ...list, removing: [...list.removing, action.id] };
    case 'list.kept':
      return { ...list, removing: list.removing.filter((id) => id !== action.id) };
    case 'list.seen':
      return { ...list, seen: action.seen };
    case 'sessions.changed':
      return listChanged(list, action);
    default:
      return list;
  }
}

/** Another view; of what is shown that stays which fits, until the server has answered. */
function viewed(list, changes) {
  const view = { ...list.view, ...changes };
  const sessions = list.sessions.filter((session) => belongs(session, view));
  return { ...list, ...nothingYet(), view, sessions, total: sessions.length, hits: view.q === '' ? null : list.hits };
}

function projectsLoaded(list, projects) {
  const next = { ...list, projects };
  const { project } = list.view;
  return project === null || projects.some((one) => one.project_id === project)
    ? next
    : viewed(next, { project: null });
}

/** When something last happened in a session, in epoch seconds. */
export const activityOf = (session) => session.last_activity_at;

/** The order of the server: pinned first, then the newest. */
const byActivity = (a, b) =>
  Number(b.pinned) - Number(a.pinned) ||
  activityOf(b) - activityOf(a) ||
  (a.session_id < b.session_id ? 1 : a.session_id > b.session_id ? -1 : 0);

/** Whether a title has each word of a query, as the server has it. */
function hasWords(title, q) {
  const lower = (title ?? '').toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

const belongs = (session, { q, project, archived }) =>
  session.archived === archived &&
  (project === null || session.project_id === project) &&
  (q === '' || hasWords(session.title, q));

const without = (sessions, id) => {
  const at = sessions.findIndex((one) => one.session_id === id);
  return at < 0 ? sessions : sessions.toSpliced(at, 1);
};

function upsert(sessions, session, list) {
  const others = without(sessions, session.session_id);
  if (!belongs(session, list.view)) return others;
  // Behind the loaded part of the list: scrolling will bring it.
  const last = others.at(-1);
  if (others === sessions && list.next !== null && last && byActivity(session, last) > 0) return sessions;
  let from = 0;
  let to = others.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (byActivity(others[middle], session) < 0) from = middle + 1;
    else to = middle;
  }
  return others.toSpliced(from, 0, session);
}

/** The list after a `sessions.changed`. */
function listChanged(list, { session_id: id, session, reason }) {
  if (id === null) return { ...list, wanted: list.wanted + 1 };
  if (reason === 'deleted' || !session) {
    const sessions = without(list.sessions, id);
    return {
      ...list,
      sessions,
      total: list.total - (list.sessions.length - sessions.length),
      hits: list.hits?.filter((hit) => hit.session_id !== id) ?? null,
      removing: list.removing.filter((one) => one !== id),
      touched: { ...list.touched, [id]: null },
    };
  }
  const sessions = upsert(list.sessions, session, list);
  const isLost = session.project_id !== null && !list.projects.some((one) => one.project_id === session.project_id);
  return {
    ...list,
    sessions,
    total: totalAfter(list, sessions, session, reason),
    // A project that nobody told of: it comes with the list.
    wanted: list.wanted + (isLost ? 1 : 0),
    touched: { ...list.touched, [id]: session },
  };
}

function totalAfter(list, sessions, session, reason) {
  if (list.next === null) return sessions.length;
  if (sessions.length !== list.sessions.length) return list.total + sessions.length - list.sessions.length;
  const isBehind = reason === 'created' && belongs(session, list.view) && !sessions.includes(session);
  return list.total + (isBehind ? 1 : 0);
}

function listLoaded(list, { sessions, next_cursor: next, total, append }) {
  const ids = new Set(sessions.map((one) => one.session_id));
  const merged = append ? [...list.sessions.filter((one) => !ids.has(one.session_id)), ...sessions] : sessions;
  let all = merged;
  const loaded = { ...list, next };
  for (const [id, session] of Object.entries(list.touched)) {
    all = session === null ? without(all, id) : upsert(all, session, loaded);
  }
  return {
    ...loaded,
    sessions: all,
    total: next === null ? all.length : total,
    loading: false,
    touched: {},
    loaded: append ? list.loaded : list.requested,
  };
}
