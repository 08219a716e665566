/** Looking for processes, as `ps` would: what is dead and only not collected does not count. */
import { readdirSync, readFileSync } from 'node:fs';

/** Pids of the processes whose arguments have that word. */
export const processesWith = (word: string): number[] => processesBy(['cmdline'], word);

/** Pids of the processes whose arguments or environment have that word: also of what was started under another name. */
export const processesKnowing = (word: string): number[] => processesBy(['cmdline', 'environ'], word);

function processesBy(files: readonly string[], word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        // An empty command line is that of a zombie.
        return files.some((file) => readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(word));
      } catch {
        return false; // It ended meanwhile.
      }
    })
    .map(Number);
}

/** Whether a process runs; one that is dead and only not collected does not. */
export function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1') !== '';
  } catch {
    return false;
  }
}
