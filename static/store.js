/**
 * What the page knows, as a pure function of what happened: no clock, no network, no document.
 *
 * The open conversation has two sources: rows (what the server has stored, by GET) and runs (what the stream tells of
 * turns that are not stored yet). A turn is shown from one of them, never from both: as soon as the rows of a run are
 * there, its live view goes. Events of a run are applied once and in order, by their `seq`.
 *
 * Rows are fetched again whenever `wanted` is greater than `loaded`; whoever fetches says so first (`rows.requested`).
 */

/** The state before anything is known. */
export const initialState = () => ({
  auth: 'unknown',
  connection: { kind: 'connecting' },
  list: emptyList(''),
  models: null,
  open: null,
});

const emptyList = (q) => ({
  q,
  sessions: [],
  next: null,
  total: 0,
  wanted: 1,
  loaded: 0,
  loading: false,
  /** Sessions that changed while a page of the list was on its way: newer than that page. */
  touched: {},
  /** What the full text search found; null while that is not known. */
  hits: null,
});

/** A conversation of which only the id is known. */
export const openConversation = (sessionId) => ({
  sessionId,
  session: null,
  rows: [],
  rowsRevision: 0,
  hasOlder: false,
  runs: [],
  endedRuns: [],
  queue: [],
  requests: [],
  /** Where the stream is to go on from; null asks for a snapshot. */
  cursor: null,
  snapshotSeen: false,
  /** Events are missing: the stream must be opened anew without a cursor. */
  lost: false,
  /** Why the server will not stream this session now: a code of its catalogue. */
  unavailable: null,
  /** Why there is nothing to show: `deleted`, `missing` (it was never seen here), or the sentence of the refusal. */
  gone: null,
  wanted: 1,
  loaded: 0,
  loading: null,
});

/**
 * The next state.
 * @param state the state so far; never changed
 * @param action what happened
 */
export function reduce(state, action) {
  switch (action.type) {
    case 'auth':
      return { ...state, auth: action.auth };
    case 'connection':
      return { ...state, connection: action.connection };
    case 'models':
      return { ...state, models: action.models };
    case 'session.open':
      return { ...state, open: action.sessionId === null ? null : openConversation(action.sessionId) };
    case 'list.search':
      return { ...state, list: searched(state.list, action.q) };
    case 'hits.loaded':
      return action.q === state.list.q ? { ...state, list: { ...state.list, hits: action.hits } } : state;
    case 'list.requested':
      return { ...state, list: { ...state.list, loading: true, touched: {}, requested: state.list.wanted } };
    case 'list.loaded':
      return action.q === state.list.q ? { ...state, list: listLoaded(state.list, action) } : state;
    case 'list.failed':
      return action.q === state.list.q ? { ...state, list: { ...state.list, loading: false } } : state;
    case 'event':
      return applyEvent(state, action.event, action.cursor ?? null);
    default:
      return withOpen(state, action.sessionId, (open) => reduceConversation(open, action));
  }
}

/** Changes the open conversation, if it is the one that is meant: answers for one that was left are dropped. */
function withOpen(state, sessionId, change) {
  if (state.open?.sessionId !== sessionId) return state;
  const open = change(state.open);
  return open === state.open ? state : { ...state, open };
}

const goneFor = (open, reason) => ({ ...open, gone: reason, runs: [], requests: [], queue: [] });

/** Why the server has no such conversation: what was never seen here may never have been. */
const absence = (open) => (open.session === null && open.loaded === 0 ? 'missing' : 'deleted');

function reduceConversation(open, action) {
  switch (action.type) {
    case 'rows.requested':
      return {
        ...open,
        loading: { token: open.wanted, afterSnapshot: open.snapshotSeen, revision: open.session?.revision ?? 0 },
      };
    case 'rows.loaded':
      return rowsLoaded(open, action);
    case 'rows.failed':
      return { ...open, loading: null };
    case 'older.loaded':
      if (open.rows[0]?.id !== action.before) return open;
      return { ...open, rows: [...action.messages, ...open.rows], hasOlder: action.has_more };
    case 'session.known':
      return { ...open, session: withoutEndedRun(open, action.session) };
    case 'session.gone':
      return goneFor(open, action.reason ?? absence(open));
    case 'prompt.cancelled':
      return { ...open, queue: open.queue.filter((one) => one.admission_id !== action.admission_id) };
    case 'request.answered':
      return { ...open, requests: open.requests.filter((one) => one.id !== action.id) };
    default:
      return open;
  }
}

