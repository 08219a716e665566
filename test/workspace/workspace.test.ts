/** The reader of a workspace and its tools, on real files, with hostile paths. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createWorkspaceTools } from '../../server/workspace/tools.ts';
import { checkWorkspace, openWorkspace, type Workspace } from '../../server/workspace/workspace.ts';
import { toolContext } from '../support/tool-context.ts';

const SECRET = 'the secret outside';
let base: string;
let root: string;
let workspace: Workspace;

const file = (path: string, content: string | Buffer) => writeFileSync(join(root, path), content);

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'turnkeep-workspace-'));
  root = join(base, 'ws');
  mkdirSync(join(root, 'src'), { recursive: true });
  mkdirSync(join(base, 'outside'));
  mkdirSync(join(base, 'ws-neighbour'));
  for (const path of ['secret.txt', 'outside/secret.txt', 'ws-neighbour/secret.txt']) {
    writeFileSync(join(base, path), SECRET);
  }
  file('README.md', '# Title\nSecond line\n');
  file('src/a.ts', 'const a = 1;\n');
  workspace = openWorkspace(root);
});

afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

/** Runs a tool. */
async function use(
  name: string,
  args: unknown,
  at: Workspace | null = workspace,
  signal = new AbortController().signal,
) {
  const tool = createWorkspaceTools().find((each) => each.name === name)!;
  expect(tool.preview(args)).toBeTypeOf('string');
  return tool.execute(args, toolContext(at, signal));
}

/** What all three tools say of a path. */
const useAll = (path: unknown) =>
  Promise.all([
    use('list_files', { path }),
    use('read_file', { path }),
    use('search_files', { query: 'secret', path }),
  ]);

