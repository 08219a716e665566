/**
 * The folders of the server, as something to choose from: those that were used lately (kept in the browser, and told by
 * the list), and those that one finds by looking around.
 */
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
 * The folders of the server, asked for while somebody looks around.
 * @param onChange called when an answer is here
 */
export function createPlaces({ api, onChange }) {
  let known = new Map();

  const look = (path) =>
    api.get(`api/folders${path === HOME ? '' : `?path=${encodeURIComponent(path)}`}`).catch((failure) => ({ failure }));

  async function ask(path, into) {
    const place = await look(path);
    into.set(path, place);
    if (!place.failure) into.set(place.path, place);
    onChange();
  }

  return {
    /** A folder as it is at this moment. @returns a promise of what `at` gives */
    look,
    /** Folders come and go: whoever looks again is told what there is now. */
    forget() {
      known = new Map();
    },
    /** @returns `{path, parent, folders, more}`, `{failure}` when the server refused, null until it answers */
    at(path) {
      if (!known.has(path)) {
        known.set(path, null);
        void ask(path, known);
      }
      return known.get(path);
    },
  };
}

/** Where one begins: the server says which folder that is. */
const HOME = '';

const inside = (path, name) => (path.endsWith('/') ? path + name : `${path}/${name}`);

/**
 * What was typed, as a folder to look into and the beginning of a name there. A path that is not absolute begins at home.
 * @returns `place` (of `createPlaces`), `name`, `path` as a whole
 */
function placeOf(query, places) {
  const home = places.at(HOME)?.path ?? null;
  const isAbsolute = query.startsWith('/');
  const below = query.replace(/^~\/?/, '');
  if (!isAbsolute && (home === null || !below.includes('/'))) {
    return { place: places.at(HOME), name: below, path: inside(home ?? '', below) };
  }
  const path = isAbsolute ? query : inside(home, below);
  const slash = path.lastIndexOf('/');
  return { place: places.at(path.slice(0, slash) || '/'), name: path.slice(slash + 1), path };
}

/** Sub-folders with what was typed in their name, those that begin with it first; hidden ones only when asked for. */
function foldersLike({ folders }, name) {
  const part = name.toLowerCase();
  const found = folders.filter(
    (one) => one.toLowerCase().includes(part) && (!one.startsWith('.') || name.startsWith('.')),
  );
  const begins = (one) => one.toLowerCase().startsWith(part);
  return [...found.filter(begins), ...found.filter((one) => !begins(one))];
}

/** The folder that is typed out, or null. One that the server has not told of is tried where it could not tell. */
function typedFolder({ place, name, path }) {
  if (!place) return null;
  if (place.failure) return name !== '' && place.failure.reason === 'unreadable' ? path : null;
  if (name === '') return place.path;
  return place.folders.includes(name) || place.more ? inside(place.path, name) : null;
}

/** The options for what one finds by looking around. */
function foundOptions({ place, name }) {
  if (!place || place.failure) return [];
  const up = { label: 'Up', detail: place.parent, goes: place.parent && inside(place.parent, '') };
  const folders = foldersLike(place, name).map((one) => ({ label: one, goes: inside(inside(place.path, one), '') }));
  return name === '' && place.parent !== null ? [up, ...folders] : folders;
}

/**
 * The groups of options for what was typed: folders to choose, and folders to go into.
 * @param chosen the folder that is in force, or null
 * @param recent folders that were used, the newest first
 * @param places of `createPlaces`
 */
export function folderGroups({ chosen, recent, places }, query) {
  const at = placeOf(query, places);
  const typed = typedFolder(at);
  const none = { path: null, label: 'No folder', detail: 'no files, no commands', current: chosen === null };
  const use = { path: typed, label: 'Use this folder', detail: typed, current: typed === chosen };
  const isPath = query.startsWith('/') || query.startsWith('~');
  const used = recent.filter((path) => !isPath && path.toLowerCase().includes(query.toLowerCase()));
  return [
    { options: query === '' ? [none] : typed === null ? [] : [use] },
    {
      label: 'Used before',
      options: used.map((path) => ({
        path,
        label: folderName(path),
        detail: path,
        title: path,
        current: path === chosen,
      })),
    },
    { label: at.place?.path ? `In ${at.place.path}` : '', options: foundOptions(at) },
  ];
}

const countOf = (folders) =>
  folders === 0 ? 'There are no folders in it.' : folders === 1 ? '1 folder' : `${folders} folders`;

/** What is to be said of what was typed, or nothing. @param isEmpty there is nothing to choose */
export function folderNote({ places }, query, isEmpty) {
  const { place, name } = placeOf(query, places);
  if (!place) return '';
  if (place.failure) return place.failure.message;
  if (place.more) return `There are more folders in ${place.path} than can be listed: type the whole name.`;
  if (name === '') return `${place.path}: ${countOf(foldersLike(place, '').length)}`;
  return isEmpty ? `There is no folder like “${name}” in ${place.path}.` : '';
}
