/** Reading what may not be there: that is an answer, every other trouble is the system's error. */
import { readdir } from 'node:fs/promises';
import { isMissing } from './atomic.ts';

/** What is read of a file or about it; null when it is not there. */
export async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Names of the entries of a folder, in order; none where there is no folder. */
export const namesIn = async (folder: string): Promise<string[]> => ((await orNull(readdir(folder))) ?? []).sort();
