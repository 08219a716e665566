/** Archives that are not what was written: damaged, cut, or made by somebody else. None becomes a home, and nothing is left. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../db/files/archive-manifest.ts';
import { ArchiveRefused } from '../../db/files/archive-refused.ts';
import { BLOCK, END, headerOf, paddingOf } from '../../db/files/archive-tar.ts';
import { createProgress } from '../../server/backup/progress.ts';
import { restore } from '../../server/backup/restore.ts';
import { temporaryFolder } from '../support/home.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { backedUp, fails, namesIn, quietHome, restored, succeeds } from './homes.ts';

/** Why an archive was refused. Nothing of it is left, beside it or at its place. */
async function refusalOf(bytes: Buffer): Promise<ArchiveRefused> {
  const folder = await temporaryFolder();
  const file = path.join(folder, 'backup.tar.gz');
  await writeFile(file, bytes);
  const parts = { signal: new AbortController().signal, progress: createProgress(null), isAlive: () => false };
  const error = await restore({ file, home: path.join(folder, 'deep', 'home') }, parts).catch((thrown) => thrown);
  expect(await readdir(folder)).toEqual(['backup.tar.gz']);
  if (!(error instanceof ArchiveRefused)) throw new Error('it was not refused', { cause: error });
  return error;
}

/** Whether what is in two archives is the same, byte for byte. */
function isSameInside(one: Buffer, other: Buffer): boolean {
  try {
    return gunzipSync(one).equals(gunzipSync(other));
  } catch {
    return false;
  }
}

interface Part {
  name: string;
  bytes: Buffer;
}

/** The files of an archive that we wrote. */
function partsOf(archive: Buffer): Part[] {
  const tar = gunzipSync(archive);
  const parts: Part[] = [];
  for (let at = 0; tar[at] !== 0; ) {
    const text = (from: number, width: number) => tar.toString('latin1', at + from, at + from + width).split('\0')[0]!;
    const size = Number.parseInt(text(124, 12), 8);
    const name = [text(345, 155), text(0, 100)].filter((one) => one !== '').join('/');
    parts.push({ name, bytes: tar.subarray(at + BLOCK, at + BLOCK + size) });
    at += BLOCK + size + paddingOf(size);
  }
  return parts;
}

const packed = (parts: readonly Part[]): Buffer =>
  gzipSync(
    Buffer.concat([
      ...parts.flatMap(({ name, bytes }) => [
        headerOf({ name, size: bytes.length, mode: 0o600, mtime: 0 }),
        bytes,
        Buffer.alloc(paddingOf(bytes.length)),
      ]),
      END,
    ]),
  );

/** The archive with another manifest. */
function withManifest(parts: readonly Part[], change: (manifest: Manifest) => void): Part[] {
  const manifest = JSON.parse(parts[0]!.bytes.toString());
  change(manifest);
  return [{ name: parts[0]!.name, bytes: Buffer.from(JSON.stringify(manifest)) }, ...parts.slice(1)];
}

const fileOf = (name: string, bytes: Buffer) => ({
  path: name,
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});

describe('an archive that is damaged', () => {
  it('[BK5] at any byte, or cut off at any, is refused, and nothing of it is left', async () => {
    const seed = testSeed();
    console.info(`seed ${seed}`);
    const random = seededRandom(seed);
    const whole = await readFile(await backedUp(await quietHome()));
    let harmed = 0;
    for (let n = 0; n < 60; n += 1) {
      // Not the time and the system in the head of a gzip file, which say nothing of its content.
      const at = [0, 1, 2, 3][n] ?? 10 + Math.floor(random() * (whole.length - 19));
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 1 + Math.floor(random() * 255);
      // Some bits are nobody's: between two blocks of compressed data, and hints in the head.
      if (isSameInside(damaged, whole)) continue;
      harmed += 1;
      const what = `seed ${seed}: byte ${at} of ${whole.length}`;
      await expect(refusalOf(damaged), what).resolves.toMatchObject({ kind: 'damaged' });
    }
    expect(harmed).toBeGreaterThan(50);
    for (const back of [8, 4, 1]) {
      const damaged = Buffer.from(whole);
      damaged[whole.length - back]! ^= 1;
      await expect(refusalOf(damaged)).resolves.toMatchObject({ kind: 'damaged' });
    }
    for (let n = 0; n < 30; n += 1) {
      const length = [0, 1, 10, whole.length - 1][n] ?? Math.floor(random() * whole.length);
      const what = `seed ${seed}: ${length} of ${whole.length} bytes`;
      await expect(refusalOf(whole.subarray(0, length)), what).resolves.toMatchObject({ kind: 'damaged' });
    }
  });

  it('[BK5] is told with its own exit code by both commands, and --check leaves nothing', async () => {
    const file = await backedUp(await quietHome(1));
    const { stdout } = await succeeds('restore', file, '--check');
    expect(stdout).toMatch(/ is sound: 1 conversation with 4 messages, as of \d{4}-/);
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, bytes.length / 2));
    const home = path.join(await temporaryFolder(), 'home');
    for (const more of [['--check'], ['--home', home], ['--home', home, '--json']]) {
      expect(await fails(2, 'restore', file, ...more)).toContain(`${file} is not restored: it is damaged or cut off`);
    }
    expect(await readdir(path.dirname(home))).toEqual([]);
    await writeFile(file, 'no archive at all');
    await fails(2, 'restore', file, '--home', home);
    expect(await fails(1, 'restore', `${file}x`, '--home', home)).toContain(`${file}x is not there`);
  });
});

