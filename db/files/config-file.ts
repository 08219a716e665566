/**
 * Changes of config.yaml by the server: the only place that writes it. A change is made to the file as it is at that
 * moment, comments and order are kept, and what somebody else wrote meanwhile is read again, never written over (AP4).
 */
import { lstat, readFile, realpath, stat } from 'node:fs/promises';
import { type Document, isMap, isScalar, isSeq, parseDocument, YAMLMap } from 'yaml';
import { orNull } from './absent.ts';
import { replaceFile } from './atomic.ts';

export type ConfigChange =
  | 'written'
  /** It says so already. */
  | 'unchanged'
  /** It is no YAML, has something else in this place, or may not be written: only a person can tell what is meant. */
  | 'unfit';

export interface ConfigFile {
  /**
   * Puts a text at the end of a list, `<section>.<key>`, which is made where it is missing. Changes of this process come
   * one after the other.
   * @throws the system's error; the file is then as it was
   */
  addTo(section: string, key: string, text: string): Promise<ConfigChange>;
}

/** How often a file that others write all the time is read again. */
const MOST_TRIES = 10;

/**
 * @param file path of config.yaml, which need not exist
 * @param replace how a file is replaced; a test stands in between
 */
export function createConfigFile(file: string, replace: typeof replaceFile = replaceFile): ConfigFile {
  let tail: Promise<unknown> = Promise.resolve();

  async function change(edit: (document: Document) => ConfigChange): Promise<ConfigChange> {
    const target = await placeOf(file);
    if (target === null) return 'unfit';
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const before = await textOf(target);
      const document: Document = parseDocument(before ?? '');
      if (document.errors.length > 0) return 'unfit';
      const changed = edit(document);
      if (changed !== 'written') return changed;
      const isAsRead = async (): Promise<boolean> => (await textOf(target)) === before;
      if (await replace(target, [document.toString({ lineWidth: 0 })], isAsRead)) return 'written';
    }
    return 'unfit';
  }

  return {
    addTo(section, key, text) {
      const changed = tail.then(() => change((document) => addTo(document, section, key, text)));
      tail = changed.catch(() => {});
      return changed;
    },
  };
}

const isEmpty = (node: unknown): boolean =>
  node === undefined || node === null || (isScalar(node) && node.value === null);

function addTo(document: Document, section: string, key: string, text: string): ConfigChange {
  if (isEmpty(document.contents)) document.contents = new YAMLMap() as never;
  if (!isMap(document.contents)) return 'unfit';
  const found = document.get(section, true);
  if (isEmpty(found)) document.set(section, document.createNode({ [key]: [text] }));
  else if (!isMap(found)) return 'unfit';
  else {
    const list = found.get(key, true);
    if (isEmpty(list)) found.set(key, document.createNode([text]));
    else if (!isSeq(list)) return 'unfit';
    else if (list.items.some((item) => isScalar(item) && item.value === text)) return 'unchanged';
    else list.add(document.createNode(text));
  }
  return 'written';
}

/**
 * Where the file is in truth: a link stays one, what it leads to is replaced. Null when it leads to nothing, and when nobody
 * may write the file: a rename would not ask.
 */
async function placeOf(file: string): Promise<string | null> {
  if ((await orNull(lstat(file))) === null) return file;
  const meant = await orNull(stat(file));
  return meant === null || (meant.mode & 0o222) === 0 ? null : realpath(file);
}

/** The text of a file, or null when there is none. */
const textOf = (file: string): Promise<string | null> => orNull(readFile(file, 'utf8'));
