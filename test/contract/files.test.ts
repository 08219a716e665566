/** Paths and durable replacement: what everything else in the home stands on. */
import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isMissing, makeFolder, replaceFile } from '../../db/files/atomic.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore } from '../../db/files/sidecar-store.ts';
import { formatSessionId, isSessionId } from '../../server/core/ids.ts';
import { childEntry } from '../support/compile-children.ts';
import { temporaryFolder } from '../support/home.ts';
import { until } from '../support/until.ts';

const SESSION = '20260303_130002_abcdef';
const RUN = '0123456789abcdef0123456789abcdef';

describe('paths', () => {
  const paths = createPaths('/home/me/.turnkeep');

  it('[SE1] an id becomes a path inside of the home', () => {
    expect(paths.stateDb).toBe('/home/me/.turnkeep/state.db');
    expect(paths.sidecar(SESSION)).toBe(`/home/me/.turnkeep/sessions/${SESSION}.json`);
    expect(paths.journals(SESSION)).toBe(`/home/me/.turnkeep/sessions/_run_journal/${SESSION}`);
    expect(paths.journal(SESSION, RUN)).toBe(`/home/me/.turnkeep/sessions/_run_journal/${SESSION}/${RUN}.jsonl`);
    for (const id of ['a', '0', 'A-b_9', `a${'-'.repeat(127)}`, formatSessionId(0, '000000')]) {
      expect(path.dirname(paths.sidecar(id))).toBe(paths.sessions);
    }
  });

  it('[SE1] nothing but an id becomes a path', () => {
    const bad = [
      ...['', '.', '..', '/', '\\', '../x', 'a/b', 'a\\b', '/etc/passwd', '..%2fx', '%2e%2e', 'a.b', 'a.json'],
      ...['_a', '-a', ' a', 'a ', 'a\n', '\na', 'a\0', '\0', 'a\tb', 'a:b', 'a*', '~', '$HOME', 'é', 'a\u0301'],
      ...['ａ', '\u{1F600}', 'a\u200B', `a${'b'.repeat(128)}`, 'a'.repeat(10_000), '_run_journal'],
    ];
    for (const id of bad) {
      expect(() => paths.sidecar(id), JSON.stringify(id)).toThrow('not an id');
      expect(() => paths.journals(id), JSON.stringify(id)).toThrow('not an id');
      expect(() => paths.journal(id, RUN), JSON.stringify(id)).toThrow('not an id');
    }
    for (const run of [...bad, 'a', RUN.toUpperCase(), RUN.slice(1), `${RUN}0`, `${RUN}\n`, `../${RUN}`]) {
      expect(() => paths.journal(SESSION, run), JSON.stringify(run)).toThrow('not an id');
    }
  });

  it('[SE1] any text either is an id or is refused, and no path leaves its folder', () => {
    const property = fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (text) => {
      if (!isSessionId(text)) return void expect(() => paths.sidecar(text)).toThrow('not an id');
      const file = paths.sidecar(text);
      expect(path.normalize(file)).toBe(file);
      expect(path.dirname(file)).toBe(paths.sessions);
      expect(path.basename(file)).toBe(`${text}.json`);
    });
    fc.assert(property);
  });
});

