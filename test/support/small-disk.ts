/** A disk of a few megabytes that can be filled up: a file system in memory, mounted for one test. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

export interface SmallDisk {
  /** An empty folder on it, for a home. */
  home: string;
  /** Takes all room that is left, but for this many bytes. */
  fill(leave?: number): void;
  /** Gives it back. */
  free(): void;
}

const mount = (folder: string, megabytes: number): void => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', folder], { stdio: 'pipe' });
};

/** Why no disk can be mounted here; null when one can. */
export function whyNoSmallDisk(): string | null {
  if (process.platform !== 'linux') return 'only Linux mounts a file system in memory';
  const folder = mkdtempSync(path.join(tmpdir(), 'turnkeep-mount-'));
  try {
    mount(folder, 1);
    execFileSync('umount', [folder], { stdio: 'pipe' });
    return null;
  } catch {
    return 'mounting a file system needs rights that this user does not have';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Mounts a disk for the test that runs. */
export function smallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnkeep-disk-'));
  mount(folder, megabytes);
  onTestFinished(() => {
    execFileSync('umount', ['-l', folder], { stdio: 'pipe' });
    rmSync(folder, { recursive: true, force: true });
  });
  const home = path.join(folder, 'home');
  mkdirSync(home);
  const filler = path.join(folder, 'filler');
  return {
    home,
    fill(leave = 0) {
      const { bavail, bsize } = statfsSync(folder);
      writeFileSync(filler, Buffer.alloc(Math.max(0, Number(bavail) * Number(bsize) - leave)));
    },
    free: () => rmSync(filler, { force: true }),
  };
}
