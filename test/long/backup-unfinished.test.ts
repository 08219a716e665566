/** Backups and restores that are ended in the middle: killed, interrupted, or out of room. */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { cp, mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { backedUp, fails, quietHome, succeeds } from '../backup/homes.ts';
import { temporaryFolder } from '../support/home.ts';
import { startMain } from '../support/main-process.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { smallDisk, whyNoSmallDisk } from '../support/small-disk.ts';
import { until } from '../support/until.ts';

/** A home whose backup takes a while: megabytes that cannot be made smaller. */
async function largeHome(megabytes: number): Promise<string> {
  const home = await quietHome(1);
  await mkdir(path.join(home, 'files'));
  for (let n = 0; n < megabytes; n += 1) await writeFile(path.join(home, 'files', `${n}`), randomBytes(1_048_576));
  return home;
}

/** What a command has written so far, in the folder that says that it is unfinished: how many files. */
function unfinishedIn(folder: string): number {
  const names = readdirSync(folder, { recursive: true }) as string[];
  return names.filter((name) => name.includes('.unfinished.')).length;
}

/** Ends a command when it has written so many files; false when it was done before that. */
async function endAt(args: string[], folder: string, files: number, signal: NodeJS.Signals) {
  const main = startMain(args);
  let isOver = false;
  void main.exited.then(() => {
    isOver = true;
  });
  await until(`${files} files are written`, () => {
    try {
      return isOver || unfinishedIn(folder) >= files;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false; // It moved while it was looked at.
      throw error;
    }
  });
  main.process.kill(signal);
  return { how: await main.exited, stderr: main.stderr() };
}

const FILES = 24;

describe('a backup or restore that is ended in the middle', () => {
  it('[BK3][BK4] by kill -9 leaves nothing under its name, and the next one works', async () => {
    const seed = testSeed();
    console.info(`seed ${seed}`);
    const random = seededRandom(seed);
    const home = await largeHome(FILES);
    const file = await backedUp(home);
    let killed = 0;
    for (let round = 0; round < 6; round += 1) {
      const folder = await temporaryFolder();
      const isRestore = round % 2 === 1;
      const target = path.join(folder, isRestore ? 'home' : 'my.tar.gz');
      const args = isRestore ? ['restore', file, '--home', target] : ['backup', '--home', home, '--to', target];
      const { how } = await endAt(args, folder, 1 + Math.floor(random() * FILES), 'SIGKILL');
      if (how === 'SIGKILL') killed += 1;
      // It was faster, or there is nothing that could be taken for one.
      expect(existsSync(target), `seed ${seed}, round ${round}`).toBe(how === 0);
      for (const name of await readdir(folder)) if (how !== 0) expect(name).toContain('.unfinished.');
      if (how !== 0) await succeeds(...args);
      if (isRestore) expect(existsSync(path.join(target, 'state.db'))).toBe(true);
      else await succeeds('restore', target, '--check');
    }
    console.info(`seed ${seed}: ${killed} of 6 were killed in the middle`);
    expect(killed, `seed ${seed}`).toBeGreaterThan(2);
  }, 120_000);

  it.each(['SIGINT', 'SIGTERM'] as const)('[BK3][BK4] by %s ends with 130 and leaves nothing', async (signal) => {
    const home = await largeHome(FILES);
    const file = await backedUp(home);
    const folder = await temporaryFolder();
    for (const args of [
      ['backup', '--home', home, '--to', path.join(folder, 'deep', 'my.tar.gz')],
      ['restore', file, '--home', path.join(folder, 'deep', 'home')],
    ]) {
      const { how, stderr } = await endAt(args, folder, 3, signal);
      expect([how, stderr]).toEqual([130, 'turnkeep: Interrupted. Nothing was left behind.\n']);
      expect(await readdir(folder)).toEqual([]);
    }
  });

  const reason = whyNoSmallDisk();
  it.skipIf(reason !== null)('[BK3][BK4] by a full disk says so and leaves nothing', async () => {
    const disk = smallDisk(24);
    const home = await largeHome(8);
    const file = await backedUp(home);
    // No room for the copy, for the archive beside it, or for what is unpacked.
    for (const megabytes of [0.02, 4, 9, 14]) {
      disk.fill(megabytes * 1_048_576);
      const to = path.join(disk.home, 'my.tar.gz');
      expect(await fails(1, 'backup', '--home', home, '--to', to)).toContain('the disk is full');
      if (megabytes < 8) {
        const target = path.join(disk.home, 'restored');
        expect(await fails(1, 'restore', file, '--home', target)).toContain('the disk is full');
      }
      expect(await readdir(disk.home)).toEqual([]);
      disk.free();
    }
    // A home on the full disk itself is as it was, and can be taken elsewhere.
    const there = path.join(disk.home, 'there');
    await cp(home, there, { recursive: true });
    disk.fill(100_000);
    expect(await fails(1, 'backup', '--home', there)).toContain('the disk is full');
    expect(await readdir(there)).toEqual(await readdir(home));
    await backedUp(there);
  });

  it.skipIf(reason !== null)('[BK4] a restore goes into a mounted disk, and not in place of one', async () => {
    const disk = smallDisk(8);
    const file = await backedUp(await quietHome(1));
    await rmdir(disk.home);
    const mounted = path.dirname(disk.home);
    expect(await fails(1, 'restore', file, '--home', mounted)).toContain(`(--home ${disk.home})`);
    expect(await readdir(mounted)).toEqual([]);
    await succeeds('restore', file, '--home', disk.home);
  });
});
