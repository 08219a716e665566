/**
 * What a person prefers, kept in the browser: it is about this screen and these hands; what holds for
 * everybody is on the server (settings-server.js). Other tabs
 * follow at once.
 */
import { browserStorage } from './storage.js';

/** What may be chosen, the first being what holds without a choice. */
export const CHOICES = {
  theme: ['system', 'light', 'dark'],
  density: ['comfortable', 'compact'],
  sendKey: ['enter', 'ctrl-enter'],
  /** `ask` until the person has said yes or no. */
  notifications: ['ask', 'on', 'off'],
  shortcuts: ['on', 'off'],
};

const keyOf = () => `turnkeep:${location.pathname}:settings`;

/** The settings as stored; what is not there or not understood is as without a choice. */
export function readSettings(storage, isTouch) {
  let stored = null;
  try {
    stored = JSON.parse(storage.getItem(keyOf()) ?? 'null');
  } catch {
    // As without a choice.
  }
  const settings = {};
  for (const [name, choices] of Object.entries(CHOICES)) {
    settings[name] = choices.includes(stored?.[name]) ? stored[name] : choices[0];
  }
  // The Enter of a touch keyboard is the only way to a new line there.
  if (isTouch && !CHOICES.sendKey.includes(stored?.sendKey)) settings.sendKey = 'ctrl-enter';
  return settings;
}

/** Makes the document look as the settings say. */
export function applyLook({ theme, density }) {
  const root = document.documentElement;
  root.dataset.theme = theme;
  root.dataset.density = density;
  for (const [name, scheme] of [
    ['light', '(prefers-color-scheme: light)'],
    ['dark', '(prefers-color-scheme: dark)'],
  ]) {
    const media = theme === 'system' ? scheme : theme === name ? 'all' : 'not all';
    for (const element of document.querySelectorAll(`[data-scheme="${name}"]`)) element.media = media;
  }
}

export const hasTouchOnly = () => window.matchMedia('(pointer: coarse)').matches;

/** @returns `get()`, `set(changes)`, `subscribe(listener)` */
export function createSettings(storage = browserStorage()) {
  let settings = readSettings(storage, hasTouchOnly());
  const listeners = new Set();
  const changed = () => {
    applyLook(settings);
    for (const tell of listeners) tell(settings);
  };
  window.addEventListener('storage', ({ key }) => {
    if (key !== keyOf()) return;
    settings = readSettings(storage, hasTouchOnly());
    changed();
  });
  return {
    get: () => settings,
    set(changes) {
      settings = { ...settings, ...changes };
      try {
        storage.setItem(keyOf(), JSON.stringify(settings));
      } catch {
        // They hold until the page is left.
      }
      changed();
    },
    subscribe: (listener) => void listeners.add(listener),
  };
}
