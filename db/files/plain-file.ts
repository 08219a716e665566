/** Files as they are found in a home that anybody may have filled: a pipe holds up whoever opens it, a device has no end. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isMissing } from './atomic.ts';

/** Opens a file for reading. @returns null where something else stands under its name. @throws the system's error */
export const openPlainFile = (file: string): Promise<FileHandle | null> => openPlain(file, 0);

/** The same without following a link. @returns null also where nothing stands, or a link does */
export async function openOwnFile(file: string): Promise<FileHandle | null> {
  try {
    return await openPlain(file, constants.O_NOFOLLOW);
  } catch (error) {
    if (isMissing(error) || isLink(error)) return null;
    throw error;
  }
}

async function openPlain(file: string, more: number): Promise<FileHandle | null> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | more);
  try {
    if ((await handle.stat()).isFile()) return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
  await handle.close();
  return null;
}

/** All of a file. @returns null where something else stands under its name. @throws the system's error */
export async function readPlainFile(file: string): Promise<Buffer | null> {
  const handle = await openPlainFile(file);
  try {
    return handle && (await handle.readFile());
  } finally {
    await handle?.close();
  }
}

const isLink = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ELOOP';