// ---------------------------------------------------------------- the list

/** The list for another search; what is shown stays until its answer is there. */
const searched = (list, q) => ({ ...emptyList(q), sessions: list.sessions, hits: q === '' ? null : list.hits });

const activityOf = (session) => session.last_message_at ?? session.created_at;

const byActivity = (a, b) =>
  Number(b.pinned) - Number(a.pinned) ||
  activityOf(b) - activityOf(a) ||
  (a.session_id < b.session_id ? 1 : a.session_id > b.session_id ? -1 : 0);

const matches = (session, q) => q === '' || (session.title ?? '').toLowerCase().includes(q.toLowerCase());

function upsert(sessions, session, list) {
  const others = sessions.filter((one) => one.session_id !== session.session_id);
  if (session.archived || !matches(session, list.q)) return others;
  // Behind the loaded part of the list: "show more" will bring it.
  const known = others.length < sessions.length;
  const last = others.at(-1);
  if (!known && list.next !== null && last && byActivity(session, last) > 0) return sessions;
  return [...others, session].sort(byActivity);
}

function listChanged(list, { session_id: id, session, reason }) {
  if (id === null) return { ...list, wanted: list.wanted + 1 };
  if (reason === 'deleted' || !session) {
    const sessions = list.sessions.filter((one) => one.session_id !== id);
    const total = list.total - (list.sessions.length - sessions.length);
    const hits = list.hits?.filter((hit) => hit.session_id !== id) ?? null;
    return { ...list, sessions, total, hits, touched: { ...list.touched, [id]: null } };
  }
  const known = list.sessions.some((one) => one.session_id === id);
  const sessions = upsert(list.sessions, session, list);
  return {
    ...list,
    sessions,
    total: list.total + (!known && reason === 'created' ? 1 : 0),
    touched: { ...list.touched, [id]: session },
  };
}

function listLoaded(list, { sessions, next_cursor: next, total, append }) {
  const ids = new Set(sessions.map((one) => one.session_id));
  const merged = append ? [...list.sessions.filter((one) => !ids.has(one.session_id)), ...sessions] : sessions;
  let all = merged;
  const loaded = { ...list, next };
  for (const [id, session] of Object.entries(list.touched)) {
    all = session === null ? all.filter((one) => one.session_id !== id) : upsert(all, session, loaded);
  }
  return {
    ...loaded,
    sessions: all,
    total,
    loading: false,
    touched: {},
    loaded: append ? list.loaded : list.requested,
  };
}

// ---------------------------------------------------------------- events

function applyEvent(state, event, cursor) {
  const { type, session_id: sessionId, payload } = event;
  if (type === 'sessions.changed') return { ...state, list: listChanged(state.list, payload) };
  if (type === 'heartbeat') return state;
  return withOpen(state, sessionId, (open) => {
    if (isRepeat(open, event)) return open;
    const next = isRunEvent(event) ? applyRunEvent(open, event) : applySessionEvent(open, event);
    if (cursor === null || next.lost || next.cursor === cursor) return next;
    return { ...next, cursor };
  });
}

const isRunEvent = (event) => event.run_id !== undefined;

/** Whether an event was applied already; then it moves nothing, not even the cursor. */
const isRepeat = (open, { run_id: runId, seq }) =>
  seq !== undefined && open.runs.some((run) => run.id === runId && seq <= run.seq);

