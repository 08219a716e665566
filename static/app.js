/**
 * The start of the page: makes its parts and binds them together. Events go into the store, the store is drawn at most
 * once per frame, and what the store wants (rows, the list, a stream anew) is fetched here.
 */
import { createApi } from './api.js';
import { createAttachmentLinks } from './attachments.js';
import { createComposer } from './composer.js';
import { createConversation } from './conversation.js';
import { createNotices } from './dialog.js';
import { h } from './dom.js';
import { createHeader } from './header.js';
import { createLogin } from './login.js';
import { createSessionList } from './session-list.js';
import { createStore, runningRun } from './store.js';
import { createStream } from './stream.js';
import { createWelcome } from './welcome.js';

const ROWS = 100;
const PAGE = 50;
/** With no more titles than this that match, the text of conversations is searched as well. */
const FEW_TITLES = 5;
const HITS = 20;
/** When to look again at a session that the server will not stream now, in milliseconds. */
const UNAVAILABLE_MS = 5_000;

const byId = (id) => document.getElementById(id);
const app = byId('app');
const notice = createNotices(byId('notices'));
const store = createStore();
const { dispatch } = store;
const state = () => store.get();
const api = createApi({ onUnauthorized: () => dispatch({ type: 'auth', auth: 'needed' }) });

/** The model for a conversation that does not exist yet. */
let chosenModel = null;

/** Conversations that are being deleted from here, or have been: their messages are not asked for. */
const removing = new Set();

// ---------------------------------------------------------------- the stream

const stream = createStream({
  address() {
    const { open } = state();
    if (open === null || open.gone !== null) return 'api/events';
    const cursor = open.cursor === null ? '' : `@${open.cursor}`;
    return `api/events?session=${encodeURIComponent(open.sessionId + cursor)}`;
  },
  onFrame({ id, data }) {
    const event = JSON.parse(data);
    const at = id?.indexOf('@') ?? -1;
    dispatch({ type: 'event', event, cursor: at < 0 ? null : id.slice(at + 1) });
  },
  onState: (connection) => dispatch({ type: 'connection', connection }),
  onUnauthorized: () => dispatch({ type: 'auth', auth: 'needed' }),
});

// ---------------------------------------------------------------- what the store wants

async function loadRows() {
  const { open } = state();
  if (open === null || open.gone !== null || open.loading || open.wanted <= open.loaded) return;
  const { sessionId } = open;
  if (removing.has(sessionId)) return;
  dispatch({ type: 'rows.requested', sessionId });
  try {
    const page = await api.get(`api/sessions/${sessionId}/messages?limit=${ROWS}`);
    dispatch({ type: 'rows.loaded', sessionId, ...page });
  } catch (failure) {
    if (failure.status === 404 || failure.status === 400) {
      const reason = failure.status === 404 ? null : failure.message;
      dispatch({ type: 'session.gone', sessionId, reason });
      return;
    }
    // Tried again when the stream is back, or in a while.
    setTimeout(() => dispatch({ type: 'rows.failed', sessionId }), 2000);
  }
}

async function loadList() {
  const { list, auth } = state();
  if (list.loading || list.wanted <= list.loaded || auth !== 'ok') return;
  const { q } = list;
  dispatch({ type: 'list.requested' });
  const limit = Math.max(PAGE, Math.min(list.sessions.length, 1000));
  await fetchList(q, `limit=${limit}`, false);
}

async function fetchList(q, query, append) {
  try {
    const search = q === '' ? '' : `&q=${encodeURIComponent(q)}`;
    const page = await api.get(`api/sessions?${query}${search}`);
    dispatch({ type: 'list.loaded', q, append, ...page });
  } catch {
    setTimeout(() => dispatch({ type: 'list.failed', q }), 2000);
    return;
  }
  if (!append && q !== '') await loadHits(q);
}

/** Looks into the text of conversations when their titles tell little. */
async function loadHits(q) {
  const { list } = state();
  if (list.q !== q) return;
  let hits = [];
  if (list.sessions.length <= FEW_TITLES) {
    const answer = await api.get(`api/search?q=${encodeURIComponent(q)}&limit=${HITS}`).catch(() => null);
    hits = answer?.hits ?? null;
  }
  dispatch({ type: 'hits.loaded', q, hits });
}

async function loadMore() {
  const { list } = state();
  if (list.next === null || list.loading) return;
  dispatch({ type: 'list.requested' });
  await fetchList(list.q, `limit=${PAGE}&cursor=${encodeURIComponent(list.next)}`, true);
}

