/** What stands where a state DB should be, seen from outside: no file of it is opened but a WAL that has no database. */
import { lstatSync, type Stats, statSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';

export type StateDbPlace =
  | { kind: 'file' }
  /** Nothing, or an empty file, which SQLite takes for a new database. */
  | { kind: 'nothing' }
  /** The reason in words; `isLog` when only a WAL is there. */
  | { kind: 'wrong'; reason: string; isLog: boolean };

const statsOf = (file: string): Stats | null => statSync(file, { throwIfNoEntry: false }) ?? null;

/** @param file absolute path @throws the system's error where nobody may look */
export function stateDbPlace(file: string): StateDbPlace {
  const found = statsOf(file);
  if (!found && lstatSync(file, { throwIfNoEntry: false })) return wrong('it is a link that leads nowhere');
  if (found?.isDirectory()) return wrong('there is a folder in its place');
  // A pipe, say, would hold up whoever opens it.
  if (found && !found.isFile()) return wrong('it is no file');
  for (const beside of [`${file}-wal`, `${file}-shm`]) {
    if (statsOf(beside)?.isFile() === false) return wrong(`${beside} is no file`);
  }
  if (found?.size) return { kind: 'file' };
  // SQLite would delete it beside an empty file, and it may hold all of the database.
  return (statsOf(`${file}-wal`)?.size ?? 0) > 0 ? wrong('only its log is there', true) : { kind: 'nothing' };
}

/** Tells one file under a name from another that took its place; null when there is none. */
export function fileUnder(name: string): string | null {
  const found = statsOf(name);
  return found && `${found.dev}:${found.ino}`;
}

const wrong = (reason: string, isLog = false): StateDbPlace => ({ kind: 'wrong', reason, isLog });

const MAGIC = [0x377f0682, 0x377f0683];
const [HEADER, PAGE_SIZE_AT] = [32, 8];

/**
 * Makes a database of one empty page, for a WAL that has lost its own: beside it SQLite reads what the WAL holds.
 * @param file absolute path of a name that is free; the WAL stands at `<file>-wal`
 * @returns false, and nothing is made, when that is no WAL
 */
export async function makeFirstPage(file: string): Promise<boolean> {
  const size = await pageSizeOf(`${file}-wal`);
  if (size === null) return false;
  await writeFile(file, emptyPage(size), { flag: 'wx', mode: 0o600 });
  return true;
}

/** The size of a WAL's pages. Source: the SQLite file format, section 4.1. */
async function pageSizeOf(wal: string): Promise<number | null> {
  const handle = await open(wal, 'r');
  try {
    const header = Buffer.alloc(HEADER);
    if ((await handle.read(header, 0, HEADER, 0)).bytesRead < HEADER) return null;
    const size = header.readUInt32BE(PAGE_SIZE_AT);
    const isSize = size >= 512 && size <= 65_536 && (size & (size - 1)) === 0;
    return MAGIC.includes(header.readUInt32BE(0)) && isSize ? size : null;
  } finally {
    await handle.close();
  }
}

/** A first page without a table, of a database with a WAL. Source: the SQLite file format, sections 1.3 and 1.6. */
function emptyPage(size: number): Buffer {
  const page = Buffer.alloc(size);
  const sizeField = size === 65_536 ? 1 : size;
  page.write('SQLite format 3\0', 0, 'latin1');
  page.writeUInt16BE(sizeField, 16);
  // Versions for writing and reading: 2 is a WAL. Then the fractions of a page that are prescribed.
  page.set([2, 2, 0, 64, 32, 32], 18);
  page.writeUInt32BE(1, 28); // One page.
  page.writeUInt32BE(4, 44); // The newest form of schemas.
  page.writeUInt32BE(1, 56); // UTF-8.
  page[100] = 13; // A leaf of a table, without cells, whose content begins at the end.
  page.writeUInt16BE(size === 65_536 ? 0 : size, 105);
  return page;
}