function applySessionEvent(open, { type, payload }) {
  switch (type) {
    case 'session.snapshot':
      return reconsider(applySnapshot(open, payload));
    case 'session.info': {
      const { session, queue = open.queue, open_requests: requests = open.requests } = payload;
      const waiting = queue.filter((one) => !hasBegun(open, one.run_id));
      return reconsider({ ...open, session: withoutEndedRun(open, session), queue: waiting, requests });
    }
    case 'session.reset':
      return resetTo(open, payload.reason);
    case 'session.deleted':
      return goneFor(open, absence(open));
    case 'request.open':
      if (open.requests.some((one) => one.id === payload.id)) return open;
      return { ...open, requests: [...open.requests, payload] };
    case 'request.cancel':
      return { ...open, requests: open.requests.filter((one) => one.id !== payload.id) };
    default:
      return open;
  }
}

/** Reasons of a reset that a snapshot follows; any other is a refusal, and nothing follows. */
const SNAPSHOT_FOLLOWS = new Set(['malformed', 'foreign', 'ahead', 'too_old', 'cancelled', 'edited']);

function resetTo(open, reason) {
  return {
    ...open,
    runs: [],
    endedRuns: [],
    requests: [],
    cursor: null,
    lost: false,
    snapshotSeen: false,
    unavailable: SNAPSHOT_FOLLOWS.has(reason) ? null : reason,
    wanted: open.wanted + 1,
  };
}

function applySnapshot(open, { session, run, queue, open_requests: requests }) {
  const running = run === null || isOver(open, run.run_id) ? null : liveFromSnapshot(open, run);
  const before = open.runs.filter((one) => one.id !== running?.id);
  // A run that ended while nobody told us stays as it was seen until its rows are there.
  const unseen = before.some((one) => one.end === null);
  const wanted = open.wanted + (unseen ? 1 : 0);
  const runs = before.map((one) => (one.end === null ? { ...one, end: { status: 'unseen' }, endedAt: wanted } : one));
  const next = {
    ...open,
    runs: running ? [...runs, running] : runs,
    queue,
    requests,
    wanted,
    lost: false,
    unavailable: null,
    snapshotSeen: true,
  };
  return { ...next, session: withoutEndedRun(next, session) };
}

function liveFromSnapshot(open, run) {
  const known = open.runs.find((one) => one.id === run.run_id);
  if (known && known.seq >= run.last_seq) return known;
  const tools = Object.fromEntries(run.tools.map((tool) => [tool.tool_id, tool]));
  const { input, generation } = run;
  return { ...(known ?? newRun(run.run_id)), input, generation, seq: run.last_seq, parts: run.parts, tools };
}

const newRun = (id) => ({
  id,
  seq: 0,
  /** The prompt; null when it is only known from its row. */
  input: null,
  generation: null,
  /** `{type: 'text' | 'reasoning', text}` or `{type: 'tool', tool_id}`, in order. */
  parts: [],
  tools: {},
  todos: null,
  status: null,
  /** Payload of its `message.complete`. */
  end: null,
  /** Rows that are asked for from here on have it. */
  endedAt: null,
});

/** Whether nothing more of a run is to be shown live: its rows are there. */
const isOver = (open, runId) =>
  hasOutputRow(open.rows, runId) || (open.endedRuns.includes(runId) && !open.runs.some((one) => one.id === runId));

const hasBegun = (open, runId) => open.endedRuns.includes(runId) || open.runs.some((one) => one.id === runId);

const hasOutputRow = (rows, runId) => {
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    if (rows[at].run_id === runId && rows[at].role !== 'user') return true;
  }
  return false;
};

function applyRunEvent(open, event) {
  const { type, run_id: runId, seq, payload } = event;
  if (open.lost) return open;
  if (seq === undefined) {
    // A prompt that was cancelled while it waited: it is part of no run.
    return { ...open, queue: open.queue.filter((one) => one.run_id !== runId) };
  }
  if (isOver(open, runId)) return open;
  const known = open.runs.find((one) => one.id === runId);
  const run = known ?? newRun(runId);
  if (isGap(run, type, seq)) return { ...open, lost: true, cursor: null };
  const changed = applyToRun({ ...run, seq }, type, payload);
  const runs = known ? open.runs.map((one) => (one === known ? changed : one)) : [...open.runs, changed];
  const next = { ...open, runs };
  if (type === 'run.start') return started(next, changed, payload);
  if (type === 'message.complete') return ended(next, changed, payload);
  return next;
}