describe('an archive that somebody else made', () => {
  it('[BK5] is refused when it leads out of the home, or holds what its manifest does not say', async () => {
    const whole = partsOf(await readFile(await backedUp(await quietHome(1))));
    const evil = Buffer.from('evil');
    for (const name of ['../evil', '/evil', 'a/../../evil', 'a//evil', './evil', 'a\\evil', '']) {
      const parts = withManifest(whole, ({ files }) => void files.unshift(fileOf(name, evil)));
      parts.splice(1, 0, { name: `home/${name}`, bytes: evil });
      expect((await refusalOf(packed(parts))).reason, name).toContain('no place in a home');
    }
    const [manifest, first, ...rest] = whole;
    const cases: [why: RegExp, parts: Part[]][] = [
      [/not in its manifest/, [...whole, { name: 'home/more', bytes: evil }]],
      [/not in its manifest/, [...whole, { name: '../more', bytes: evil }]],
      [/not in its manifest/, [...whole, first!]],
      [/is missing/, [manifest!, ...rest]],
      [/another size/, [manifest!, { ...first!, bytes: evil }, ...rest]],
      [/is damaged/, [manifest!, { ...first!, bytes: Buffer.alloc(first!.bytes.length, 'x') }, ...rest]],
      [/no backup/, whole.slice(1)],
      [/no backup/, withManifest(whole, (one) => Object.assign(one, { format: 'other' }))],
      [/manifest is damaged/, withManifest(whole, (one) => Object.assign(one, { files: 'none' }))],
      [/twice/, withManifest(whole, ({ files }) => void files.push(files[0]!))],
      [/number of sessions/, withManifest(whole, (one) => Object.assign(one, { sessions: 7 }))],
      [/no database/, withManifest(whole, (one) => Object.assign(one, { files: one.files.slice(0, -1) })).slice(0, -1)],
    ];
    for (const [why, parts] of cases) expect((await refusalOf(packed(parts))).reason).toMatch(why);
    // A link in place of a file, with a sum that is right.
    const tar = gunzipSync(packed(whole));
    const at = BLOCK + manifest!.bytes.length + paddingOf(manifest!.bytes.length);
    tar.write('2', at + 156);
    tar.write('        ', at + 148);
    const sum = tar.subarray(at, at + BLOCK).reduce((all, byte) => all + byte, 0);
    tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148);
    expect((await refusalOf(gzipSync(tar))).reason).toContain('no regular file');
    // The same is taken when nothing is wrong with it.
    const file = path.join(await temporaryFolder(), 'again.tar.gz');
    await writeFile(file, packed(whole));
    await restored(file);
  });

  it('[BK5] is refused when a newer Turnkeep wrote it, or its database or a conversation is none', async () => {
    const whole = partsOf(await readFile(await backedUp(await quietHome(1))));
    const newer = withManifest(whole, (one) => Object.assign(one, { schema: 999 }));
    expect(await refusalOf(packed(newer))).toMatchObject({ kind: 'newer', reason: expect.stringContaining('999') });
    const form = withManifest(whole, (one) => Object.assign(one, { format_version: 2 }));
    expect(await refusalOf(packed(form))).toMatchObject({ kind: 'newer' });
    /** The archive with another content of a file, and a manifest that says so. */
    const replaced = (is: (name: string) => boolean, change: (bytes: Buffer) => Buffer): Buffer => {
      const parts = whole.map((one) => (is(one.name) ? { ...one, bytes: change(one.bytes) } : one));
      const files = parts.slice(1).map(({ name, bytes }) => fileOf(name.slice('home/'.length), bytes));
      return packed(withManifest(parts, (one) => Object.assign(one, { files })));
    };
    const cut = replaced(
      (name) => /sessions\/[^/]+\.json$/.test(name),
      (bytes) => bytes.subarray(0, 100),
    );
    expect((await refusalOf(cut)).reason).toContain('is no transcript');
    const holed = replaced(
      (name) => name === 'home/state.db',
      (bytes) => {
        const copy = Buffer.from(bytes);
        return copy.fill(0xff, 4096, 12_288);
      },
    );
    expect((await refusalOf(holed)).reason).toContain('its database is damaged');
    const other = replaced(
      (name) => name === 'home/state.db',
      () => Buffer.alloc(8192, 'no database'),
    );
    expect((await refusalOf(other)).reason).toContain('its database is damaged');
  });
});

it('[BK1][BK6] files of every name, size and mode come back, and any tar can list and unpack them', async () => {
  const home = await quietHome(1);
  const names = [
    `long/${'x'.repeat(200)}/${'y'.repeat(120)}`,
    'ünïcödé/日本 🙂',
    'with space\nand line',
    'run.sh',
    'empty',
  ];
  const contents = new Map(names.map((name, at) => [name, Buffer.alloc([1, 511, 512, 513 * 300, 0][at]!, name)]));
  for (const [name, bytes] of contents) {
    await mkdir(path.dirname(path.join(home, name)), { recursive: true });
    await writeFile(path.join(home, name), bytes, { mode: name === 'run.sh' ? 0o755 : 0o644 });
  }
  const file = await backedUp(home);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const there = await restored(file);
  for (const [name, bytes] of contents) expect(await readFile(path.join(there, name))).toEqual(bytes);
  expect((await stat(path.join(there, 'run.sh'))).mode & 0o777).toBe(0o700);
  expect((await stat(path.join(there, 'empty'))).mode & 0o777).toBe(0o600);
  expect((await stat(there)).mode & 0o777).toBe(0o700);
  const byTar = await temporaryFolder();
  execFileSync('tar', ['xzf', file, '-C', byTar]);
  expect(await namesIn(path.join(byTar, 'home'))).toEqual(await namesIn(there));
});
