/**
 * Which process is which: a pid alone can be given again after its process died, so it is paired with the start time
 * that the system itself tells, and on Linux with the boot that this time counts from (LE3).
 * Sources: proc(5), field 22 of /proc/PID/stat; `ps -o lstart=` elsewhere.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ProcessIdentity } from '../core/terms.ts';

/** What the system says of a pid: when its process started; that it only waits to be collected; nothing at all. */
export type Seen = { start: string } | 'zombie' | 'unseen';

/** How processes are looked at: the port behind which a test can let a pid die and be given again. */
export interface ProcessTable {
  look(pid: number): Seen;
  /** Whether there is a process with this pid, asked another way. */
  exists(pid: number): boolean;
}

/**
 * Whether a recorded process still lives. A pid with another start time is another process. One that cannot be dated,
 * now or when it was recorded, counts as alive while its pid exists: what is merely hidden from us is not dead.
 */
export function createIsAlive({ look, exists }: ProcessTable): (recorded: ProcessIdentity) => boolean {
  return ({ pid, start }) => {
    const seen = look(pid);
    if (seen === 'zombie') return false;
    if (seen === 'unseen') return exists(pid);
    return start === null || start === seen.start;
  };
}

/** The process table of Linux. @param proc where it is mounted; processes of others may be hidden in it */
export function linuxProcesses(proc = '/proc'): ProcessTable['look'] {
  return (pid) => {
    try {
      const stat = readFileSync(`${proc}/${pid}/stat`, 'utf8');
      // The second field is the program's name in parentheses, which may hold anything.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z' || fields[0] === 'X') return 'zombie'; // Dead, only not yet waited for.
      return { start: `${readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim()}/${fields[19]}` };
    } catch (error) {
      if (!hasCode(error)) throw error;
      return 'unseen';
    }
  };
}

/** The words of `ps` must be the same whoever asks: two servers may run with different languages and time zones. */
const PS_ENV = { LC_ALL: 'C', TZ: 'UTC' };

function otherProcesses(pid: number): Seen {
  try {
    const args = ['-o', 'stat=,lstart=', '-p', String(pid)];
    const [state = '', ...start] = execFileSync('/bin/ps', args, { encoding: 'utf8', timeout: 2000, env: PS_ENV })
      .trim()
      .split(/\s+/);
    if (state.startsWith('Z')) return 'zombie';
    return start.length === 0 ? 'unseen' : { start: start.join(' ') };
  } catch {
    return 'unseen'; // It ends with an error for a pid that is not there, and where it cannot run.
  }
}

const hasCode = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'code' in error && typeof error.code === 'string';

/** Asked by a signal that does nothing: only "no such process" means that there is none. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error) || error.code !== 'ESRCH';
  }
}

const system: ProcessTable = { look: process.platform === 'linux' ? linuxProcesses() : otherProcesses, exists };

/** Which process has a pid now. */
export function identityOf(pid: number): ProcessIdentity {
  const seen = system.look(pid);
  return { pid, start: typeof seen === 'object' ? seen.start : null };
}

/** This process. */
export const ownIdentity = (): ProcessIdentity => identityOf(process.pid);

/** Whether a recorded process of this system still lives. */
export const isAlive = createIsAlive(system);
