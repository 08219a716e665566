/**
 * The start of the page: makes its parts and binds them together. Events go into the store, the store is drawn at most
 * once per frame, and what the store wants (rows, the list, a stream anew) is fetched here.
 */
import { createApi } from './api.js';
import { createAttachmentViews } from './attachments.js';
import { createChoices } from './choices.js';
import { createComposer } from './composer.js';
import { createConnection } from './connection.js';
import { createConversation } from './conversation.js';
import { createConversationActions } from './conversation-actions.js';
import { createConversationLoading } from './conversation-loading.js';
import { runningRun } from './conversation-store.js';
import { closeDialogs, createNotices } from './dialog.js';
import { iconButton } from './dom.js';
import { createHeader } from './header.js';
import { createKeyboard } from './keyboard.js';
import { createListActions } from './list-actions.js';
import { createListLoading } from './list-loading.js';
import { createLogin } from './login.js';
import { createNotifications } from './notifications.js';
import { createPageCommands } from './page-commands.js';
import { createSessionList } from './session-list.js';
import { createSettings, hasTouchOnly } from './settings.js';
import { createSettingsDialog } from './settings-dialog.js';
import { browserStorage } from './storage.js';
import { createStore } from './store.js';
import { createStream } from './stream.js';
import { followUnread } from './unread.js';
import { createUsage } from './usage.js';
import { createWelcome } from './welcome.js';

/** When to look again at a session that the server will not stream now, in milliseconds. */
const UNAVAILABLE_MS = 5_000;

const byId = (id) => document.getElementById(id);
const app = byId('app');
const notice = createNotices(byId('notices'));
const store = createStore();
const { dispatch } = store;
const state = () => store.get();
const api = createApi({ onUnauthorized: () => dispatch({ type: 'auth', auth: 'needed' }) });

const settings = createSettings();

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
    if (event.type !== 'sessions.changed') return;
    void notifications.changed(event.payload);
    if (event.payload.reason === 'settings') serverSettingsChanged();
    if (event.payload.server) connection.met(event.payload.server);
  },
  onState: (connection) => dispatch({ type: 'connection', connection }),
  onUnauthorized: () => dispatch({ type: 'auth', auth: 'needed' }),
  listensHidden: () => notifications.listensHidden(),
});

// ---------------------------------------------------------------- what the store wants

async function loadModels() {
  try {
    dispatch({ type: 'models', models: await api.get('api/models') });
  } catch {
    // The list stays as it was; it is asked for again when it is opened.
  }
}

