/**
 * The open conversation, as a pure function of what happened to it: no clock, no network, no document.
 *
 * It has two sources: rows (what the server has stored, by GET) and runs (what the stream tells of turns that are not
 * stored yet). A turn is shown from one of them, never from both: as soon as the rows of a run are there, its live view
 * goes. Events of a run are applied once and in order, by their `seq`.
 *
 * What stands away from the end is a piece of its own (`past`, past-store.js): the rows always reach to the end.
 *
 * Rows are fetched again whenever `wanted` is greater than `loaded`; whoever fetches says so first (`rows.requested`).
 */

import { newerLoaded, olderLoaded, pieceOf, trimmed } from './past-store.js';
import { applyToRun, isGap, newRun, runFromSnapshot } from './runs-store.js';

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
  /** A piece of the conversation away from its end that is looked at now, `{rows, hasOlder}`; null at the end. */
  past: null,
  /** Why the rows are not there, in words, while nothing is shown instead. */
  trouble: null,
  wanted: 1,
  loaded: 0,
  loading: null,
});

const goneFor = (open, reason) => ({ ...open, gone: reason, runs: [], requests: [], queue: [] });

/** Why the server has no such conversation: what was never seen here may never have been. */
const absence = (open) => (open.session === null && open.loaded === 0 ? 'missing' : 'deleted');

/** The next state of the conversation that an action is about. */
export function reduceConversation(open, action) {
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
    case 'rows.troubled':
      return { ...open, trouble: action.message };
    case 'older.loaded':
      return olderLoaded(open, action);
    case 'newer.loaded':
      return newerLoaded(open, action);
    case 'past.opened':
      return { ...open, past: pieceOf(action.messages, action.has_older) };
    case 'past.left':
      return open.past === null ? open : { ...open, past: null };
    case 'rows.trimmed':
      return trimmed(open);
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

/** The running turn of a conversation, or null. */
export const runningRun = (open) => open?.runs.find((run) => run.end === null) ?? null;

/** Whether there is something to stop. */
export const isBusy = (open) =>
  open !== null && (runningRun(open) !== null || ['running', 'waiting'].includes(open.session?.status));

// ---------------------------------------------------------------- events

/** The conversation after an event of its stream. @param cursor where the stream is to go on from now, or null */
export function applyEvent(open, event, cursor) {
  if (isRepeat(open, event)) return open;
  const next = isRunEvent(event) ? applyRunEvent(open, event) : applySessionEvent(open, event);
  if (cursor === null || next.lost || next.cursor === cursor) return next;
  return { ...next, cursor };
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
    past: null,
    cursor: null,
    lost: false,
    snapshotSeen: false,
    unavailable: SNAPSHOT_FOLLOWS.has(reason) ? null : reason,
    wanted: open.wanted + 1,
  };
}

function applySnapshot(open, { session, run, queue, open_requests: requests }) {
  const running =
    run === null || isOver(open, run.run_id)
      ? null
      : runFromSnapshot(
          run,
          open.runs.find((one) => one.id === run.run_id),
        );
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
    trouble: null,
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
  const known = open.rows.length ? page.findIndex((row) => row.id === open.rows[0].id) : -1;
  // What is older than the first that was here comes when it is scrolled to.
  if (known > 0) return { rows: page.slice(known).map(same), hasOlder: true };
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
