/** The tools that change files, on real files, with hostile paths and with others who change the paths meanwhile. */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createWorkspaceTools, type ToolResult } from '../../server/workspace/tools.ts';
import { createWorkspaces, openWorkspace, type Workspace } from '../../server/workspace/workspace.ts';
import { toolContext } from '../support/tool-context.ts';
import { until } from '../support/until.ts';

const SECRET = 'the secret outside';
let base: string;
let root: string;
let workspace: Workspace;

const at = (path: string) => join(root, path);
const text = (path: string) => readFileSync(at(path), 'utf8');

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'turnkeep-write-'));
  root = join(base, 'ws');
  mkdirSync(at('src'), { recursive: true });
  mkdirSync(join(base, 'outside'));
  writeFileSync(join(base, 'outside/secret.txt'), SECRET);
  writeFileSync(at('src/a.ts'), 'one\ntwo\nthree\n');
  workspace = openWorkspace(root);
});

afterEach(() => {
  expect(readdirSync(join(base, 'outside'))).toEqual(['secret.txt']);
  expect(readFileSync(join(base, 'outside/secret.txt'), 'utf8')).toBe(SECRET);
  rmSync(base, { recursive: true, force: true });
});

const use = (name: string, args: unknown, signal?: AbortSignal): Promise<ToolResult> =>
  createWorkspaceTools()
    .find((tool) => tool.name === name)!
    .execute(args, toolContext(workspace, signal));
const write = (path: string, content = 'new\n') => use('write_file', { path, content });
const edit = (path: string, old_text: string, new_text: string, more: object = {}) =>
  use('edit_file', { path, old_text, new_text, ...more });