describe('replacing a file', () => {
  async function target(): Promise<string> {
    return path.join(await temporaryFolder(), 'file.json');
  }

  it('[SC1] the content is the chunks in order, readable by its owner only', async () => {
    const file = await target();
    await replaceFile(file, ['one ', Buffer.from('two '), '', 'drei ü\n']);
    expect(await readFile(file, 'utf8')).toBe('one two drei ü\n');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await replaceFile(file, []);
    expect(await readFile(file, 'utf8')).toBe('');
    expect(await readdir(path.dirname(file))).toEqual(['file.json']);
  });

  it('[SC1, SC2] a write that fails half-way leaves the old file and nothing else', async () => {
    const file = await target();
    await replaceFile(file, ['old']);
    const before = await stat(file);
    // Not writable: the failure comes after the first chunk is on the disk.
    const broken = ['new '.repeat(100_000), 7 as unknown as string, 'never'];
    await expect(replaceFile(file, broken)).rejects.toThrow();
    expect(await readFile(file, 'utf8')).toBe('old');
    expect((await stat(file)).ino).toBe(before.ino);
    expect(await readdir(path.dirname(file))).toEqual(['file.json']);
  });

  it('[SC1, SC2] a rename that fails leaves what was there and no temporary file', async () => {
    const file = await target();
    await mkdir(path.join(file, 'in the way'), { recursive: true });
    await expect(replaceFile(file, ['new'])).rejects.toMatchObject({ code: 'EISDIR' });
    expect(await readdir(path.dirname(file))).toEqual(['file.json']);
    expect(await readdir(file)).toEqual(['in the way']);
  });

  it('[SC1, SC2] a folder that is not there is the error of the system', async () => {
    const file = path.join(await temporaryFolder(), 'nowhere', 'file.json');
    const error = await replaceFile(file, ['new']).catch((thrown: unknown) => thrown);
    expect(isMissing(error)).toBe(true);
  });

  it('[SC1] temporary files of a process that was killed are no obstacle, and are nobody else’s to remove', async () => {
    const file = await target();
    // A process that was killed may have had this pid, as every first process of a container has the same.
    const left = Array.from({ length: 400 }, (_, n) => `file.json.tmp.${process.pid}.${n + 1}`);
    for (const name of left) await writeFile(path.join(path.dirname(file), name), 'half');
    await replaceFile(file, ['whole']);
    expect(await readFile(file, 'utf8')).toBe('whole');
    expect((await readdir(path.dirname(file))).sort()).toEqual(['file.json', ...left].sort());
    // Nor is a folder under such a name.
    const other = await target();
    for (const name of left) await mkdir(path.join(path.dirname(other), name));
    await replaceFile(other, ['whole']);
    expect(await readFile(other, 'utf8')).toBe('whole');
  });

  it('[SC1] many replacements at once end with one whole content', async () => {
    const file = await target();
    const contents = Array.from({ length: 20 }, (_, n) => `${n} `.repeat(20_000));
    await Promise.all(contents.map((content) => replaceFile(file, [content])));
    expect(contents).toContain(await readFile(file, 'utf8'));
    expect(await readdir(path.dirname(file))).toEqual(['file.json']);
  });

  it('[SC1] a folder is made with its parents for its owner only, and making it again changes nothing', async () => {
    const folder = path.join(await temporaryFolder(), 'a', 'b', 'c');
    await makeFolder(folder);
    for (const made of [folder, path.dirname(folder)]) expect((await stat(made)).mode & 0o777).toBe(0o700);
    await chmod(folder, 0o750);
    await makeFolder(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o750);
  });
});

it('[SC1] a process killed in the middle of saving leaves a whole sidecar, no older than its last word', async () => {
  const home = await temporaryFolder();
  const store = createSidecarStore(createPaths(home));
  for (const saves of [1, 5, 11]) {
    const child = spawn(process.execPath, [childEntry('save-loop'), home, SESSION], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const exited = new Promise((resolve) => child.on('exit', resolve));
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
    await until('some saves have returned', () => said.split('\n').length > saves);
    child.kill('SIGKILL');
    await exited;
    const returned = Number(said.trim().split('\n').at(-1));
    const read = await store.read(SESSION);
    if (read.kind !== 'found') throw new Error(JSON.stringify(read));
    const { header, rows } = read.sidecar;
    expect(rows).toHaveLength(header.edit_number);
    expect(header.message_count).toBe(header.edit_number);
    expect(header.edit_number).toBeGreaterThanOrEqual(returned);
    expect(header.edit_number).toBeLessThanOrEqual(returned + 1);
  }
});
