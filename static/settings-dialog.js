/** The settings of the page. A change holds at once; there is nothing to save. */
import { h, setText } from './dom.js';
import { modelName } from './model-choice.js';

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
 * @param actions `models()`, `server()` (`{version}` or null), `logout` (null where nobody is logged in)
 * @returns `open()`
 */
export function createSettingsDialog({ settings, notifications, actions }) {
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

  function modelSetting() {
    const models = actions.models();
    const select = h(
      'select',
      { id: 'setting-model', onchange: () => settings.set({ model: select.value || null }) },
      h('option', { value: '' }, `As the server says (${modelName(models, null)})`),
      ...(models?.models ?? []).map(({ id, label, provider }) => h('option', { value: id }, `${label} (${provider})`)),
    );
    const { model } = settings.get();
    if (model && !models?.models.some(({ id }) => id === model)) select.append(h('option', { value: model }, model));
    select.value = model ?? '';
    return h('div.setting', {}, h('label', { for: 'setting-model' }, 'Model of new conversations'), select);
  }

  function open() {
    const version = actions.server()?.version;
    const close = h('button.primary', { type: 'submit', value: 'done' }, 'Done');
    setText(notice, '');
    const dialog = h(
      'dialog.dialog.settings',
      { 'aria-labelledby': 'settings-title' },
      h(
        'form',
        { method: 'dialog' },
        h('h2', { id: 'settings-title', tabindex: '-1', autofocus: true }, 'Settings'),
        choice('theme', ['system', 'light', 'dark']),
        choice('density', ['comfortable', 'compact']),
        choice('sendKey', ['enter', 'ctrl-enter']),
        choice('notifications', ['on', 'off']),
        notice,
        choice('shortcuts', ['on', 'off']),
        modelSetting(),
        h(
          'p.help',
          {},
          'These settings are kept in this browser. Models, keys, limits and approvals are in config.yaml of the server.',
        ),
        h(
          'p.help',
          {},
          version ? `Turnkeep ${version} · ` : '',
          h('a', { href: 'docs', target: '_blank', rel: 'noopener' }, 'Interface for programs'),
        ),
        h(
          'div.dialog-actions',
          {},
          actions.logout() ? h('button', { type: 'button', onclick: actions.logout() }, 'Log out') : null,
          close,
        ),
      ),
    );
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
  return { open };
}