/** What may come as one for several. */
const DELTAS = new Set(['message.delta', 'reasoning.delta', 'tool.output']);

/**
 * Whether events are missing before this one. A delta may jump: for a reader that lags the server joins neighbouring
 * deltas into one, with the place of the last.
 */
const isGap = (run, type, seq) => seq !== run.seq + 1 && (run.seq === 0 || !DELTAS.has(type));

function started(open, run, payload) {
  const session = open.session && {
    ...open.session,
    status: 'running',
    run: { run_id: run.id, admission_id: payload.admission_id, started_at: payload.timestamp },
  };
  return { ...open, session, queue: open.queue.filter((one) => one.run_id !== run.id) };
}

function ended(open, run, payload) {
  const wanted = open.wanted + 1;
  const next = {
    ...open,
    wanted,
    runs: open.runs.map((one) => (one === run ? { ...run, end: payload, endedAt: wanted, status: null } : one)),
    endedRuns: [...open.endedRuns, run.id].slice(-200),
    requests: open.requests.filter((one) => one.run_id !== run.id),
  };
  return { ...next, session: withoutEndedRun(next, open.session) };
}

/** A session as told, unless it names a run as running that has ended already. */
function withoutEndedRun(open, session) {
  if (!session?.run || !open.endedRuns.includes(session.run.run_id)) return session;
  return { ...session, run: null, status: session.queue_length > 0 ? 'queued' : 'idle' };
}

/** Characters of a running tool's output that are kept; a snapshot has as many. */
const MOST_OUTPUT = 64 * 1024;

function applyToRun(run, type, payload) {
  switch (type) {
    case 'run.start':
      return { ...run, input: payload.input, generation: payload.generation };
    case 'message.start':
      return run.parts.length ? { ...run, breakNext: true } : run;
    case 'message.delta':
      return grow(run, 'text', payload.text);
    case 'reasoning.delta':
      return grow(run, 'reasoning', payload.text);
    case 'tool.start': {
      const { tool_id } = payload;
      return {
        ...run,
        parts: [...run.parts, { type: 'tool', tool_id }],
        tools: { ...run.tools, [tool_id]: payload },
      };
    }
    case 'tool.output': {
      const known = run.tools[payload.tool_id];
      if (!known) return run;
      const output = ((known.output ?? '') + payload.text).slice(-MOST_OUTPUT);
      return { ...run, tools: { ...run.tools, [payload.tool_id]: { ...known, output } } };
    }
    case 'tool.complete': {
      const tool = { ...run.tools[payload.tool_id], ...payload };
      return { ...run, tools: { ...run.tools, [payload.tool_id]: tool } };
    }
    case 'todo.updated':
      return { ...run, todos: payload.todos };
    case 'status':
      return { ...run, status: payload.text };
    default:
      return run;
  }
}

function grow(run, type, text) {
  const last = run.parts.at(-1);
  const parts = run.parts.slice();
  if (last?.type === type && !run.breakNext) parts[parts.length - 1] = { ...last, text: last.text + text };
  else parts.push({ type, text });
  return { ...run, parts, breakNext: false, status: null };
}

// ---------------------------------------------------------------- rows

function rowsLoaded(open, { messages, has_more: hasMore, revision }) {
  const { loading } = open;
  if (!loading) return open;
  const merged = mergeRows(open, messages, hasMore);
  const next = {
    ...open,
    ...merged,
    rowsRevision: Math.max(revision, loading.revision),
    loaded: loading.token,
    loading: null,
  };
  const stays = (run) => !hasOutputRow(next.rows, run.id) && !(run.endedAt !== null && run.endedAt <= loading.token);
  const settled = next.runs.filter((run) => !stays(run));
  if (settled.length) {
    next.runs = next.runs.filter(stays);
    next.endedRuns = [...new Set([...next.endedRuns, ...settled.map((run) => run.id)])].slice(-200);
    next.session = withoutEndedRun(next, next.session);
  }
  return reconsider(next, loading.afterSnapshot);
}

