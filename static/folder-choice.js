/** The folders that were used lately, as something to choose from; kept in the browser, and told by the list. */
import { browserStorage } from './storage.js';

const MOST = 20;

/** @param storage the browser's, for folders of conversations that are not in the list */
export function createRecentFolders(storage = browserStorage()) {
  const key = `turnkeep:${location.pathname}:folders`;
  const read = () => {
    try {
      const found = JSON.parse(storage.getItem(key) ?? '[]');
      return Array.isArray(found) ? found.filter((one) => typeof one === 'string') : [];
    } catch {
      return [];
    }
  };
  return {
    used(path) {
      try {
        storage.setItem(key, JSON.stringify([path, ...read().filter((one) => one !== path)].slice(0, MOST)));
      } catch {
        // Then it is not remembered.
      }
    },
    /** @param sessions as the list has them, the newest first */
    all: (sessions) =>
      [...new Set([...read(), ...sessions.map(({ workspace }) => workspace).filter(Boolean)])].slice(0, MOST),
  };
}

/** The last part of a path, which is what people call a folder. */
export const folderName = (path) => path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;

/**
 * The groups of options for what was typed.
 * @param chosen the folder that is in force, or null
 * @param recent folders that were used, the newest first
 */
export function folderGroups(chosen, recent, query) {
  const typed = query === '' ? [] : [{ path: query, label: `Use ${query}`, current: false }];
  const known = recent.filter((path) => path !== query && path.toLowerCase().includes(query.toLowerCase()));
  const none = { path: null, label: 'No folder', detail: 'no files, no commands', current: chosen === null };
  const used = known.map((path) => ({
    path,
    label: folderName(path),
    detail: path,
    title: path,
    current: path === chosen,
  }));
  return [{ options: query === '' ? [none] : typed }, { label: 'Used before', options: used }];
}
