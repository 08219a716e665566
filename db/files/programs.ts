/**
 * Programs on PATH. Only looks, runs nothing. An entry of PATH that is missing, unreadable or in the way is passed over, as
 * a shell does; one that hangs costs no more than the time limit.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const LOOK_TIMEOUT_MS = 2000;

/**
 * Whether a program can be run: an executable regular file of that absolute path, or of that name on PATH.
 * @param pathVariable as the environment has it; entries that are relative do not count, for they would mean another folder
 *   in each workspace
 */
export async function isProgram(program: string, pathVariable: string): Promise<boolean> {
  if (path.isAbsolute(program)) return isExecutable(program);
  const folders = new Set(pathVariable.split(path.delimiter).filter((folder) => path.isAbsolute(folder)));
  for (const folder of folders) if (await isExecutable(path.join(folder, program))) return true;
  return false;
}

async function isExecutable(file: string): Promise<boolean> {
  const ends = new AbortController();
  const look = async (): Promise<boolean> => {
    if (!(await stat(file)).isFile()) return false;
    await access(file, constants.X_OK);
    return true;
  };
  try {
    return await Promise.race([look(), delay(LOOK_TIMEOUT_MS, false, { signal: ends.signal, ref: false })]);
  } catch {
    return false; // Not there, or not for us.
  } finally {
    ends.abort();
  }
}