/** The page is right about everything from its first row on; what is older stays. Rows that did not change stay the same objects. */
function mergeRows(open, page, hasMore) {
  const old = new Map(open.rows.map((row) => [row.id, row]));
  const same = (row) => {
    const before = old.get(row.id);
    return before && JSON.stringify(before) === JSON.stringify(row) ? before : row;
  };
  const rows = page.map(same);
  const at = rows.length ? open.rows.findIndex((row) => row.id === rows[0].id) : -1;
  if (at > 0 && hasMore) return { rows: [...open.rows.slice(0, at), ...rows], hasOlder: open.hasOlder };
  return { rows, hasOlder: hasMore };
}

/** Asks for rows again when those that are there cannot be all. @param trusted they were asked for behind the snapshot */
function reconsider(open, trusted = false) {
  if (!open.snapshotSeen || open.loading || open.wanted > open.loaded) return open;
  const running = open.runs.find((run) => run.end === null);
  const newer = !running && (open.session?.revision ?? 0) > open.rowsRevision;
  return newer || (!trusted && (isCut(open, running) || lacksPrompt(open, running)))
    ? { ...open, wanted: open.wanted + 1 }
    : open;
}

/** The last row is a prompt of a run that is not running: what it produced may have been hidden when rows were read. */
function isCut(open, running) {
  const last = open.rows.at(-1);
  return last?.role === 'user' && last.run_id !== undefined && last.run_id !== running?.id;
}

const lacksPrompt = (open, running) =>
  running !== undefined &&
  running.seq > 0 &&
  running.input === null &&
  !open.rows.some((row) => row.run_id === running.id);

// ---------------------------------------------------------------- what to show

/** The running turn of a conversation, or null. */
export const runningRun = (open) => open?.runs.find((run) => run.end === null) ?? null;

/** Whether there is something to stop. */
export const isBusy = (open) =>
  open !== null && (runningRun(open) !== null || ['running', 'waiting'].includes(open.session?.status));

/**
 * The conversation as a list of things to show, each once, oldest first:
 * `{key, kind: 'row', row, results}` (a stored row; results are the tool rows that its calls led to),
 * `{key, kind: 'prompt', text}` and `{key, kind: 'live', run, requests}`.
 */
export function displayItems(open) {
  const live = new Map(open.runs.map((run) => [run.id, run]));
  const results = new Map();
  const lastOf = new Map();
  for (const row of open.rows) {
    if (row.role === 'tool' && row.tool_call_id) results.set(`${row.run_id}/${row.tool_call_id}`, row);
    if (row.run_id) lastOf.set(row.run_id, row);
  }
  const shown = new Set();
  const items = [];
  for (const row of open.rows) {
    if (row.role === 'system') continue;
    const own = [];
    for (const call of row.tool_calls ?? []) {
      const key = `${row.run_id}/${call.id}`;
      shown.add(key);
      own.push(results.get(key) ?? null);
    }
    if (row.role === 'tool' && shown.has(`${row.run_id}/${row.tool_call_id}`)) continue;
    items.push({ key: row.id, kind: 'row', row, results: own });
    const run = row.run_id && lastOf.get(row.run_id) === row ? live.get(row.run_id) : undefined;
    if (run) {
      items.push(liveItem(open, run));
      live.delete(run.id);
    }
  }
  for (const run of live.values()) {
    if (run.input !== null) items.push({ key: `${run.id}.0`, kind: 'prompt', text: run.input });
    items.push(liveItem(open, run));
  }
  return items;
}

const liveItem = (open, run) => ({
  key: `live:${run.id}`,
  kind: 'live',
  run,
  requests: open.requests.filter((request) => request.run_id === run.id),
});

/** A store over `reduce`: `get`, `dispatch`, `subscribe`. */
export function createStore(state = initialState()) {
  const listeners = new Set();
  return {
    get: () => state,
    dispatch(action) {
      const next = reduce(state, action);
      if (next === state) return;
      state = next;
      for (const tell of listeners) tell(state);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
