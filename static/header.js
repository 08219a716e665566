/** The head of the conversation: its title, its model, and whether the page is connected. */
import { h, iconButton, setText } from './dom.js';
import { titleOf } from './session-list.js';

/**
 * @param actions `menu()`, `rename(id, title)`, `chooseModel(id)`, `refreshModels()`, `retry()`
 * @returns `render(state, chosen)`, where `chosen` is the model for a conversation that does not exist yet
 */
export function createHeader({ root, banner, actions }) {
  const menu = iconButton('menu', 'Conversations', {
    onclick: () => actions.menu(),
    'aria-controls': 'sidebar',
    'aria-expanded': 'false',
  });
  menu.classList.add('menu');
  const title = h('h1.title', {});
  const rename = iconButton('pencil', 'Rename this conversation', { onclick: startRename });
  const select = h('select', {
    'aria-label': 'Model',
    onchange: () => actions.chooseModel(select.value === '' ? null : select.value),
    onfocus: () => actions.refreshModels(),
  });
  const word = h('span');
  const pill = h('span.connection', { role: 'status' }, h('i', { 'aria-hidden': 'true' }), word);
  const modelMenu = h('label.model', {}, select);
  root.append(menu, h('div.title-box', {}, title, rename), modelMenu, pill);

  const sentence = h('span');
  const retry = h('button', { type: 'button', onclick: () => actions.retry() }, 'Try now');
  banner.append(sentence, retry);

  let open = null;
  let connection = { kind: 'connecting' };
  let modelsKey = '';

  function startRename() {
    const { sessionId, session } = open;
    const input = h('input.rename', { value: session?.title ?? '', maxlength: '500', 'aria-label': 'Title' });
    let done = false;
    const finish = (save) => {
      if (done) return;
      done = true;
      const typed = input.value.trim();
      input.replaceWith(title);
      if (save && typed !== (session?.title ?? '')) void actions.rename(sessionId, typed === '' ? null : typed);
    };
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.isComposing) finish(true);
      if (event.key === 'Escape') finish(false);
    });
    input.addEventListener('blur', () => finish(true));
    title.replaceWith(input);
    input.select();
  }

  function renderModels(models, chosen) {
    const key = JSON.stringify([models, chosen]);
    if (key === modelsKey) return;
    modelsKey = key;
    const isDefault = !chosen || chosen === models?.default;
    const options = [h('option', { value: '' }, defaultLabel(models)), ...modelOptions(models)];
    if (!isDefault && !models?.models.some((model) => model.id === chosen)) {
      options.push(h('option', { value: chosen }, `${chosen} (not available)`));
    }
    select.replaceChildren(...options);
    select.value = isDefault ? '' : chosen;
    select.title = (isDefault ? models?.default : chosen) ?? '';
    select.disabled = models === null;
  }

  function renderConnection() {
    const seconds = Math.max(0, Math.ceil(((connection.at ?? 0) - Date.now()) / 1000));
    const when = seconds > 0 ? ` in ${seconds} s.` : '…';
    const down = connection.kind === 'reconnecting' || connection.kind === 'offline';
    const words = { live: 'live', connecting: 'connecting…', reconnecting: 'reconnecting…', offline: 'offline' };
    pill.dataset.state = connection.kind;
    setText(word, words[connection.kind]);
    banner.hidden = !down;
    if (!down) return;
    const isOffline = navigator.onLine === false;
    setText(sentence, isOffline ? 'This device is offline.' : `Connection interrupted. Reconnecting${when}`);
  }
  setInterval(renderConnection, 1000);

  return {
    render(state, chosen) {
      open = state.open;
      const name = nameOf(open);
      modelMenu.hidden = Boolean(open?.gone) || (open?.session?.flags?.includes('foreign') ?? false);
      setText(title, name);
      const isForeign = open?.session?.flags?.includes('foreign') ?? false;
      rename.hidden = open === null || open.gone !== null || open.session === null || isForeign;
      renderModels(state.models, open === null ? chosen : (open.session?.model ?? null));
      connection = state.connection;
      renderConnection();
      document.title = open === null ? 'Turnkeep' : `${name} · Turnkeep`;
    },
    menuOpen: (isOpen) => menu.setAttribute('aria-expanded', String(isOpen)),
    focusMenu: () => menu.focus(),
  };
}

function nameOf(open) {
  if (open === null) return 'New conversation';
  if (open.gone === null) return titleOf(open.session);
  return open.gone === 'deleted' ? 'Deleted conversation' : 'No conversation';
}

function defaultLabel(models) {
  if (models === null) return 'Default model';
  const model = models.models.find((one) => one.id === models.default);
  if (!model) return models.default === '' ? 'No model' : `${models.default} · default`;
  return `${model.label}${model.source === 'builtin' ? '' : ` (${model.provider})`} · default`;
}

const TROUBLE = { unreachable: 'cannot be reached', loading: 'loading', unauthorized: 'not authorized' };

/** All models but the default, by provider, and in place of what a provider does not say why it does not. */
function modelOptions(models) {
  const options = [];
  const groups = new Map();
  const group = (name) => {
    if (!groups.has(name)) groups.set(name, h('optgroup', { label: name }));
    return groups.get(name);
  };
  for (const { id, label, provider, source } of models?.models ?? []) {
    if (id === models.default) continue;
    const option = h('option', { value: id }, label);
    if (source === 'builtin') options.push(option);
    else group(provider).append(option);
  }
  for (const { name, status, error } of models?.providers ?? []) {
    if (status === 'ok') continue;
    const reason = `${TROUBLE[status] ?? status}${error ? `: ${error}` : ''}`;
    group(name).append(h('option', { disabled: true, value: `${name} ${status}` }, `${name}: ${reason}`));
  }
  return [...options, ...groups.values()];
}
