/**
 * The processes of one command: finding them all, whatever they did to get away, and ending them (TL4).
 *
 * A command leads a session and a group of its own. On Linux every process is asked whether it is of that session or
 * group, or bears the command's mark, in its environment or in the name of a file that it has open: so is found what moved
 * to a group or a session of its own, and what was started without that environment. Only what gave up all of them is not.
 * Elsewhere the group is all that is known. Source: proc(5), /proc/PID/stat fields 3, 5, 6 and 22, environ and fd.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setImmediate as breathe, setTimeout as delay } from 'node:timers/promises';

/** The variable that marks what a command starts. */
export const MARK = 'TURNKEEP_COMMAND';
/** The descriptor that what a command starts has open: of a file whose name has the mark. One that few programs use. */
export const HELD = 9;

export interface Wanted {
  mark: string;
  /** Pid of its first process, also its group and session; null when it is not known, or may be another one's by now. */
  leader: number | null;
}

const STEP_MS = 100;
/** How often killing is repeated, for what starts processes faster than it can be looked at. */
const MOST_KILLS = 100;
/** Processes that are looked at before others have their turn. */
const SLICE = 64;

/**
 * Ends all processes of a command: TERM, and KILL for what is left after the grace.
 * @param graceMs how long they have to end by themselves
 * @returns whether none is left
 */
export async function endProcesses(wanted: Wanted, graceMs: number): Promise<boolean> {
  const strangers = new Set<string>();
  const asked = new Set<number>();
  for (let waited = 0; waited < graceMs; waited += STEP_MS) {
    const pids = await alive(wanted, strangers);
    if (pids.length === 0) return true;
    // Each is asked once; what was started since the last look is asked now.
    for (const pid of pids) if (!asked.has(pid)) send(pid, 'SIGTERM');
    for (const pid of pids) asked.add(pid);
    await delay(STEP_MS);
  }
  for (let round = 0; round < MOST_KILLS; round++) {
    const pids = await alive(wanted, strangers);
    if (pids.length === 0) return true;
    // The group at once first: what forks meanwhile is hit with it.
    if (wanted.leader !== null) send(-wanted.leader, 'SIGKILL');
    for (const pid of pids) send(pid, 'SIGKILL');
    await delay(STEP_MS);
  }
  return false;
}

/** Sends a signal to a process, or with a negative number to a group; 0 only asks. @returns whether it could be sent */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
    return false;
  }
}

/**
 * Pids of the command's processes that still run; a negative one stands for a group.
 * @param strangers processes that were seen to bear no mark of it, by pid and start; grows
 */
async function alive(wanted: Wanted, strangers: Set<string>): Promise<number[]> {
  const names = processNames();
  if (names === null) return wanted.leader !== null && send(-wanted.leader, 0) ? [-wanted.leader] : [];
  const found: number[] = [];
  let looked = 0;
  for (const name of names) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    if (isOf(name, wanted, strangers)) found.push(Number(name));
    looked += 1;
    if (looked % SLICE === 0) await breathe();
  }
  return found;
}

/** What stands in the process table; null where there is none to read. */
function processNames(): string[] | null {
  if (process.platform !== 'linux') return null;
  try {
    return readdirSync('/proc');
  } catch (error) {
    if (typeof (error as NodeJS.ErrnoException).code === 'string') return null;
    throw error;
  }
}

function isOf(pid: string, { mark, leader }: Wanted, strangers: Set<string>): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Behind the program's name, which may hold anything: field 3 is the state, 5 the group, 6 the session, 22 the start.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return false;
    if (leader !== null && (Number(fields[2]) === leader || Number(fields[3]) === leader)) return true;
    const stranger = `${pid}/${fields[19]}`;
    if (strangers.has(stranger)) return false;
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    if (environment.split('\0').includes(`${MARK}=${mark}`) || heldBy(pid).includes(mark)) return true;
    // A process that is just becoming another program shows none for a moment.
    if (environment !== '') strangers.add(stranger);
    return false;
  } catch (error) {
    // It ended meanwhile, or is another user's.
    if (typeof (error as NodeJS.ErrnoException).code === 'string') return false;
    throw error;
  }
}

/** Name of the file that a process holds; empty where it has none. */
function heldBy(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${HELD}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