describe('write_file', () => {
  it('[TL2] makes a file and its folders, and shows what it wrote', async () => {
    expect(await write('docs/deep/new.md', '# Title\nText')).toEqual({
      result: 'Created "docs/deep/new.md" (2 lines, 12 bytes).',
      is_error: false,
      diff: '--- /dev/null\n+++ b/docs/deep/new.md\n@@ -0,0 +1,2 @@\n+# Title\n+Text\n\\ No newline at end of file\n',
    });
    expect(text('docs/deep/new.md')).toBe('# Title\nText');
  });

  it('[TL2] replaces a file as a whole, keeps its mode, and leaves nothing beside it', async () => {
    chmodSync(at('src/a.ts'), 0o751);
    expect(await write('src/a.ts', 'one\n2\nthree\n')).toMatchObject({
      result: 'Wrote "src/a.ts" (+1 −1 lines, 12 bytes).',
      diff: '--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n',
    });
    expect(statSync(at('src/a.ts')).mode & 0o777).toBe(0o751);
    expect(readdirSync(at('src'))).toEqual(['a.ts']);
    expect((await write('src/a.ts', 'one\n2\nthree\n')).result).toBe('"src/a.ts" holds this already (12 bytes).');
    expect((await write('src/a.ts', '')).is_error).toBe(false);
    expect(text('src/a.ts')).toBe('');
  });

  it('[TL2] who reads meanwhile sees the old content or the new one, never a part', async () => {
    const [old, now] = ['a'.repeat(300_000), 'b'.repeat(200_000)];
    await write('big', old);
    let writing = true;
    const seen = new Set<string>();
    const reading = (async () => {
      while (writing) {
        seen.add(text('big'));
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (let round = 0; round < 30; round++) await write('big', round % 2 === 0 ? now : old);
    writing = false;
    await reading;
    expect([...seen].every((content) => content === old || content === now)).toBe(true);
  });

  it('[TL1] a path that leaves the workspace is refused in words, and nothing is written or made', async () => {
    symlinkSync(join(base, 'outside'), at('folder'));
    symlinkSync(join(base, 'outside/secret.txt'), at('file'));
    symlinkSync(join(base, 'outside/new.txt'), at('dangling'));
    symlinkSync('../outside/new', at('dangling-folder'));
    symlinkSync('loop', at('loop'));
    const paths = [
      '../outside/new.txt',
      'src/../../outside/new.txt',
      join(base, 'outside/new.txt'),
      '/etc/turnkeep-test',
    ];
    const linked = ['folder/new.txt', 'folder/sub/new.txt', 'file', 'dangling', 'dangling-folder/x', 'loop', 'loop/x'];
    for (const path of [...paths, ...linked, `${root}-neighbour/x`]) {
      for (const { result, is_error } of [await write(path), await edit(path, 'secret', 'open')]) {
        expect(result, path).toMatch(/is outside the workspace; only what is inside it can be read or written/);
        expect(is_error).toBe(true);
      }
    }
    expect(existsSync(`${root}-neighbour`)).toBe(false);
  });

  it('[TL1] a link that stays inside is followed to its file', async () => {
    symlinkSync('src/a.ts', at('inside'));
    expect(await write('inside', 'x')).toMatchObject({ result: expect.stringContaining('"src/a.ts"') });
    expect(lstatSync(at('inside')).isSymbolicLink()).toBe(true);
    expect(text('src/a.ts')).toBe('x');
  });

  it('[TL1] a hard link to a file outside is parted from it, not written through', async () => {
    linkSync(join(base, 'outside/secret.txt'), at('hard'));
    expect((await write('hard', 'x')).is_error).toBe(false);
    expect(text('hard')).toBe('x');
  });

  it('[TL1] a folder, a FIFO, a device and a file in the place of a folder are refused', async () => {
    execFileSync('mkfifo', [at('fifo')]);
    for (const path of ['src', '.', 'src/', 'fifo', './src/..']) {
      expect((await write(path)).result, path).toMatch(/is not a regular file/);
    }
    expect((await edit('fifo', 'a', 'b')).result).toMatch(/is not a regular file/);
    expect((await write('src/a.ts/b')).result).toMatch(/a part of its path is there and is no folder/);
    workspace = openWorkspace('/dev');
    expect((await write('null')).result).toMatch(/is not a regular file/);
    expect((await write('zero')).result).toMatch(/is not a regular file/);
  });

  it('[TL1] what cannot be a path is refused', async () => {
    for (const path of ['a\0b', '\0', 'x'.repeat(5000), 'x/'.repeat(3000), 'x'.repeat(300)]) {
      const { result, is_error } = await write(path);
      expect(is_error).toBe(true);
      expect(result).toMatch(/cannot be a path/);
      expect(result.length).toBeLessThan(300);
    }
    expect(readdirSync(root)).toEqual(['src']);
  });

  it('[TL2] a content that is too large, and one that is none, is refused', async () => {
    expect((await write('big', 'x'.repeat(4 * 1024 * 1024 + 1))).result).toMatch(
      /has 4194305 bytes; 4 MB are the most/,
    );
    for (const args of [
      { path: 'a' },
      { path: 'a', content: 7 },
      { content: 'x' },
      'a',
      null,
      [],
      { path: '', content: '' },
    ]) {
      expect((await use('write_file', args)).result).toMatch(/argument/);
    }
    expect(readdirSync(root)).toEqual(['src']);
  });

  it('[TL2] half characters and bytes of any kind become text that can be written', async () => {
    expect((await write('a', 'x\ud83dy')).is_error).toBe(false);
    expect(text('a')).toBe('x\uFFFDy');
  });

  it('[TL2] a stopped turn writes nothing', async () => {
    expect(await use('write_file', { path: 'new', content: 'x' }, AbortSignal.abort())).toEqual({
      result: 'Stopped.',
      is_error: true,
    });
    expect(existsSync(at('new'))).toBe(false);
  });

  it('[TL2] calls side by side that make the same folders all succeed', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => write(`x/y/${n}`, `${n}`)));
    expect(results.filter(({ is_error }) => is_error)).toEqual([]);
    expect(readdirSync(at('x/y'))).toHaveLength(20);
  });
});

