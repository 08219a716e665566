/** The browsers that are logged in: which, from where, when last, and the end of each. */
import { h, setText } from './dom.js';
import { longTime, shortTime } from './times.js';

/** Names in a User-Agent, the more special before those that they pretend to be. */
const BROWSERS = [
  [/Edg(?:e|A|iOS)?\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/SamsungBrowser\//, 'Samsung Internet'],
  [/(?:Firefox|FxiOS)\//, 'Firefox'],
  [/(?:Chrome|CriOS)\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const SYSTEMS = [
  [/iPhone/, 'an iPhone'],
  [/iPad/, 'an iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Macintosh/, 'a Mac'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

/** A User-Agent in words: `Firefox on Linux`; what is not known by its first word. */
export function browserName(agent) {
  const named = (table) => table.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = named(BROWSERS) ?? (/^[^\s/]{1,40}/.exec(agent)?.[0] || 'Unknown browser');
  const system = named(SYSTEMS);
  return system ? `${browser} on ${system}` : browser;
}

/** @returns `element`, `refresh()` */
export function createLoginList({ api }) {
  const list = h('ul.entries');
  const none = h('p.help', { hidden: true }, 'None. Without a credential nobody has to log in.');
  const error = h('p.error', { role: 'alert' });
  const element = h(
    'section.settings-part',
    { 'aria-labelledby': 'logins-title' },
    h('h3', { id: 'logins-title', tabindex: '-1' }, 'Browsers logged in'),
    none,
    list,
    error,
  );

  async function end(id) {
    try {
      await api.remove(`api/auth/logins/${id}`);
    } catch (failure) {
      // Somebody else was quicker.
      if (failure.code !== 'login_not_found') setText(error, failure.message);
    }
    await refresh();
    element.querySelector('h3').focus();
  }

  function entry({ login_id: id, agent, address, seen_at: seen, current }) {
    const name = browserName(agent);
    return h(
      'li.entry',
      {},
      h(
        'div.entry-text',
        {},
        h('span.entry-name', { title: agent }, name, current ? h('span.badge', {}, 'this one') : null),
        h('span.entry-detail', { title: longTime(seen) }, `${address} · ${shortTime(seen, Date.now() / 1000)}`),
      ),
      current
        ? null
        : h(
            'button',
            { type: 'button', 'aria-label': `Log out ${name}, ${address}`, onclick: () => end(id) },
            'Log out',
          ),
    );
  }

  async function refresh() {
    setText(error, '');
    try {
      const { logins } = await api.get('api/auth/logins');
      list.replaceChildren(...logins.map(entry));
      none.hidden = logins.length > 0;
    } catch (failure) {
      setText(error, failure.message);
    }
  }
  void refresh();
  return { element, refresh };
}
