/**
 * The folders of this machine, as a person chooses a workspace from them: one folder at a time, with those of its
 * sub-folders that a session could be given. Bounded; names only, of folders only.
 */
import { opendir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError } from '../errors.ts';
import { checkWorkspace, type WorkspaceCheck } from './workspace.ts';

/** Sub-folders that are told. */
export const MAX_FOLDERS = 500;
/** Entries that are looked at: a folder may have any number. */
const MAX_LOOKED_AT = 5_000;

const PROBLEMS: Record<Exclude<WorkspaceCheck, 'ok'>, string> = {
  missing: 'There is no such folder on the server.',
  not_a_directory: 'This is no folder.',
  not_absolute: 'The path of a folder must be absolute.',
  unreadable: 'The server may not read this folder.',
};

export interface FolderChoice {
  /** Absolute, without links. */
  path: string;
  /** The folder above; null at the top, and where it cannot be chosen. */
  parent: string | null;
  /** Names of sub-folders in their order, those with a dot in front behind the others; at most 500. */
  folders: string[];
  /** There are more than are told. */
  more: boolean;
}

/** @throws AppError bad_workspace, with `reason`, when a folder cannot be a workspace */
export async function assertWorkspace(path: string): Promise<void> {
  const reason = await checkWorkspace(path);
  if (reason !== 'ok') throw new AppError('bad_workspace', PROBLEMS[reason], { reason });
}

/**
 * A folder, with what can be chosen in it.
 * @param path absolute; null for where a person begins
 * @throws AppError bad_workspace
 */
export type ListFolder = (path: string | null) => Promise<FolderChoice>;

/** @param home where a person begins; it need not be there */
export const createFolderChoice =
  (home: string): ListFolder =>
  async (path) =>
    listFolder(path ?? ((await checkWorkspace(home)) === 'ok' ? home : '/'));

async function listFolder(path: string): Promise<FolderChoice> {
  await assertWorkspace(path);
  try {
    const real = await realpath(path);
    const above = dirname(real);
    const { names, isCut } = await candidatesIn(real);
    const folders: string[] = [];
    // One after the other: a disk that does not answer holds up one look, and not all threads of the process.
    for (const name of names) {
      if (folders.length > MAX_FOLDERS) break;
      if ((await checkWorkspace(join(real, name))) === 'ok') folders.push(name);
    }
    return {
      path: real,
      parent: above !== real && (await checkWorkspace(above)) === 'ok' ? above : null,
      folders: folders.slice(0, MAX_FOLDERS),
      more: isCut || folders.length > MAX_FOLDERS,
    };
  } catch (error) {
    // It went away, or was closed to us, while it was looked at.
    await assertWorkspace(path);
    throw error;
  }
}

/** Names of what may be a folder, in the order in which they are told. */
async function candidatesIn(folder: string): Promise<{ names: string[]; isCut: boolean }> {
  const names: string[] = [];
  let looked = 0;
  for await (const entry of await opendir(folder, { bufferSize: 256 })) {
    looked += 1;
    if (looked > MAX_LOOKED_AT) return { names: names.sort(byName), isCut: true };
    // A link may lead to a folder, and some file systems do not say what an entry is.
    if (!entry.isFile()) names.push(entry.name);
  }
  return { names: names.sort(byName), isCut: false };
}

const isHidden = (name: string): boolean => name.startsWith('.');
const order = new Intl.Collator('en', { numeric: true });

const byName = (a: string, b: string): number =>
  Number(isHidden(a)) - Number(isHidden(b)) || order.compare(a, b) || (a < b ? -1 : 1);