describe('edit_file', () => {
  it('[TL2] replaces a text that stands there once, and shows the change', async () => {
    expect(await edit('src/a.ts', 'two', 'zwei')).toEqual({
      result: 'Changed "src/a.ts" (+1 −1 lines, 15 bytes).',
      is_error: false,
      diff: '--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n',
    });
    expect(text('src/a.ts')).toBe('one\nzwei\nthree\n');
    expect((await edit('src/a.ts', 'zwei\n', '')).is_error).toBe(false);
    expect(text('src/a.ts')).toBe('one\nthree\n');
  });

  it('[TL2] a text that stands there not at all, or more than once, is refused with how often', async () => {
    writeFileSync(at('many'), 'aaa b aaa');
    expect((await edit('src/a.ts', 'four', 'x')).result).toMatch(/"old_text" stands 0 times in "src\/a.ts"/);
    expect((await edit('many', 'b aaa', 'x')).is_error).toBe(false);
    writeFileSync(at('many'), 'aaa b aaa');
    expect((await edit('many', 'aaa', 'x')).result).toMatch(/stands 2 times in "many".*"replace_all"/);
    expect((await edit('many', 'aa', 'x')).result).toMatch(/stands 4 times/);
    expect(text('many')).toBe('aaa b aaa');
    expect((await edit('many', 'aaa', 'x', { replace_all: true })).is_error).toBe(false);
    expect(text('many')).toBe('x b x');
  });

  it('[TL2] signs of patterns and of replacements are text', async () => {
    writeFileSync(at('signs'), 'a.*b $& $1');
    await edit('signs', '.*', '$&$1');
    expect(text('signs')).toBe('a$&$1b $& $1');
  });

  it('[TL2] every other byte of the file stays as it is', async () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from('x\r\ny\r\n'), Buffer.from([0xe9])]);
    writeFileSync(at('latin1'), bytes);
    expect((await edit('latin1', 'y', 'z')).is_error).toBe(false);
    expect(readFileSync(at('latin1'))).toEqual(Buffer.from(bytes.map((byte) => (byte === 0x79 ? 0x7a : byte))));
    expect((await edit('latin1', 'x\nz', 'q')).result).toMatch(/stands 0 times.*end in \\r\\n/);
  });

  it('[TL2] edits of one file side by side are all kept', async () => {
    writeFileSync(at('list'), Array.from({ length: 20 }, (_, n) => `<${n}>\n`).join(''));
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => edit('list', `<${n}>`, `[${n}]`)));
    expect(results.filter(({ is_error }) => is_error)).toEqual([]);
    expect(text('list')).toBe(Array.from({ length: 20 }, (_, n) => `[${n}]\n`).join(''));
  });

  it('[TL2] edits by turns side by side in one folder are all kept', async () => {
    const open = createWorkspaces();
    for (let round = 0; round < 10; round += 1) {
      writeFileSync(at('list'), Array.from({ length: 8 }, (_, n) => `<${n}>\n`).join(''));
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, n) => {
          workspace = open(root);
          return edit('list', `<${n}>`, `[${n}]`);
        }),
      );
      expect(results.filter(({ is_error }) => is_error)).toEqual([]);
      expect(text('list')).toBe(Array.from({ length: 8 }, (_, n) => `[${n}]\n`).join(''));
    }
  });

  // What takes the square of its size, or each place times the text that is looked for, does not end within the time of a test.
  it('[TL2] a large file that repeats itself costs no time that others would notice', async () => {
    writeFileSync(at('same'), 'a'.repeat(4 * 1024 * 1024));
    const slow: [string, () => Promise<ToolResult>, RegExp][] = [
      ['looked for', () => edit('same', 'a'.repeat(20_000), 'b'), /stands 4174305 times/],
      ['not found', () => edit('same', `${'a'.repeat(10_000)}b${'a'.repeat(10_000)}`, 'b'), /stands 0 times/],
      ['replaced', () => edit('same', 'aa', 'a', { replace_all: true }), /2097152 bytes/],
      ['written anew', () => write('same', '\n'.repeat(4 * 1024 * 1024)), /\+4194304 −1 lines/],
      ['and anew', () => write('same', 'x\n'.repeat(2 * 1024 * 1024)), /\+2097152 −4194304 lines/],
    ];
    for (const [what, call, says] of slow) {
      expect((await call()).result, what).toMatch(says);
    }
  });

  it('[TL2] an edit whose file somebody else changes meanwhile is refused, and undoes nothing', async () => {
    const path = at('src/a.ts');
    // `change` is called between the reading and the writing.
    const edited = await workspace.replace('src/a.ts', { create: false, signal: new AbortController().signal }, () => {
      writeFileSync(path, 'theirs\n');
      return { write: Buffer.from('ours\n') };
    });
    expect(edited).toEqual({ ok: false, problem: 'changed' });
    expect(text('src/a.ts')).toBe('theirs\n');
    expect(readdirSync(at('src'))).toEqual(['a.ts']);
  });

  it('[TL2] binary files, absent ones, ones that are too large, and edits of nothing are refused', async () => {
    writeFileSync(at('binary'), Buffer.from([97, 0, 98]));
    writeFileSync(at('large'), 'x'.repeat(4 * 1024 * 1024 + 1));
    expect((await edit('binary', 'a', 'b')).result).toMatch(/binary file/);
    expect((await edit('large', 'x', 'y')).result).toMatch(/too large/);
    expect((await edit('absent', 'x', 'y')).result).toBe('"absent" does not exist in the workspace.');
    expect((await edit('absent/deep', 'x', 'y')).result).toMatch(/does not exist/);
    expect((await edit('src/a.ts', 'one', 'one')).result).toMatch(/nothing to change/);
    expect((await edit('src/a.ts', '', 'x')).result).toMatch(/"old_text" is empty/);
    writeFileSync(at('grows'), 'x'.repeat(3000));
    expect((await edit('grows', 'x', 'y'.repeat(2000), { replace_all: 'true' })).result).toMatch(
      /would grow over 4 MB/,
    );
    expect(text('grows')).toBe('x'.repeat(3000));
    expect((await edit('grows', 'x', 'y', { replace_all: 'perhaps' })).result).toMatch(/must be true or false/);
  });
});

