/** The settings: of this browser, of the server, and who may come in. A change holds at once; there is nothing to save. */
import { h } from './dom.js';
import { createAccessSettings } from './settings-access.js';
import { createBrowserSettings } from './settings-browser.js';
import { createServerSettings } from './settings-server.js';

/**
 * @param settings of settings.js
 * @param notifications of notifications.js
 * @param actions `models()`, `server()` (`{version}` or null), `auth()` (as GET /api/auth/status gave it, or null),
 *   `authChanged()` (resolves when it was read again), `modelsChanged()`, `logout()`
 * @returns `open()`, `serverChanged()`
 */
export function createSettingsDialog({ api, settings, notifications, actions }) {
  let refreshServer = () => {};

  /** Each gives what is in its panel. They are made when they are first seen. */
  const sections = {
    browser: { label: 'This browser', make: () => createBrowserSettings({ settings, notifications }) },
    server: {
      label: 'Server',
      make() {
        const section = createServerSettings({ api, actions });
        refreshServer = section.refresh;
        return section.element;
      },
    },
    access: { label: 'Access', make: () => createAccessSettings({ api, actions }) },
  };

  function tabsOf() {
    const names = Object.keys(sections);
    const tabs = names.map((name) =>
      h(
        'button.tab',
        {
          type: 'button',
          role: 'tab',
          id: `settings-tab-${name}`,
          'aria-controls': `settings-${name}`,
          onclick: () => show(name),
        },
        sections[name].label,
      ),
    );
    const panels = names.map((name) =>
      h('div.settings-panel', {
        id: `settings-${name}`,
        role: 'tabpanel',
        'aria-labelledby': `settings-tab-${name}`,
        hidden: true,
      }),
    );
    function show(name) {
      for (const [at, one] of names.entries()) {
        const isShown = one === name;
        tabs[at].setAttribute('aria-selected', String(isShown));
        tabs[at].tabIndex = isShown ? 0 : -1;
        panels[at].hidden = !isShown;
        if (isShown && panels[at].childElementCount === 0) panels[at].append(sections[name].make());
      }
    }
    function onkeydown(event) {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const at = (tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length;
      show(names[at]);
      tabs[at].focus();
    }
    show(names[0]);
    return [h('div.tabs', { role: 'tablist', 'aria-label': 'Settings', onkeydown }, ...tabs), ...panels];
  }

  function open() {
    const version = actions.server()?.version;
    const canLogOut = actions.auth()?.auth_required;
    const dialog = h(
      'dialog.dialog.settings',
      { 'aria-labelledby': 'settings-title' },
      h('h2', { id: 'settings-title', tabindex: '-1', autofocus: true }, 'Settings'),
      ...tabsOf(),
      h(
        'p.help',
        {},
        version ? `Turnkeep ${version} · ` : '',
        h('a', { href: 'docs', target: '_blank', rel: 'noopener' }, 'Interface for programs'),
      ),
      h(
        'form.dialog-actions',
        { method: 'dialog' },
        canLogOut ? h('button', { type: 'button', onclick: () => actions.logout() }, 'Log out') : null,
        h('button.primary', { type: 'submit', value: 'done' }, 'Done'),
      ),
    );
    dialog.addEventListener('close', () => {
      refreshServer = () => {};
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  }
  return { open, serverChanged: () => refreshServer() };
}