async function loadModels() {
  try {
    dispatch({ type: 'models', models: await api.get('api/models') });
  } catch {
    // The list stays as it was; it is asked for again when it is opened.
  }
}

// ---------------------------------------------------------------- what a person does

/** Does something and tells when it did not work. Resolves with the answer, or null. */
async function attempt(work) {
  try {
    return await work();
  } catch (failure) {
    notice(failure.message);
    return null;
  }
}

async function rename(sessionId, title) {
  const answer = await attempt(() => api.patch(`api/sessions/${sessionId}`, { title }));
  if (answer) dispatch({ type: 'session.known', sessionId, session: answer.session });
}

async function remove(sessionId) {
  removing.add(sessionId);
  const removed = await attempt(async () => {
    await api.remove(`api/sessions/${sessionId}?stop=1`);
    return true;
  });
  if (!removed) {
    removing.delete(sessionId);
    void loadRows();
    return;
  }
  const { activeElement } = document;
  const isFocusLost =
    !activeElement?.closest('main, aside, dialog') || activeElement.closest(`[data-session="${sessionId}"]`);
  if (state().open?.sessionId === sessionId) {
    location.hash = '#/';
    route();
  }
  if (!isFocusLost) return;
  if (app.classList.contains('menu-open')) focusMenu();
  else focusMessage();
}

/** Goes to the message box, as it is to be now. */
function focusMessage() {
  draw();
  composer.focus();
}

function startNew() {
  location.hash = '#/';
  route();
  focusMessage();
}

async function chooseModel(model) {
  const { open } = state();
  if (open === null) {
    chosenModel = model;
    draw();
    return;
  }
  const answer = await attempt(() => api.patch(`api/sessions/${open.sessionId}`, { model }));
  if (answer) dispatch({ type: 'session.known', sessionId: open.sessionId, session: answer.session });
  else draw();
}

async function loadOlder() {
  const { open } = state();
  const before = open?.rows[0]?.id;
  if (before === undefined) return;
  const address = `api/sessions/${open.sessionId}/messages?limit=${ROWS}&before=${encodeURIComponent(before)}`;
  const page = await attempt(() => api.get(address));
  if (page) dispatch({ type: 'older.loaded', sessionId: open.sessionId, before, ...page });
}

/** Resolves with a sentence when the answer was not taken, else null. */
async function answerRequest(requestId, body) {
  const { sessionId } = state().open;
  try {
    const { status } = await api.post(`api/sessions/${sessionId}/requests/${requestId}`, body);
    dispatch({ type: 'request.answered', sessionId, id: requestId });
    if (status === 'expired') notice('This question was answered elsewhere, or is no longer open.');
    return null;
  } catch (failure) {
    return failure.message;
  }
}

const sessionInHash = () => /^#\/s\/([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1] ?? null;

function route() {
  const sessionId = sessionInHash();
  showMenu(false);
  if (sessionId === (state().open?.sessionId ?? null)) return;
  dispatch({ type: 'session.open', sessionId });
  if (state().auth === 'ok') stream.restart();
}

function showMenu(isOpen) {
  app.classList.toggle('menu-open', isOpen);
  byId('backdrop').hidden = !isOpen;
  header.menuOpen(isOpen);
  if (isOpen) focusMenu();
}

function focusMenu() {
  byId('list-tools').querySelector('button').focus();
}

// ---------------------------------------------------------------- the parts

const welcome = createWelcome({ onExample: (prompt) => composer.sendText(prompt) });
const header = createHeader({
  root: byId('header'),
  banner: byId('banner'),
  actions: {
    menu: () => showMenu(true),
    rename,
    chooseModel,
    refreshModels: loadModels,
    retry: () => stream.retryNow(),
  },
});
const sessionList = createSessionList({
  tools: byId('list-tools'),
  root: byId('list'),
  actions: {
    search: (q) => dispatch({ type: 'list.search', q }),
    more: loadMore,
    rename,
    remove,
    create: startNew,
  },
});
const conversation = createConversation({
  root: byId('conversation'),
  scroll: byId('scroll'),
  welcome: welcome.element,
  actions: {
    older: loadOlder,
    again: (text) => composer.offer(text),
    answer: answerRequest,
    create: startNew,
    attached: createAttachmentLinks(api),
  },
});
const composer = createComposer({
  root: byId('composer'),
  api,
  actions: {
    created(session) {
      location.hash = `#/s/${session.session_id}`;
      route();
      dispatch({ type: 'session.known', sessionId: session.session_id, session });
    },
    model: () => chosenModel,
    sent: () => conversation.follow(),
    cancelled: (sessionId, id) => dispatch({ type: 'prompt.cancelled', sessionId, admission_id: id }),
    notice,
  },
});
const login = createLogin({ root: byId('login'), api, onDone: begin });
const logout = h(
  'button.quiet',
  {
    type: 'button',
    hidden: true,
    onclick: async () => {
      await attempt(() => api.post('api/auth/logout'));
      location.reload();
    },
  },
  'Log out',
);
byId('sidebar-foot').append(h('a.quiet', { href: 'docs', target: '_blank', rel: 'noopener' }, 'API'), logout);