it('[TL1] while another process swaps folders and files for links, nothing is ever written outside', {
  timeout: 60_000,
}, async () => {
  mkdirSync(at('swap'));
  symlinkSync(join(base, 'outside'), at('evil'));
  writeFileSync(at('name'), 'inside');
  symlinkSync(join(base, 'outside/secret.txt'), at('evil-name'));
  // Exchanges a folder and a file with links again and again.
  const swapper = spawn(process.execPath, [
    '-e',
    `const { renameSync } = require('node:fs');
     const swap = (a, b) => { renameSync(a, a + '.x'); renameSync(b, a); renameSync(a + '.x', b); };
     const cell = new Int32Array(new SharedArrayBuffer(4));
     const rest = (ms) => Atomics.wait(cell, 0, 0, ms);
     process.chdir(${JSON.stringify(root)});
     console.log('ready');
     // Harmless for a while that is never the same, so that the swap falls between any two steps of a call.
     for (let n = 0; process.ppid === ${process.pid}; n++) {
       rest(0.2 + (n % 37) * 0.15);
       for (const [name, evil] of [['swap', 'evil'], ['name', 'evil-name']]) try { swap(name, evil); } catch {}
       rest(1 + (n % 3));
       for (const [name, evil] of [['swap', 'evil'], ['name', 'evil-name']]) try { swap(name, evil); } catch {}
     }`,
  ]);
  const exited = new Promise((resolve) => swapper.once('exit', resolve));
  let ready = false;
  swapper.stdout.once('data', () => {
    ready = true;
  });
  try {
    await until('the other process swaps', () => ready);
    const descriptors = readdirSync('/proc/self/fd').length;
    let written = 0;
    let refused = 0;
    for (let round = 0; round < 120 || ((written === 0 || refused === 0) && round < 3000); round++) {
      const results = await Promise.all([
        write('swap/file.txt', `${round}`),
        write(`swap/deep-${round % 3}/file.txt`),
        write('name', `${round}`),
        edit('name', 'secret', 'open'),
      ]);
      for (const { is_error } of results) {
        if (is_error) refused++;
        else written++;
      }
      expect(readdirSync(join(base, 'outside'))).toEqual(['secret.txt']);
    }
    expect({ written: written > 0, refused: refused > 0 }).toEqual({ written: true, refused: true });
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(descriptors + 2);
  } finally {
    swapper.kill('SIGKILL');
    await exited;
  }
  expect(readFileSync(join(base, 'outside/secret.txt'), 'utf8')).toBe(SECRET);
});

describe('todo', () => {
  const todos = (list: unknown) => {
    const context = toolContext(null);
    const tool = createWorkspaceTools().find(({ name }) => name === 'todo')!;
    return tool
      .execute({ todos: list }, context)
      .then((result) => ({ ...result, lists: context.lists, preview: tool.preview({ todos: list }) }));
  };

  it('[TL5] tells the whole list, also without a workspace', async () => {
    const list = [
      { content: 'look', status: 'completed' },
      { content: 'change', status: 'in_progress' },
    ];
    expect(await todos(list)).toEqual({
      result: 'The list is shown: 1 of 2 done.',
      is_error: false,
      lists: [list],
      preview: '1 of 2 done',
    });
    expect((await todos([])).lists).toEqual([[]]);
  });

  it('[TL5] what is no list is refused in words and tells nothing', async () => {
    const wrong = [
      null,
      'x',
      [7],
      [null],
      [{ content: 'x' }],
      [{ content: '', status: 'pending' }],
      [{ content: 'x', status: 'done' }],
      [{ content: 'x'.repeat(501), status: 'pending' }],
      Array(101).fill({ content: 'x', status: 'pending' }),
    ];
    for (const list of wrong) {
      const { is_error, lists } = await todos(list);
      expect({ is_error, lists }).toEqual({ is_error: true, lists: [] });
    }
  });
});
