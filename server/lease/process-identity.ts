/**
 * Which process is which: a pid alone can be given again after its process died, so it is paired with the start time
 * that the system itself tells, and on Linux with the boot that this time counts from (LE3).
 * Sources: proc(5), field 22 of /proc/PID/stat; `ps -o lstart=` elsewhere.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ProcessIdentity } from '../core/terms.ts';

/** Start of a process in the system's own terms; null when the system would not say, undefined when it is gone. */
function startOf(pid: number): string | null | undefined {
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The second field is the program's name in parentheses, which may hold anything.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z' || fields[0] === 'X') return undefined; // Dead, only not yet waited for.
      return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`;
    } catch (error) {
      return isGone(error) ? undefined : null;
    }
  }
  try {
    return (
      execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', timeout: 2000 }).trim() || undefined
    );
  } catch {
    return exists(pid) ? null : undefined;
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH');

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isGone(error);
  }
}

/** This process. */
export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, start: startOf(process.pid) ?? null };
}

/**
 * Whether a recorded process still lives. A pid with another start time is another process; a start time that cannot be
 * read or was never recorded counts as alive while the pid exists.
 */
export function isAlive(recorded: ProcessIdentity): boolean {
  const start = startOf(recorded.pid);
  if (start === undefined) return false;
  return start === null || recorded.start === null || start === recorded.start;
}
