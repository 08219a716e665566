/** Looking for processes by what their command line says, as `ps` would: what is dead and only not collected does not count. */
import { readdirSync, readFileSync } from 'node:fs';

/** Pids of the processes whose arguments have that word. */
export function processesWith(word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        // An empty command line is that of a zombie.
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word);
      } catch {
        return false; // It ended meanwhile.
      }
    })
    .map(Number);
}
