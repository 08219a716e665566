/**
 * The browser's storages. A browser that forbids them throws as soon as one is named: then something else stands in,
 * and what would be kept lasts as long as the page.
 */

/** What is kept for the tab: it outlives a reload. */
export const tabStorage = () => storageOf('sessionStorage');

/** What is kept for this browser, for all its tabs. */
export const browserStorage = () => storageOf('localStorage');

function storageOf(name) {
  try {
    const storage = globalThis[name];
    if (storage) return storage;
  } catch {
    // Forbidden.
  }
  const kept = new Map();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => void kept.set(key, text),
    removeItem: (key) => void kept.delete(key),
  };
}

/**
 * What a person is writing elsewhere than in the message box, by the id of what it is about, kept for the tab.
 * @param kind a word for what they are
 * @returns `get(id)` (null where there is none), `set(id, text)`, `delete(id)`
 */
export function createTexts(kind, storage = tabStorage()) {
  const keyOf = (id) => `turnkeep:${location.pathname}:${kind}:${id}`;
  return {
    get: (id) => storage.getItem(keyOf(id)),
    set(id, text) {
      try {
        storage.setItem(keyOf(id), text);
      } catch {
        // Full: it lasts as long as its element.
      }
    },
    delete: (id) => storage.removeItem(keyOf(id)),
  };
}
