// @ts-check
/** CPU time and memory of a process and all its descendants, from /proc (Linux). */
import { readdirSync, readFileSync } from 'node:fs';

const TICK_MS = 10; // USER_HZ is 100 on every Linux that Node runs on

/** @param {number} pid @returns {number[]} */
export function processTree(pid) {
  /** @type {number[]} */
  const found = [];
  const waiting = [pid];
  while (waiting.length) {
    const next = /** @type {number} */ (waiting.pop());
    try {
      const children = readdirSync(`/proc/${next}/task`).flatMap((task) =>
        readFileSync(`/proc/${next}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
      );
      found.push(next);
      waiting.push(...children);
    } catch {
      // The process ended while it was looked at.
    }
  }
  return found;
}

/** @param {number} pid resident memory in MiB */
export function rssMb(pid) {
  let kib = 0;
  for (const member of processTree(pid)) {
    try {
      kib += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${member}/status`, 'utf8'))?.[1] ?? 0);
    } catch {
      /* ended */
    }
  }
  return kib / 1024;
}

/** @param {number} pid user and system time in ms, ended children included */
export function cpuMs(pid) {
  let ticks = 0;
  for (const member of processTree(pid)) {
    try {
      const stat = readFileSync(`/proc/${member}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // utime, stime, cutime, cstime
      ticks += Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14]);
    } catch {
      /* ended */
    }
  }
  return ticks * TICK_MS;
}

/** @param {number} pid */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** CPU ms that all processes of the machine have used, and that a hypervisor took. */
export function machineCpuMs() {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return { busy: (user + nice + system + irq + softirq) * TICK_MS, steal: steal * TICK_MS };
}
