/**
 * What the page knows, as a pure function of what happened: no clock, no network, no document. The list and the open
 * conversation are parts of their own: list-store.js and conversation-store.js.
 */
import { applyEvent, openConversation, reduceConversation } from './conversation-store.js';
import { emptyList, reduceList } from './list-store.js';

/** The state before anything is known. */
export const initialState = () => ({
  auth: 'unknown',
  connection: { kind: 'connecting' },
  list: emptyList(''),
  models: null,
  open: null,
});

/**
 * The next state.
 * @param state the state so far; never changed
 * @param action what happened; those of the list begin with `list.` or `hits.`, those of a conversation name its `sessionId`
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
    case 'event':
      return reduceEvent(state, action);
    default:
      return action.sessionId === undefined
        ? withList(state, action)
        : withOpen(state, action.sessionId, (open) => reduceConversation(open, action));
  }
}

function reduceEvent(state, { event, cursor = null }) {
  if (event.type === 'sessions.changed') return withList(state, { ...event.payload, type: 'sessions.changed' });
  if (event.type === 'heartbeat') return state;
  return withOpen(state, event.session_id, (open) => applyEvent(open, event, cursor));
}

function withList(state, action) {
  const list = reduceList(state.list, action);
  return list === state.list ? state : { ...state, list };
}

/** Changes the open conversation, if it is the one that is meant: answers for one that was left are dropped. */
function withOpen(state, sessionId, change) {
  if (state.open?.sessionId !== sessionId) return state;
  const open = change(state.open);
  return open === state.open ? state : { ...state, open };
}
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
