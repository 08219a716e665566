/**
 * The card that asks who is there: for the password or for a token, one at a time. What is typed stays until it was
 * right, and is nowhere but in its field. When a login ends elsewhere the page stands behind this card as it was.
 */
import { h, setText } from './dom.js';

/** How long until a server that did not answer is asked again, in milliseconds. */
const AGAIN_MS = 5_000;

/** What can be asked for. `user` is for password managers, which keep the two apart by it; `help` has a command in its middle. */
const WAYS = {
  password: {
    label: 'Password',
    user: 'turnkeep',
    help: ['Forgotten? At the machine of the server, ', 'turnkeep password', ' sets a new one.'],
    other: 'Use the password instead',
    wrong: 'That is not the password.',
  },
  token: {
    label: 'Access token',
    user: 'turnkeep token',
    help: ['One that was made in the settings or with ', 'turnkeep token create', ', or the value of TURNKEEP_TOKEN.'],
    other: 'Use an access token instead',
    wrong: 'That is not a token of this server, or not any more.',
  },
};

const UNREACHABLE = 'The server cannot be reached.';

/**
 * @param onDone called when the server lets this browser in
 * @returns `show()` and `hide()`
 */
export function createLogin({ root, api, onDone }) {
  const user = h('input', { type: 'text', name: 'username', autocomplete: 'username', hidden: true, readonly: true });
  const label = h('label', { for: 'credential' });
  const input = h('input', {
    id: 'credential',
    type: 'password',
    autocomplete: 'current-password',
    autocapitalize: 'off',
    spellcheck: 'false',
    required: true,
    'aria-describedby': 'login-help login-error',
  });
  const help = h('p.help', { id: 'login-help' });
  const error = h('p.error', { id: 'login-error', role: 'alert' });
  const button = h('button.primary', { type: 'submit' });
  const other = h('button.quiet', { type: 'button', onclick: () => choose(other.dataset.way, true) });
  const fields = h('div.login-fields', {}, user, label, input, help, error, button, other);
  const trouble = h('p', { role: 'status' });
  const form = h(
    'form.login-card',
    { method: 'post', onsubmit: submit },
    h('img', { src: 'favicon.svg', alt: '', width: '40', height: '40' }),
    h('h1', {}, 'Turnkeep'),
    trouble,
    fields,
  );
  root.append(h('main', {}, form));

  /** The way that is asked for; null before it is known. */
  let way = null;
  /** What there is to log in with. */
  let offered = { password: false, token: false };
  let busy = false;
  /** `Date.now()` before which the server wants no further try. */
  let waitUntil = 0;
  let timer = null;

  function draw() {
    const seconds = Math.max(0, Math.ceil((waitUntil - Date.now()) / 1000));
    button.disabled = busy || seconds > 0;
    setText(button, seconds > 0 ? `Wait ${seconds} s` : busy ? 'Logging in…' : 'Log in');
    const another = way === 'password' ? 'token' : 'password';
    other.hidden = !offered[another];
    other.dataset.way = another;
    setText(other, WAYS[another].other);
    clearTimeout(timer);
    if (root.hidden) return;
    if (seconds > 0) timer = setTimeout(draw, 250);
    else if (waitUntil > 0) {
      waitUntil = 0;
      setText(error, '');
    }
  }

  /** Asks for the one or the other. */
  function choose(wanted, byPerson) {
    way = wanted;
    const { user: name, label: words, help: helpWords } = WAYS[way];
    user.value = name;
    input.name = way;
    input.value = '';
    setText(label, words);
    const [before, command, after] = helpWords;
    help.replaceChildren(before, h('code', {}, command), after);
    if (waitUntil === 0) setText(error, '');
    draw();
    if (byPerson) input.focus();
  }

  function failed(failure) {
    if (failure.code === 'too_many_attempts') {
      waitUntil = Date.now() + (failure.retryAfter ?? 60) * 1000;
      // A second or so is a busy server, which is nobody's fault.
      setText(error, (failure.retryAfter ?? 60) > 2 ? 'Too many wrong tries. Wait a little, then try again.' : '');
    } else if (failure.code === 'bad_credentials') {
      setText(error, WAYS[way].wrong);
      input.select();
    } else if (failure.kind === 'network') setText(error, `${UNREACHABLE} What you typed is still here: try again.`);
    else setText(error, failure.message);
  }

  async function submit(event) {
    event.preventDefault();
    if (busy || waitUntil > Date.now()) return;
    busy = true;
    setText(error, '');
    draw();
    try {
      await api.post('api/auth/login', { [way]: way === 'token' ? input.value.trim() : input.value });
      onDone();
    } catch (failure) {
      failed(failure);
    } finally {
      busy = false;
      draw();
    }
  }

  /** Finds out what there is to log in with; goes on by itself where another tab has done it. */
  async function ask() {
    clearTimeout(timer);
    if (root.hidden) return;
    const status = await api.get('api/auth/status').catch(() => null);
    if (root.hidden) return;
    if (status === null) {
      setText(trouble, `${UNREACHABLE} It is tried again every few seconds.`);
      timer = setTimeout(ask, AGAIN_MS);
      return;
    }
    if (!status.auth_required || status.logged_in) {
      onDone();
      return;
    }
    offered = status;
    const isNothing = !status.password && !status.token;
    fields.hidden = isNothing;
    setText(
      trouble,
      isNothing
        ? 'There is nothing to log in with yet. Set a password at the machine of the server with turnkeep password, or come by the way that logs you in.'
        : '',
    );
    if (isNothing) return;
    // Whoever has chosen a way, and maybe typed, stays there.
    if (way === null || !offered[way]) choose(status.password ? 'password' : 'token', true);
    else draw();
  }

  window.addEventListener('focus', () => !root.hidden && !busy && input.value === '' && ask());

  return {
    show() {
      if (!root.hidden) return;
      root.hidden = false;
      way = null;
      fields.hidden = true;
      setText(trouble, '');
      void ask();
    },
    hide() {
      if (root.hidden) return;
      root.hidden = true;
      clearTimeout(timer);
      input.value = '';
      setText(error, '');
    },
  };
}
