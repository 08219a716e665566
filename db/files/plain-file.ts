/** Files as they are found in a home that anybody may have filled: a pipe holds up whoever opens it, a device has no end. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Opens a file for reading. @returns null where something else stands under its name. @throws the system's error */
export async function openPlainFile(file: string): Promise<FileHandle | null> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
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