function serverSettingsChanged() {
  settingsDialog.serverChanged();
  void loadModels();
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

/** Goes to the message box, as it is to be now. */
function focusMessage() {
  draw();
  composer.focus();
}

function startNew() {
  // What is made now is to be seen in the list.
  sessionList.clearSearch();
  location.hash = '#/';
  route();
  focusMessage();
}

/** What the address names: a conversation, and maybe a message in it. */
function placeInHash() {
  const [, sessionId = null, message] = /^#\/s\/([A-Za-z0-9_-]+)(?:\/([^/]+))?$/.exec(location.hash) ?? [];
  return { sessionId, messageId: message === undefined ? null : decoded(message) };
}

/** @returns null for an address that somebody cut or mistyped */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function route() {
  const { sessionId, messageId } = placeInHash();
  showMenu(false);
  if (sessionId !== (state().open?.sessionId ?? null)) {
    dispatch({ type: 'session.open', sessionId });
    if (state().auth === 'ok') stream.restart();
  }
  if (messageId === null) return;
  // So that the same hit leads there again.
  history.replaceState(null, '', `#/s/${sessionId}`);
  draw();
  conversation.showMessage(messageId);
}

const goTo = (sessionId) => {
  location.hash = `#/s/${sessionId}`;
  route();
};

/** Goes away from a conversation, if it is open. @returns what goes back to it, if nothing else was opened meanwhile */
function leave(sessionId) {
  if (state().open?.sessionId !== sessionId) return () => {};
  location.hash = '#/';
  route();
  return () => state().open === null && goTo(sessionId);
}

function showMenu(isOpen) {
  app.classList.toggle('menu-open', isOpen);
  byId('backdrop').hidden = !isOpen;
  header.menuOpen(isOpen);
  if (isOpen) focusMenu();
}

function focusSearch() {
  if (window.matchMedia('(max-width: 760px)').matches) showMenu(true);
  byId('list-tools').querySelector('input[type="search"]').focus();
}

/** Opens the conversation that is so many places further down the list. */
function step(by) {
  const { list, open } = state();
  const at = list.sessions.findIndex((one) => one.session_id === open?.sessionId);
  const next = list.sessions[at < 0 ? 0 : at + by];
  if (next) goTo(next.session_id);
}

function focusMenu() {
  byId('list-tools').querySelector('button').focus();
}

// ---------------------------------------------------------------- the parts

const rowLoading = createConversationLoading({ api, store, notice });
const listLoading = createListLoading({ api, store });
const listActions = createListActions({
  api,
  store,
  attempt,
  notice,
  open: goTo,
  leave,
  loadProjects: listLoading.loadProjects,
});

/** What the server says of a session in its answer. */
const known = (session) => dispatch({ type: 'session.known', sessionId: session.session_id, session });

const choices = createChoices({ api, store, actions: { known, refreshModels: loadModels } });
const welcome = createWelcome({
  onExample: (prompt) => composer.sendText(prompt),
  async onUse(model) {
    // Who may not choose for the whole server chooses for the next conversation.
    if (access?.scope !== 'admin') {
      const refused = await choices.chooseModel(model);
      if (refused) notice(refused);
    } else if (await attempt(() => api.patch('api/settings', { default_model: model }))) await loadModels();
    focusMessage();
  },
});
const connection = createConnection({ banner: byId('banner'), actions: { retry: () => stream.retryNow() } });
const header = createHeader({
  root: byId('header'),
  pill: connection.pill,
  actions: { menu: () => showMenu(true), rename: listActions.rename },
});
const usage = createUsage();
connection.pill.before(usage.element);
const notifications = createNotifications({
  root: byId('notices'),
  settings,
  actions: { open: goTo, sessions: () => state().list.sessions, wake: () => stream.wake() },
});
const sessionList = createSessionList({
  tools: byId('list-tools'),
  root: byId('list'),
  side: byId('sidebar'),
  actions: {
    ...listActions,
    more: listLoading.more,
    create: startNew,
    lost: () => queueMicrotask(app.classList.contains('menu-open') ? focusMenu : focusMessage),
  },
});
const conversation = createConversation({
  root: byId('conversation'),
  scroll: byId('scroll'),
  welcome: welcome.element,
  actions: {
    ...rowLoading,
    ...createConversationActions({
      api,
      store,
      actions: {
        open: goTo,
        known,
        notice,
        follow: () => conversation.follow(),
        done() {
          conversation.follow();
          focusMessage();
        },
      },
    }),
    create: startNew,
    attached: createAttachmentViews(api),
    notice,
  },
});
const settingsDialog = createSettingsDialog({
  api,
  settings,
  notifications,
  actions: {
    models: () => state().models,
    server: connection.server,
    auth: () => access,
    authChanged: readAccess,
    modelsChanged: loadModels,
    logout: endLogin,
  },
});
const keyboard = createKeyboard({
  settings,
  actions: {
    create: startNew,
    message: focusMessage,
    next: () => step(1),
    previous: () => step(-1),
    search: focusSearch,
    settings: settingsDialog.open,
    stop: () => composer.stop(),
  },
});
const pageCommands = createPageCommands({
  api,
  settings,
  actions: {
    open: () => state().open,
    create(text) {
      startNew();
      if (text !== '') composer.offer(text);
    },
    openModel: choices.openModel,
    chooseModel: choices.chooseModel,
    help: () => keyboard.sheet(),
    follow: () => conversation.follow(),
    known,
    notice,
  },
});
const composer = createComposer({
  root: byId('composer'),
  scroll: byId('scroll'),
  main: document.querySelector('main'),
  api,
  pickers: choices.pickers,
  settings,
  actions: {
    created(session) {
      goTo(session.session_id);
      known(session);
    },
    /** What a conversation that is made now begins with: it belongs to the project that the list shows. */
    async next() {
      const { project } = state().list.view;
      return { ...(await choices.next()), project_id: project };
    },
    command: pageCommands.run,
    models: () => state().models,
    follow: () => conversation.follow(),
    cancelled: (sessionId, id) => dispatch({ type: 'prompt.cancelled', sessionId, admission_id: id }),
    notice,
  },
});
const login = createLogin({ root: byId('login'), api, onDone: begin });
/** What GET /api/auth/status said last, or null. */
let access = null;
byId('sidebar-foot').append(
  iconButton('gear', 'Settings', { onclick: settingsDialog.open }),
  iconButton('keyboard', 'Keys and commands', { onclick: keyboard.sheet }),
);

byId('backdrop').addEventListener('click', () => showMenu(false));
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || !app.classList.contains('menu-open')) return;
  // It closes the dialog alone.
  if (document.querySelector('dialog[open]')) return;
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
  header.render(now);
  connection.render(now.connection);
  choices.render(now);
  welcome.render(now.models, choices.modelOf(now));
  notifications.listed(now.list.sessions);
  notifications.opened(now.open?.sessionId ?? null);
  usage.render(now.open);
  conversation.render(now.open, isHeard(now.connection));
  composer.render(now.open);
}

/** Whether the page hears what happens: a connection that is being made for the first time is no trouble. */
const isHeard = ({ kind }) => kind === 'live' || kind === 'connecting';

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
/** Whether the connection may have been lost and is not back yet. Opening another conversation is no loss. */
let wasDown = false;
// Another network may cost an answer without a failure that is seen here.
for (const name of ['online', 'offline']) {
  window.addEventListener(name, () => {
    wasDown = true;
  });
}

function followConnection({ kind: before }, { kind }) {
  if (kind === 'reconnecting' || kind === 'offline' || kind === 'resting') wasDown = true;
  if (kind !== 'live' || before === 'live' || !wasDown) return;
  wasDown = false;
  composer.reconnected();
  void loadModels();
}

settings.subscribe(() => draw());
store.subscribe((now) => {
  announce(drawn, now);
  const previous = drawn;
  drawn = now;
  followConnection(previous.connection, now.connection);
  if (frame === 0) frame = requestAnimationFrame(draw);
  if (now.auth === 'needed') {
    if (previous.auth !== 'needed') {
      stream.stop();
      closeDialogs();
    }
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
  void rowLoading.load();
  void listLoading.load();
});
followUnread({ store, storage: browserStorage() });

async function endLogin() {
  // Anew, so that nothing of what was read is left in the page.
  if (await attempt(() => api.post('api/auth/logout'))) location.reload();
}

async function readAccess() {
  access = await api.get('api/auth/status').catch(() => access);
}

/** Finds out whether a credential is needed, then goes live. */
async function begin() {
  await readAccess();
  if (access?.auth_required && !access.logged_in) {
    dispatch({ type: 'auth', auth: 'needed' });
    return;
  }
  route();
  dispatch({ type: 'auth', auth: 'ok' });
  composer.reconnected();
  // On a touch screen this would open the keyboard over the page.
  if (!hasTouchOnly()) focusMessage();
  stream.restart();
  void loadModels();
  void rowLoading.load();
  void listLoading.load();
}

void begin();
