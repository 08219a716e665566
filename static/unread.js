/**
 * What was seen in this browser, so that the list can say what is new. Kept per browser, shared by its tabs: the
 * newest time that was there at the first visit (`since`), and of each conversation that was looked at later the time of
 * what was last seen (`at`). All times are those of the server: clocks need not agree.
 */
const KEY = 'turnkeep.seen';
const saidAt = (session) => session.last_message_at ?? 0;
/** So many conversations are remembered; what was seen longest ago counts as seen by its time. */
const MOST = 1000;

/** Whether something came that was not seen here. What runs or waits is told as that. */
export const isUnread = (seen, session) =>
  session.status === 'idle' && seen.since !== null && saidAt(session) > (seen.at[session.session_id] ?? seen.since);

/** What is seen once a session was looked at as it is. @returns the same object when that changes nothing */
export function afterSeeing(seen, session) {
  const at = saidAt(session);
  if (seen.since === null || at <= (seen.at[session.session_id] ?? seen.since)) return seen;
  const all = Object.entries({ ...seen.at, [session.session_id]: at });
  if (all.length <= MOST) return { ...seen, at: Object.fromEntries(all) };
  const newest = all.toSorted((a, b) => b[1] - a[1]);
  const since = Math.max(seen.since, newest[MOST / 2][1]);
  return { since, at: Object.fromEntries(newest.slice(0, MOST / 2)) };
}

/** The beginning: everything that is there counts as seen. */
export const seenAtFirst = (sessions) => ({ since: Math.max(0, ...sessions.map(saidAt)), at: {} });

/** @returns what is stored, or null */
function read(storage) {
  try {
    const { since, at } = JSON.parse(storage.getItem(KEY));
    return typeof since === 'number' && typeof at === 'object' && at !== null ? { since, at } : null;
  } catch {
    // Nothing yet, nothing that we wrote, or no storage allowed: this visit is the first.
    return null;
  }
}

/** Keeps `list.seen` of the store: what is open and in sight is seen. Works without storage, for as long as the page is open. */
export function followUnread({ store, storage }) {
  const keep = (seen) => {
    store.dispatch({ type: 'list.seen', seen });
    try {
      storage.setItem(KEY, JSON.stringify(seen));
    } catch {
      // Full or forbidden.
    }
  };
  const look = () => {
    const { list, open } = store.get();
    if (list.loaded === 0) return;
    if (list.seen.since === null) return keep(read(storage) ?? seenAtFirst(list.sessions));
    if (open === null || document.visibilityState === 'hidden') return;
    const session = list.sessions.find((one) => one.session_id === open.sessionId) ?? open.session;
    const seen = session ? afterSeeing(list.seen, session) : list.seen;
    if (seen !== list.seen) keep(seen);
  };
  let shown = null;
  store.subscribe(({ list, open }) => {
    if (shown?.list === list && shown.open?.session === open?.session) return;
    shown = { list, open };
    look();
  });
  document.addEventListener('visibilitychange', look);
  window.addEventListener('storage', (event) => {
    const seen = event.key === KEY ? read(storage) : null;
    if (seen) store.dispatch({ type: 'list.seen', seen });
  });
}
