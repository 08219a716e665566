/** How much room is left on the disk that a folder is on. */
import { statfs } from 'node:fs/promises';

/** Bytes that this user may still write there. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