byId('backdrop').addEventListener('click', () => showMenu(false));
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !app.classList.contains('menu-open')) return;
  showMenu(false);
  header.focusMenu();
});
window.addEventListener('hashchange', route);
setInterval(() => sessionList.render(state()), 60_000);

// ---------------------------------------------------------------- drawing

let frame = 0;

function draw() {
  frame = 0;
  const now = state();
  const loggedOut = now.auth === 'needed';
  app.hidden = now.auth !== 'ok';
  if (loggedOut) login.show();
  else login.hide();
  if (now.auth !== 'ok') return;
  sessionList.render(now);
  header.render(now, chosenModel);
  welcome.render(now.models, now.open === null ? chosenModel : (now.open.session?.model ?? null));
  conversation.render(now.open);
  composer.render(now.open);
}

/** What changed, for those who listen instead of looking: the ends of turns and questions, not each word. */
function announce(before, now) {
  const say = (text) => {
    byId('announcer').textContent = text;
  };
  if (before.connection.kind === 'live' && now.connection.kind === 'reconnecting') say('Connection interrupted.');
  if (before.connection.kind === 'reconnecting' && now.connection.kind === 'live') say('Connected again.');
  if (!before.open || before.open.sessionId !== now.open?.sessionId) return;
  const run = runningRun(before.open);
  const end = run && now.open.runs.find((one) => one.id === run.id)?.end;
  const words = {
    complete: 'The answer is complete.',
    interrupted: 'Response interrupted.',
    error: 'The turn failed.',
  };
  if (end) say(words[end.status] ?? '');
  if (now.open.requests.length > before.open.requests.length) say('The agent waits for your answer.');
}

let drawn = state();
let unavailableTimer = null;
/** Whether the connection was lost and is not back yet. */
let wasDown = false;

function followConnection({ kind }) {
  if (kind === 'reconnecting' || kind === 'offline') wasDown = true;
  if (kind !== 'live' || !wasDown) return;
  wasDown = false;
  composer.reconnected();
}

store.subscribe((now) => {
  announce(drawn, now);
  followConnection(now.connection);
  const previous = drawn;
  drawn = now;
  if (frame === 0) frame = requestAnimationFrame(draw);
  if (now.auth === 'needed') {
    if (previous.auth !== 'needed') stream.stop();
    return;
  }
  if (now.auth !== 'ok') return;
  if (now.open?.lost && !previous.open?.lost) queueMicrotask(() => stream.restart());
  if (now.open?.unavailable && now.open.unavailable !== previous.open?.unavailable) {
    notice('Another process runs this conversation now. What it says appears here when its turn has ended.');
  }
  if (now.open?.unavailable && unavailableTimer === null) {
    unavailableTimer = setTimeout(() => {
      unavailableTimer = null;
      if (state().open?.unavailable) stream.restart();
    }, UNAVAILABLE_MS);
  }
  void loadRows();
  void loadList();
});

/** Finds out whether a credential is needed, then goes live. */
async function begin() {
  const status = await api.get('api/auth/status').catch(() => null);
  if (status?.auth_required && !status.logged_in) {
    dispatch({ type: 'auth', auth: 'needed' });
    return;
  }
  logout.hidden = !status?.auth_required;
  if (state().open === null && sessionInHash() !== null) dispatch({ type: 'session.open', sessionId: sessionInHash() });
  dispatch({ type: 'auth', auth: 'ok' });
  // On a touch screen this would open the keyboard over the page.
  if (!window.matchMedia('(pointer: coarse)').matches) focusMessage();
  stream.restart();
  void loadModels();
  void loadRows();
  void loadList();
}

void begin();
