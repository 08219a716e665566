/** The card that asks for the token. */
import { h } from './dom.js';

/**
 * @param onDone called when the server has accepted the token
 * @returns `show()` and `hide()`
 */
export function createLogin({ root, api, onDone }) {
  const input = h('input', {
    id: 'token',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
    'aria-describedby': 'login-help login-error',
  });
  const error = h('p.error', { id: 'login-error', role: 'alert' });
  const button = h('button.primary', { type: 'submit' }, 'Log in');
  const form = h(
    'form.login-card',
    { onsubmit: submit },
    h('img', { src: 'favicon.svg', alt: '', width: '40', height: '40' }),
    h('h1', {}, 'Turnkeep'),
    h('label', { for: 'token' }, 'Access token'),
    input,
    h('p.help', { id: 'login-help' }, 'The value of TURNKEEP_TOKEN that this server was started with.'),
    error,
    button,
  );
  root.append(form);

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    error.textContent = '';
    try {
      await api.post('api/auth/login', { token: input.value.trim() });
      input.value = '';
      onDone();
    } catch (failure) {
      error.textContent = failure.message;
      input.select();
    } finally {
      button.disabled = false;
    }
  }

  return {
    show() {
      if (!root.hidden) return;
      root.hidden = false;
      input.focus();
    },
    hide() {
      root.hidden = true;
    },
  };
}
