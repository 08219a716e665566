/** Which process is which: what the process table says, what it hides, and real processes that live, die and wait. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import {
  createIsAlive,
  isAlive,
  linuxProcesses,
  ownIdentity,
  type ProcessTable,
  type Seen,
} from '../../server/lease/process-identity.ts';
import { temporaryFolder } from '../support/home.ts';
import { until } from '../support/until.ts';

const table = (seen: Seen, exists: boolean): ProcessTable => ({ look: () => seen, exists: () => exists });
const RECORDED = { pid: 7, start: 'boot/42' };

it.each<[string, Seen, boolean, boolean]>([
  ['a process with the recorded start is the one', { start: 'boot/42' }, true, true],
  ['one with another start is another one', { start: 'boot/43' }, true, false],
  ['one that is hidden from us, but there, cannot be dated: alive', 'unseen', true, true],
  ['one that is nowhere is dead', 'unseen', false, false],
  ['one that only waits to be collected is dead', 'zombie', true, false],
])('[LE3] %s', (_title, seen, exists, alive) => {
  expect(createIsAlive(table(seen, exists))(RECORDED)).toBe(alive);
});

it('[LE3] a record without a start is believed while its pid is there', () => {
  expect(createIsAlive(table({ start: 'boot/43' }, true))({ pid: 7, start: null })).toBe(true);
  expect(createIsAlive(table('unseen', false))({ pid: 7, start: null })).toBe(false);
});

it('[LE3] on Linux a process is dated by its own file and the boot, whatever its name is', async () => {
  const proc = await temporaryFolder();
  const stat = async (pid: number, text: string) => {
    await mkdir(path.join(proc, String(pid)), { recursive: true });
    await writeFile(path.join(proc, String(pid), 'stat'), text);
  };
  const numbers = Array.from({ length: 30 }, (_, index) => index + 4).join(' ');
  await stat(7, `7 (a) b (c) S ${numbers}`);
  await stat(8, `8 (gone) Z ${numbers}`);
  await stat(9, `9 (on its way) X ${numbers}`);
  const look = linuxProcesses(proc);
  // Without the boot nothing can be dated: that is no proof of a death.
  expect(look(7)).toBe('unseen');
  await mkdir(path.join(proc, 'sys/kernel/random'), { recursive: true });
  await writeFile(path.join(proc, 'sys/kernel/random/boot_id'), 'the-boot\n');
  expect([7, 8, 9, 10].map(look)).toEqual([{ start: 'the-boot/22' }, 'zombie', 'zombie', 'unseen']);
});

it('[LE3] a living process is alive under its own start only, and a killed one is dead at once', async () => {
  const own = ownIdentity();
  expect(own.start).not.toBeNull();
  expect(isAlive(own)).toBe(true);
  expect(isAlive({ ...own, start: 'another boot/1' })).toBe(false);
  // Not ours to signal, but there.
  expect(isAlive({ pid: 1, start: null })).toBe(true);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const pid = child.pid!;
  expect(isAlive({ pid, start: null })).toBe(true);
  child.kill('SIGKILL');
  await until('it is dead', () => !isAlive({ pid, start: null }));
});
