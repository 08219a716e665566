// The lock that lets one set-up at a time work in a clone: `npm start` and `npm test` begun together must not delete
// each other's half-installed packages. It owns `.tmp/setup.lock/`, a folder with one file that names the owner.
//
// The folder is filled before it gets its name, so a lock without an owner does not exist. The lock of a dead process
// is renamed to a name made from that owner and left there: a second process that meant the same dead owner cannot
// then rename a fresh lock away, because a folder is never renamed over one that is not empty.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from './say.mjs';

const POLL_MS = 200;

/** When a process was started, in clock ticks since boot; empty where the system does not tell. */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** Whether the process that wrote an owner file still runs; a pid that was given to another process is not it. */
function isAlive(owner) {
  const [pid, start] = owner.split('-');
  if (Number(pid) === process.pid) return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return start === startOf(pid);
}

/** The owner of a lock as `<pid>-<start time>-<milliseconds>`, or undefined when there is no lock. */
function ownerOf(folder) {
  try {
    return readFileSync(join(folder, 'owner'), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Takes the lock if it is free. */
function take(folder, owner) {
  const mine = `${folder}.${owner}`;
  mkdirSync(mine, { recursive: true });
  writeFileSync(join(mine, 'owner'), owner);
  try {
    renameSync(mine, folder);
    return true;
  } catch (error) {
    rmSync(mine, { recursive: true, force: true });
    if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the lock of a dead owner out of the way; it does not matter who of several does it. */
function setAside(folder, owner) {
  try {
    renameSync(folder, `${folder}.dead-${owner}`);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
  }
}

/**
 * Runs `work` while holding the set-up lock of this clone; waits for as long as another living process holds it.
 *
 * @param root the clone
 * @param work what to do under the lock; its result is returned
 */
export async function withLock(root, work) {
  const folder = join(root, '.tmp', 'setup.lock');
  const owner = `${process.pid}-${startOf(process.pid)}-${Date.now()}`;
  let told = false;
  while (!take(folder, owner)) {
    const other = ownerOf(folder);
    if (other !== undefined && !isAlive(other)) {
      setAside(folder, other);
    } else {
      if (other !== undefined && !told)
        say(`waiting for another set-up of this folder (process ${other.split('-')[0]})`);
      told = told || other !== undefined;
      await sleep(POLL_MS);
    }
  }
  try {
    return await work();
  } finally {
    if (ownerOf(folder) === owner) rmSync(folder, { recursive: true, force: true });
  }
}
