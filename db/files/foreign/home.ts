/**
 * Whether a folder is another program's home, found out without opening a database: SQLite would make files beside one that
 * its program has closed.
 */
import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { isMissing } from '../atomic.ts';
import { lookAtDatabase } from './database-place.ts';

/** What a SQLite database begins with, and where in its header its size of a page and its program's mark stand. */
const MAGIC = 'SQLite format 3\0';
const PLACES = { pageSize: 16, applicationId: 68, end: 72 };

/**
 * @param home absolute path
 * @param applicationId the mark of our own databases
 * @returns what in it belongs to another program, for a sentence; null when it may be ours
 */
export async function foreignPlace(home: string, applicationId: number): Promise<string | null> {
  const file = path.join(home, 'state.db');
  const place = await lookAtDatabase(file);
  // Somebody has it open, or left it half: to open it makes nothing new, and tells more.
  if (place.hasWal || place.hasSharedMemory) return null;
  if (place.file !== null) return (await isForeignDatabase(file, applicationId)) ? file : null;
  // The sessions of another program without ours: we write no index of them.
  const sessions = path.join(home, 'sessions');
  return (await entriesOf(sessions)).includes('_index.json') ? sessions : null;
}

async function isForeignDatabase(file: string, applicationId: number): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const header = Buffer.alloc(PLACES.end);
    const { bytesRead } = await handle.read(header, 0, header.length, 0);
    if (bytesRead < header.length || header.toString('latin1', 0, MAGIC.length) !== MAGIC) return false;
    const pageSize = header.readUInt16BE(PLACES.pageSize);
    // One page alone holds no table yet, and may become anybody's.
    return size > (pageSize === 1 ? 65_536 : pageSize) && header.readUInt32BE(PLACES.applicationId) !== applicationId;
  } finally {
    await handle.close();
  }
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