describe('paths', () => {
  it.each([
    '..',
    '../secret.txt',
    '../outside',
    'src/../../secret.txt',
    './src/../../outside/secret.txt',
    '../ws-neighbour/secret.txt',
    '/etc/passwd',
    '/',
    '/proc/self/environ',
    '/dev/zero',
  ])('[RU3] %s is outside', async (path) => {
    for (const { result, is_error } of await useAll(path)) {
      expect(is_error).toBe(true);
      expect(result).toMatch(/outside the workspace/);
    }
    expect(await workspace.read(path)).toEqual({ ok: false, problem: 'outside' });
  });

  it('[RU3] the folder beside with the same beginning is outside, by its absolute path too', async () => {
    for (const path of [join(base, 'ws-neighbour/secret.txt'), `${root}-neighbour/secret.txt`, base]) {
      expect(await workspace.read(path)).toEqual({ ok: false, problem: 'outside' });
    }
  });

  it('[RU3] whether something outside exists is not told', async () => {
    const there = await use('read_file', { path: '../secret.txt' });
    const absent = await use('read_file', { path: '../absent.txt' });
    expect(absent.result.replace('absent', 'secret')).toBe(there.result);
  });

  it('[RU3] a link to a file or a folder outside is outside, and is listed as a link only', async () => {
    symlinkSync(join(base, 'secret.txt'), join(root, 'link.txt'));
    symlinkSync('../outside', join(root, 'folder'));
    symlinkSync('folder', join(root, 'twice'));
    symlinkSync('loop', join(root, 'loop'));
    for (const path of [
      'link.txt',
      'folder',
      'folder/secret.txt',
      'twice/secret.txt',
      'src/../folder/secret.txt',
      'loop',
    ]) {
      for (const { result, is_error } of await useAll(path)) {
        expect(is_error).toBe(true);
        expect(result).toMatch(/outside the workspace/);
      }
    }
    const { result } = await use('list_files', {});
    expect(result).toBe('README.md  20 B\nfolder  (link)\nlink.txt  (link)\nloop  (link)\nsrc/\ntwice  (link)');
    expect(await workspace.search('secret')).toMatchObject({ hits: [] });
  });

  it('[RU3] a link that stays inside is followed when it is named', async () => {
    symlinkSync('src/a.ts', join(root, 'inside.ts'));
    expect(await use('read_file', { path: 'inside.ts' })).toEqual({ result: 'const a = 1;', is_error: false });
  });

  it('[RU3] absolute paths, dots and a root that is a link itself work inside', async () => {
    symlinkSync(root, join(base, 'alias'));
    const alias = openWorkspace(join(base, 'alias'));
    for (const path of [join(root, 'src/a.ts'), join(base, 'alias/src/a.ts'), './src/../src/a.ts', 'src//a.ts']) {
      expect(await alias.read(path)).toMatchObject({ ok: true, name: 'src/a.ts' });
    }
    expect(await workspace.read(join(root, 'src/a.ts'))).toMatchObject({ ok: true });
  });

  it('[RU3] a FIFO and a socket are refused at once', async () => {
    execFileSync('mkfifo', [join(root, 'fifo')]);
    const server = createServer().listen(join(root, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      for (const path of ['fifo', 'socket']) {
        expect(await workspace.read(path)).toEqual({ ok: false, problem: 'not_a_file' });
        expect(await workspace.search('x', { path })).toEqual({ ok: false, problem: 'not_a_file' });
        expect(await workspace.list(path)).toEqual({ ok: false, problem: 'not_a_directory' });
      }
      expect((await use('list_files', {})).result).toMatch(/fifo {2}\(special file\)/);
      expect(await workspace.search('a = 1')).toMatchObject({ hits: [{ path: 'src/a.ts', line: 1 }] });
    } finally {
      server.close();
    }
  });

  it('[RU3] a device is refused, also where it lies in the workspace or a link leads to it', async () => {
    symlinkSync('/dev/zero', join(root, 'zero'));
    expect(await workspace.read('zero')).toEqual({ ok: false, problem: 'outside' });
    expect(await openWorkspace('/dev').read('zero')).toEqual({ ok: false, problem: 'not_a_file' });
    expect(await openWorkspace('/dev').read('null')).toEqual({ ok: false, problem: 'not_a_file' });
  });

  it('[RU3] what cannot be a path is refused', async () => {
    for (const path of ['a\0b', '\0', 'x'.repeat(5000), 'x/'.repeat(5000), 'x'.repeat(300)]) {
      expect(await workspace.read(path)).toEqual({ ok: false, problem: 'bad_path' });
      for (const { result, is_error } of await useAll(path)) {
        expect(is_error).toBe(true);
        expect(result).not.toContain('\0');
        expect(result.length).toBeLessThan(300);
      }
    }
    expect(await workspace.read('~/secret.txt')).toEqual({ ok: false, problem: 'missing' });
    expect(await workspace.read('%2e%2e/secret.txt')).toEqual({ ok: false, problem: 'missing' });
    expect(await workspace.read('..\\secret.txt')).toEqual({ ok: false, problem: 'missing' });
  });

  it.each<[string, unknown]>([
    ['no object', 'README.md'],
    ['null', null],
    ['undefined', undefined],
    ['a list', ['README.md']],
    ['a number as path', { path: 7, query: 'x' }],
    ['an object as path', { path: { toString: () => 'README.md' }, query: 'x' }],
    ['a list as path', { path: ['README.md'], query: 'x' }],
    ['a list as query', { path: '.', query: ['x'] }],
    ['inherited arguments', Object.create({ path: 'README.md', query: 'x' })],
  ])('[RU3] arguments that are %s are refused in words', async (_name, args) => {
    const results = await Promise.all(['read_file', 'search_files'].map((name) => use(name, args)));
    for (const { result } of results) expect(result).toMatch(/argument|not a regular file/);
    expect(results.every(({ is_error }) => is_error)).toBe(true);
  });

  it('[RU3] a folder that is swapped for a link between check and use gives nothing from outside', async () => {
    mkdirSync(join(root, 'swap'));
    file('swap/secret.txt', 'harmless');
    symlinkSync(join(base, 'outside'), join(root, 'evil'));
    let swapping = true;
    const ticks = async (count: number) => {
      for (let tick = 0; tick < count && swapping; tick++) await new Promise((resolve) => setImmediate(resolve));
    };
    // Stays harmless for 1 to 40 ticks, so that the swap falls between any two steps of a call.
    const swapper = (async () => {
      for (let turn = 0; swapping; turn++) {
        await ticks(1 + (turn % 40));
        renameSync(join(root, 'swap'), join(root, 'rest'));
        renameSync(join(root, 'evil'), join(root, 'swap'));
        await ticks(1 + (turn % 7));
        renameSync(join(root, 'swap'), join(root, 'evil'));
        renameSync(join(root, 'rest'), join(root, 'swap'));
      }
    })();
    writeFileSync(join(base, 'outside/elsewhere.txt'), SECRET);
    const descriptors = readdirSync('/proc/self/fd').length;
    const seen = new Set<string>();
    const names = new Set<string>();
    const whole = () => seen.has('harmless') && names.has('secret.txt  8 B');
    for (let round = 0; round < 400 || (!whole() && round < 5000); round++) {
      const results = await Promise.all([
        use('read_file', { path: 'swap/secret.txt' }),
        use('search_files', { query: 'secret', path: 'swap' }),
        ...Array.from({ length: 4 }, () => use('list_files', { path: 'swap' })),
      ]);
      for (const { result } of results.slice(0, 2)) seen.add(result);
      for (const { result } of results.slice(2)) names.add(result);
    }
    swapping = false;
    await swapper;
    expect(whole(), 'no call ever saw the harmless folder').toBe(true);
    expect([...seen, ...names].join('\n')).not.toMatch(/the secret outside|elsewhere|18 B/);
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(descriptors + 2);
  });
});

describe('reading', () => {
  it('[RU3] gives lines from an offset, and says where to go on', async () => {
    file('long.txt', Array.from({ length: 1000 }, (_, index) => `line ${index + 1}\n`).join(''));
    const first = await use('read_file', { path: 'long.txt' });
    expect(first.result.split('\n')).toHaveLength(401);
    expect(first.result).toMatch(/line 400\n\[Lines 1 to 400; the file goes on: read on with offset 401\.\]$/);
    expect((await use('read_file', { path: 'long.txt', offset: 999, limit: '5' })).result).toBe('line 999\nline 1000');
    expect(await use('read_file', { path: 'long.txt', offset: 1001 })).toEqual({
      result: '"long.txt" has 1000 lines; line 1001 is behind its end.',
      is_error: true,
    });
    expect(await use('read_file', { path: 'long.txt', offset: 0 })).toMatchObject({ is_error: true });
    expect((await use('read_file', { path: 'long.txt', limit: 100_000 })).result.split('\n')).toHaveLength(401);
  });

  it('[RU3] reading on line by line gives the whole file, whatever its lines', async () => {
    const lines = Array.from({ length: 700 }, (_, index) => 'ä'.repeat((index * 37) % 900));
    for (const text of [lines.join('\n'), `${lines.join('\n')}\n`, 'one', 'one\n', '\n\n\n']) {
      file('any.txt', text);
      const got: string[] = [];
      for (let next: number | null = 1; next !== null; ) {
        const read = await workspace.read('any.txt', { offset: next });
        if (!read.ok || read.lines.kind !== 'text') throw new Error(`read ${JSON.stringify(read)}`);
        expect(read.lines.text.split('\n')).toHaveLength(read.lines.count);
        expect(Buffer.byteLength(read.lines.text)).toBeLessThanOrEqual(64 * 1024);
        got.push(read.lines.text);
        next = read.lines.next;
      }
      expect(got.join('\n')).toBe(text.replace(/\n$/, ''));
    }
  });

  it('[RU3] a line over 64 kB is cut between two characters, and that is said', async () => {
    file('wide.txt', `${'x'.repeat(65_535)}${'ü'.repeat(100)}\nnext\n`);
    const { result, is_error } = await use('read_file', { path: 'wide.txt' });
    expect(is_error).toBe(false);
    expect(result).not.toContain('\uFFFD');
    expect(result).toMatch(/\[Lines 1 to 1; line 1 is longer than 64 kB and is cut; .*offset 2\.\]$/);
    expect((await use('read_file', { path: 'wide.txt', offset: 2 })).result).toBe('next');
  });

  it('[RU3] binary files, empty files, folders and absent files are named as such', async () => {
    file('picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]));
    file('empty', '');
    file('late.bin', Buffer.concat([Buffer.alloc(100_000, 'a'), Buffer.alloc(10)]));
    expect(await use('read_file', { path: 'picture.png' })).toEqual({
      result: '"picture.png" is a binary file (png) of 7 bytes, not text.',
      is_error: true,
    });
    expect((await use('read_file', { path: 'late.bin' })).result).toMatch(/binary/);
    expect(await use('read_file', { path: 'empty' })).toEqual({ result: '"empty" is empty.', is_error: false });
    expect((await use('read_file', { path: 'src' })).result).toBe('"src" is not a regular file.');
    expect((await use('read_file', { path: 'nope' })).result).toBe('"nope" does not exist in the workspace.');
    expect((await use('read_file', { path: 'README.md/x' })).result).toMatch(/does not exist/);
  });
});

describe('listing and searching', () => {
  it('[RU3] a long folder is cut, and how much is said', async () => {
    for (let index = 0; index < 250; index++) file(`src/f${index}`, '');
    const { result } = await use('list_files', { path: 'src' });
    expect(result.split('\n')).toHaveLength(201);
    expect(result).toMatch(/\[200 of 251 entries are shown/);
    expect((await use('list_files', { path: 'src', limit: 3 })).result.split('\n')).toHaveLength(4);
    expect((await use('list_files', { path: 'README.md' })).result).toBe('"README.md" is not a folder.');
  });

  it('[RU3] a name with a line break is one line of a listing', async () => {
    file('a\nb', 'x');
    expect((await use('list_files', {})).result.split('\n')).toHaveLength(3);
  });

  it('[RU3] finds text and names whatever their case, and says what it left out', async () => {
    mkdirSync(join(root, 'node_modules'));
    mkdirSync(join(root, '.git'));
    file('node_modules/todo.txt', 'TODO');
    file('.git/todo', 'TODO');
    file('src/todo.ts', 'x\n  // Todo: later\n');
    file('src/big.txt', `TODO ${'x'.repeat(1024 * 1024)}`);
    file('src/binary', Buffer.from('TODO\0'));
    expect((await use('search_files', { query: 'todo' })).result.split('\n')).toEqual([
      'src/todo.ts (name)',
      'src/todo.ts:2: // Todo: later',
      '[the text of 2 binary or large files was not searched.]',
    ]);
    expect((await use('search_files', { query: 'later', path: 'src/todo.ts' })).result).toBe(
      'src/todo.ts:2: // Todo: later',
    );
    expect((await use('search_files', { query: 'nowhere', path: 'src/todo.ts' })).result).toBe(
      'Nothing found in 1 files.',
    );
    expect((await use('search_files', { query: '(.*' })).is_error).toBe(false);
    expect((await use('search_files', { query: 'x'.repeat(201) })).result).toMatch(/201 characters; 200 are the most/);
    expect((await use('search_files', { query: 'x', path: 'nope' })).result).toMatch(/does not exist/);
  });

  it('[RU3] at most 100 hits, and long lines around the hit', async () => {
    file('many.txt', 'hit\n'.repeat(150));
    const { result } = await use('search_files', { query: 'hit' });
    expect(result.split('\n')).toHaveLength(101);
    expect(result).toMatch(/only the first 100 hits are shown/);
    file('exact.txt', 'exact\n'.repeat(100));
    expect(await workspace.search('exact', { path: 'exact.txt' })).toMatchObject({ cut: null });
    file('wide.txt', `${'a'.repeat(5000)}needle${'b'.repeat(5000)}`);
    const wide = (await use('search_files', { query: 'NEEDLE' })).result;
    expect(wide).toContain('needle');
    expect(wide.length).toBeLessThan(300);
  });

  it('[RU3] stops when the turn is aborted', async () => {
    const aborted = AbortSignal.abort();
    for (const [name, args] of [
      ['list_files', {}],
      ['read_file', { path: 'README.md' }],
      ['search_files', { query: 'x' }],
    ] as const) {
      expect(await use(name, args, workspace, aborted)).toEqual({ result: 'Stopped.', is_error: true });
    }
  });

  it('[RU3] without a workspace, or without its folder, each tool says so', async () => {
    const gone = openWorkspace(join(base, 'gone'));
    for (const [name, args] of [
      ['list_files', {}],
      ['read_file', { path: 'README.md' }],
      ['search_files', { query: 'x' }],
    ] as const) {
      expect(await use(name, args, null)).toEqual({ result: 'This session has no workspace.', is_error: true });
      expect((await use(name, args, gone)).result).toBe("The session's workspace folder does not exist.");
    }
  });

  it('[RU3] leaves no descriptor open', async () => {
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 50; round++) {
      await Promise.all([...['.', 'src', 'README.md', 'nope', '..'].map(useAll), workspace.search('a')]);
    }
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before + 2);
  });

  it('[RU3] the tools have names, schemas and previews that a model can be shown', () => {
    const tools = createWorkspaceTools();
    expect(tools.map(({ name, effect }) => `${effect} ${name}`)).toEqual([
      'read list_files',
      'read read_file',
      'read search_files',
      'write write_file',
      'write edit_file',
      'plan todo',
    ]);
    for (const { parameters, preview, effect } of tools) {
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false });
      if (effect === 'plan') continue;
      expect(preview({ path: 'a\nb'.repeat(100), query: 'a\nb'.repeat(100) })).toMatch(/^a b.{70,}…$/);
    }
  });
});

describe('checking a workspace', () => {
  it('[RU3] says what is wrong with a path', async () => {
    expect(await checkWorkspace(root)).toBe('ok');
    expect(await checkWorkspace('ws')).toBe('not_absolute');
    expect(await checkWorkspace('')).toBe('not_absolute');
    expect(await checkWorkspace(join(root, 'README.md'))).toBe('not_a_directory');
    expect(await checkWorkspace(join(root, 'README.md/x'))).toBe('missing');
    expect(await checkWorkspace(join(root, 'nope'))).toBe('missing');
    expect(await checkWorkspace(`${root}\0`)).toBe('missing');
    expect(await checkWorkspace(`/${'x'.repeat(5000)}`)).toBe('missing');
  });
});
