/** Who may come in: the password, the browsers that are logged in, and the tokens for programs. */
import { h } from './dom.js';
import { createLoginList } from './settings-logins.js';
import { createPasswordForm } from './settings-password.js';
import { createTokenList } from './settings-tokens.js';

/**
 * @param actions `auth()`, `authChanged()`
 * @returns the element
 */
export function createAccessSettings({ api, actions }) {
  if (actions.auth()?.scope !== 'admin') {
    return h(
      'div',
      {},
      h(
        'p.note-quiet',
        {},
        'Your login may not manage the password, logins and tokens. Log in with the password, or with a token that may do everything.',
      ),
    );
  }
  const logins = createLoginList({ api });
  const tokens = createTokenList({ api, auth: actions.auth });
  const password = createPasswordForm({
    api,
    auth: actions.auth,
    async onSet() {
      await actions.authChanged();
      logins.refresh();
      tokens.refresh();
    },
  });
  return h('div', {}, password, logins.element, tokens.element);
}
