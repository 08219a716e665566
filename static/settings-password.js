/** Setting the password. What is typed leaves the page in one request and is kept nowhere. */
import { h, setText } from './dom.js';

const LEAST = 8;

/**
 * @param auth gives what GET /api/auth/status said last
 * @param onSet called when the password is set; resolves when the page knows
 * @returns the element
 */
export function createPasswordForm({ api, auth, onSet }) {
  const field = (id, label, autocomplete, more = {}) =>
    h(
      'div.setting',
      {},
      h('label', { for: id }, label),
      h('input', { id, type: 'password', name: id, autocomplete, required: true, maxlength: '1024', ...more }),
    );
  const current = field('password-current', 'Current password', 'current-password');
  const next = field('password-new', 'New password', 'new-password', { minlength: String(LEAST) });
  const again = field('password-again', 'New password again', 'new-password');
  const [currentInput, nextInput, againInput] = [current, next, again].map((one) => one.querySelector('input'));
  const intro = h('p.help');
  const error = h('p.error', { role: 'alert' });
  const done = h('p.done', { role: 'status' });
  const button = h('button', { type: 'submit' });
  const form = h(
    'form',
    { method: 'post', onsubmit: submit },
    h('input', { type: 'text', name: 'username', autocomplete: 'username', value: 'turnkeep', hidden: true }),
    current,
    next,
    again,
    error,
    h('div.setting-actions', {}, button),
  );
  const element = h('section.settings-part', { 'aria-labelledby': 'password-title' });
  element.append(h('h3', { id: 'password-title' }, 'Password'), intro, form, done);

  function draw() {
    const { password, auth_required: required, can_set_password: maySet } = auth();
    current.hidden = !password;
    currentInput.disabled = !password;
    form.hidden = !maySet;
    setText(button, password ? 'Change the password' : 'Set the password');
    const first = required
      ? 'There is none yet. With one, people log in without a token.'
      : 'There is none: whoever reaches this server may do everything. With one, everybody has to log in.';
    const refused =
      'The first password is set at the machine of the server: with turnkeep password, or in a browser that runs there.';
    const words = password ? 'A new one logs everybody out but this browser.' : first;
    setText(intro, maySet ? words : refused);
  }

  async function submit(event) {
    event.preventDefault();
    setText(done, '');
    if (nextInput.value !== againInput.value) {
      setText(error, 'The two new passwords differ.');
      againInput.select();
      return;
    }
    setText(error, '');
    button.disabled = true;
    const wasSet = auth().password;
    try {
      const body = { password: nextInput.value, ...(wasSet && { current: currentInput.value }) };
      await api.post('api/auth/password', body);
      form.reset();
      setText(done, wasSet ? 'Changed. Everybody else is logged out.' : 'Set. This browser stays logged in.');
      await onSet();
      draw();
    } catch (failure) {
      if (failure.code === 'bad_credentials') {
        setText(error, 'The current password is another one.');
        currentInput.select();
      } else {
        const soon = failure.retryAfter ? ` Try again in ${failure.retryAfter} s.` : '';
        setText(error, failure.code === 'too_many_attempts' ? `Too many wrong tries.${soon}` : failure.message);
      }
    } finally {
      button.disabled = false;
    }
  }

  draw();
  return element;
}
