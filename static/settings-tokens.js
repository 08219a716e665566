/** The tokens for programs: made, shown once, taken back. A secret is in the page until the next one or the end of the dialog. */
import { copyButton } from './copy.js';
import { confirmWith } from './dialog.js';
import { h, setText } from './dom.js';
import { shortTime, wholeDay } from './times.js';

const SCOPES = {
  read: 'See everything, change nothing',
  prompt: 'Converse, edit and delete',
  admin: 'Everything, also passwords and tokens',
};
const LIVES = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'A year'],
  ['', 'Until it is revoked'],
];

/**
 * @param auth gives what GET /api/auth/status said last
 * @returns `element`, `refresh()`
 */
export function createTokenList({ api, auth }) {
  const list = h('ul.entries');
  const intro = h('p.help');
  const error = h('p.error', { role: 'alert' });
  const secret = h('div.secret', { role: 'status' });
  const name = h('input', { id: 'token-name', required: true, maxlength: '100', autocomplete: 'off', dir: 'auto' });
  const options = (pairs) => pairs.map(([value, words]) => h('option', { value }, words));
  const scope = h('select', { id: 'token-scope' }, ...options(Object.entries(SCOPES)));
  const life = h('select', { id: 'token-life' }, ...options(LIVES));
  const button = h('button', { type: 'submit' }, 'Create the token');
  const form = h(
    'form',
    { onsubmit: create },
    h('div.setting', {}, h('label', { for: 'token-name' }, 'Name of the new token'), name),
    h('div.setting', {}, h('label', { for: 'token-scope' }, 'What it may do'), scope),
    h('div.setting', {}, h('label', { for: 'token-life' }, 'How long it holds'), life),
    h('div.setting-actions', {}, button),
  );
  const element = h(
    'section.settings-part',
    { 'aria-labelledby': 'tokens-title' },
    h('h3', { id: 'tokens-title', tabindex: '-1' }, 'Access tokens'),
    intro,
    list,
    secret,
    error,
    form,
  );

  async function create(event) {
    event.preventDefault();
    setText(error, '');
    button.disabled = true;
    try {
      const days = life.value === '' ? null : Number(life.value);
      const made = await api.post('api/auth/tokens', { name: name.value.trim(), scope: scope.value, days });
      showSecret(made.token.name, made.secret);
      form.reset();
      scope.value = 'prompt';
      await refresh();
    } catch (failure) {
      setText(error, failure.message);
    } finally {
      button.disabled = false;
    }
  }

  function showSecret(of, value) {
    const shown = h('code.secret-value', { tabindex: '0', 'aria-label': `Token ${of}` }, value);
    const words = h('p', {}, h('strong', { dir: 'auto' }, of), ': copy it now, it is never shown again.');
    secret.replaceChildren(
      words,
      h(
        'div.secret-line',
        {},
        shown,
        copyButton(() => value),
      ),
    );
    secret.scrollIntoView({ block: 'nearest' });
    shown.focus();
  }

  async function revoke({ token_id: id, name: of }) {
    const agreed = await confirmWith({
      title: `Revoke “${of}”?`,
      text: 'Programs that use it are refused from now on, and browsers that logged in with it are logged out.',
      action: 'Revoke',
    });
    if (!agreed) return;
    try {
      await api.remove(`api/auth/tokens/${id}`);
    } catch (failure) {
      // Somebody else was quicker.
      if (failure.code !== 'token_not_found') setText(error, failure.message);
    }
    await refresh();
    element.querySelector('h3').focus();
  }

  function entry(token) {
    const { name: of, scope: may, used_at: used, expires_at: end } = token;
    const now = Date.now() / 1000;
    const details = [
      SCOPES[may],
      used === null ? 'never used' : `used ${shortTime(used, now)}`,
      end === null ? null : `${end < now ? 'expired' : 'until'} ${wholeDay(end)}`,
    ];
    return h(
      'li.entry',
      {},
      h(
        'div.entry-text',
        {},
        h('span.entry-name', { dir: 'auto' }, of),
        h('span.entry-detail', {}, details.filter(Boolean).join(' · ')),
      ),
      h(
        'button.danger-quiet',
        { type: 'button', 'aria-label': `Revoke ${of}`, onclick: () => revoke(token) },
        'Revoke',
      ),
    );
  }

  async function refresh() {
    // The first token would close an open server, also to the page that has just shown it.
    const isOpen = !auth().auth_required;
    form.hidden = isOpen;
    setText(
      intro,
      isOpen
        ? 'For programs. Set a password first, so that you can still come in yourself.'
        : 'For programs, which send one as Authorization: Bearer.',
    );
    try {
      const { tokens } = await api.get('api/auth/tokens');
      list.replaceChildren(...tokens.map(entry));
    } catch (failure) {
      setText(error, failure.message);
    }
  }
  scope.value = 'prompt';
  void refresh();
  return { element, refresh };
}
