/** The settings that are kept in this browser. */
import { h, setText } from './dom.js';

const WORDS = {
  theme: { label: 'Colours', system: 'As the system', light: 'Light', dark: 'Dark' },
  density: { label: 'Density', comfortable: 'Comfortable', compact: 'Compact' },
  sendKey: { label: 'Send with', enter: 'Enter', 'ctrl-enter': 'Ctrl+Enter (or the button)' },
  notifications: { label: 'Notifications', on: 'On', off: 'Off' },
  shortcuts: { label: 'Keys without Ctrl, such as “n” and “?”', on: 'On', off: 'Off' },
};

/**
 * @param settings of settings.js
 * @param notifications of notifications.js
 * @returns the element
 */
export function createBrowserSettings({ settings, notifications }) {
  const notice = h('p.help', { role: 'status' });

  function choice(name, values) {
    const inputs = values.map((value) =>
      h(
        'label.segment',
        {},
        h('input', {
          type: 'radio',
          name: `setting-${name}`,
          value,
          checked: settings.get()[name] === value,
          onchange: () => choose(name, value),
        }),
        h('span', {}, WORDS[name][value]),
      ),
    );
    return h('fieldset.setting', {}, h('legend', {}, WORDS[name].label), h('div.segments', {}, ...inputs));
  }

  async function choose(name, value) {
    if (name === 'notifications' && value === 'on') {
      const refused = await notifications.turnOn();
      setText(notice, refused ?? 'You are told when a turn ends or needs you while this page is not in sight.');
      if (refused) settings.set({ notifications: 'off' });
      return;
    }
    if (name === 'notifications') setText(notice, '');
    settings.set({ [name]: value });
  }

  return h(
    'div',
    {},
    choice('theme', ['system', 'light', 'dark']),
    choice('density', ['comfortable', 'compact']),
    choice('sendKey', ['enter', 'ctrl-enter']),
    choice('notifications', ['on', 'off']),
    notice,
    choice('shortcuts', ['on', 'off']),
    h('p.help', {}, 'These are kept in this browser, and hold for nobody else.'),
  );
}
