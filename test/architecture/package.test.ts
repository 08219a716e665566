// Holds what a person who installs the package relies on: its name, licence, contents and versions.

import { execFile } from 'node:child_process';
import { appendFile, cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ROOT, textOf } from './source.ts';

const run = promisify(execFile);

type Versions = Record<string, string>;
interface Manifest {
  name: string;
  license: string;
  type: string;
  bin: Versions;
  files: string[];
  engines: Versions;
  scripts: Versions;
  dependencies: Versions;
  optionalDependencies?: Versions;
  devDependencies: Versions;
}

const manifest = JSON.parse(textOf('package.json')) as Manifest;
const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, { resolved?: string }> };

/** The documents of the project: those at the top and below docs/. */
async function documents(): Promise<string[]> {
  const top = (await readdir(ROOT)).filter((name) => name.endsWith('.md'));
  const below = await readdir(join(ROOT, 'docs'), { recursive: true }).catch(() => []);
  return [...top, ...below.filter((name) => name.endsWith('.md')).map((name) => join('docs', name))];
}

/** A path on one person's or one build machine's disk; `/home/you` is an example, not a machine. */
const MACHINE_PATH = /(?<![\w.])\/(root|Users|home\/(?!you\b|user\b)\w+|work|builds|private|var\/folders)\//;

describe('the package', () => {
  it('[HO5] is called turnkeep, is MIT, and carries what it needs to run', () => {
    expect(manifest).toMatchObject({ name: 'turnkeep', license: 'MIT', type: 'module' });
    expect(manifest.bin).toEqual({ turnkeep: 'dist/server/main.js' });
    expect(manifest.files).toEqual(expect.arrayContaining(['dist', 'static', 'db/migrations', 'README.md', 'LICENSE']));
    expect(manifest.engines.node).toBe('^20.19.0 || >=22.14.0');
    expect(textOf('LICENSE')).toMatch(/^MIT License\n\nCopyright \(c\) 2026 The Turnkeep authors\n/);
  });

  it('[HO5] pins every dependency, so that two installs are the same', () => {
    const all = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.devDependencies };
    // The driver alone is a range: no single version has ready-made binaries for every Node that is supported.
    const { 'better-sqlite3': driver, ...others } = all;
    expect(driver).toMatch(/^~?12\.9\.0( \|\| \^13\.2\.0)?$/);
    for (const [name, version] of Object.entries(others)) expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  });

  it('[HO5] locks its packages without naming the registry they came from', () => {
    // Without addresses the lock installs from whatever registry a machine uses.
    expect(Object.values(lock.packages).filter((entry) => entry.resolved !== undefined)).toEqual([]);
  });

  it('[HO5] every script that runs the project sets it up first', () => {
    for (const name of ['start', 'test', 'test:long', 'test:agents', 'check']) {
      expect(manifest.scripts[name], name).toMatch(/^node scripts\/setup\.mjs (install|start|test|long) && /);
    }
    expect(manifest.scripts.start, 'signals sent to npm reach the server').toMatch(/&& exec node /);
  });

  it('[HO5] the vendored libraries are those of the installed packages, and a changed byte is found', async () => {
    await run(process.execPath, ['scripts/vendor.mjs', '--check'], { cwd: ROOT });
    const copy = await mkdtemp(join(tmpdir(), 'turnkeep-vendor-'));
    onTestFinished(() => rm(copy, { recursive: true }));
    await cp(join(ROOT, 'static/vendor'), copy, { recursive: true });
    await appendFile(join(copy, 'index.js'), ' ');
    const check = run(process.execPath, ['scripts/vendor.mjs', '--check', copy], { cwd: ROOT });
    await expect(check).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('index.js differs') });
  });

  it('[HO5] no document speaks of the machine it was written on', async () => {
    const paths = await documents();
    expect(paths).toContain('README.md');
    expect('see /home/someone/notes').toMatch(MACHINE_PATH);
    const mentions = paths.filter((path) => MACHINE_PATH.test(textOf(path)));
    expect(mentions).toEqual([]);
  });
});
