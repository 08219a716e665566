/** The terminal tool with real processes: their output, their end, and that nothing of them is left. */
import { spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listHome } from '../../db/files/archive-home.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createRunningCommands } from '../../db/files/running-commands.ts';
import { identityOf } from '../../server/lease/process-identity.ts';
import type { Commands } from '../../server/workspace/commands.ts';
import { MARK } from '../../server/workspace/processes.ts';
import { createWorkspaceTools } from '../../server/workspace/tools.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import { commandsIn, newMark } from '../support/commands.ts';
import { processesWith } from '../support/processes.ts';
import { toolContext, type WatchedContext } from '../support/tool-context.ts';
import { until } from '../support/until.ts';

let base: string;
let root: string;
let home: string;
let commands: Commands;
/** A word in the arguments of what a test starts, to find it in the process table. */
let word: string;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'turnkeep-terminal-'));
  root = join(base, 'ws');
  home = join(base, 'home');
  mkdirSync(join(root, 'sub'), { recursive: true });
  mkdirSync(join(base, 'outside'));
  commands = await commandsIn(home);
  word = `w${newMark()}`;
});

afterEach(async () => {
  await commands.close();
  const left = processesWith(word);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  expect(left).toEqual([]);
  expect(notes()).toEqual([]);
  rmSync(base, { recursive: true, force: true });
});

function notes(): string[] {
  try {
    return readdirSync(join(home, 'commands'));
  } catch {
    return [];
  }
}

function run(args: unknown, context: WatchedContext = toolContext(openWorkspace(root))) {
  const terminal = createWorkspaceTools({ commands }).find(({ name }) => name === 'terminal')!;
  return terminal.execute(args, context);
}
const sh = async (command: string, more: object = {}) => (await run({ command, ...more })).result;

describe('a command', () => {
  it('[TL3] gives its output, both kinds in their order, and how it ended', async () => {
    expect(await run({ command: 'echo one; echo two >&2; echo three' })).toEqual({
      result: 'one\ntwo\nthree\n[exit code 0]',
      is_error: false,
    });
    expect(await run({ command: 'echo no; exit 3' })).toEqual({ result: 'no\n[exit code 3]', is_error: true });
    expect(await run({ command: 'kill -SEGV $$' })).toMatchObject({ result: '[ended by SIGSEGV]', is_error: true });
    expect(await sh('printf half')).toBe('half\n[exit code 0]');
    expect(await sh('-x')).toMatch(/not found[\s\S]*\[exit code 127\]/);
  });

  it('[TL3] may open its outputs by their names, as scripts do', async () => {
    expect(await sh('echo one >/dev/stderr; echo two | tee /dev/stderr >/dev/stdout')).toMatch(
      /^one\ntwo\ntwo\n\[exit code 0\]$/,
    );
  });

  it('[TL3] is heard where no pipe with a name can be made', async () => {
    const mark = newMark();
    mkdirSync(join(home, 'commands'), { recursive: true });
    writeFileSync(createRunningCommands(createPaths(home)).placeFor(mark), 'in its place');
    commands = await commandsIn(home, { newMark: () => mark });
    expect(await sh('echo one; echo two >&2')).toBe('one\ntwo\n[exit code 0]');
  });

  it('[TL3] leaves no descriptor open, however it ends', async () => {
    const open = () => readdirSync('/proc/self/fd').length;
    await sh('true');
    const before = open();
    const stop = AbortSignal.timeout(300);
    await Promise.all([
      sh('echo x'),
      sh('kill -9 $$'),
      sh('true', { cwd: 'sub' }),
      sh('sleep 1000', { timeout_s: 1 }),
      run({ command: 'sleep 1000' }, toolContext(openWorkspace(root), stop)),
      run({ command: 'echo no' }, toolContext(openWorkspace(root), AbortSignal.abort())),
    ]);
    await until('all are closed', () => open() <= before);
    expect(notes()).toEqual([]);
  });

  it('[TL3] runs in the workspace, or in a folder of it, with nothing to read', async () => {
    expect(await sh('pwd -P')).toBe(`${realpathSync(root)}\n[exit code 0]`);
    expect(await sh('pwd -P; cat; read x || echo end', { cwd: 'sub' })).toBe(
      `${realpathSync(root)}/sub\nend\n[exit code 0]`,
    );
  });

  it('[TL1] a folder to run in that is outside, absent or none is refused', async () => {
    symlinkSync(join(base, 'outside'), join(root, 'link'));
    writeFileSync(join(root, 'file'), '');
    for (const [cwd, why] of [
      ['..', /outside the workspace/],
      ['link', /outside the workspace/],
      ['/', /outside the workspace/],
      ['nope', /does not exist/],
      ['file', /not a folder/],
      ['a\0b', /cannot be a path/],
    ] as const) {
      expect(await sh('echo ran', { cwd })).toMatch(why);
    }
    expect((await run({ command: 'echo ran' }, toolContext(null))).result).toBe('This session has no workspace.');
    rmSync(root, { recursive: true });
    expect(await sh('echo ran')).toMatch(/workspace folder does not exist/);
  });

  it('[TL3] arguments that cannot be run are refused in words', async () => {
    const wrong = [
      null,
      'ls',
      [],
      {},
      { command: '' },
      { command: 7 },
      { command: 'a\0b' },
      { command: 'x'.repeat(100_001) },
      { command: 'ls', timeout_s: 0 },
      { command: 'ls', timeout_s: 3601 },
      { command: 'ls', timeout_s: 'soon' },
      { command: 'ls', cwd: 7 },
    ];
    for (const args of wrong) {
      const { result, is_error } = await run(args);
      expect(is_error, JSON.stringify(args)?.slice(0, 50)).toBe(true);
      expect(result).toMatch(/argument|NUL|are the most/);
    }
  });

  it('[TL3] has of the environment what a shell needs, and no secret', async () => {
    process.env.TURNKEEP_TEST_SECRET = 'hunter2';
    try {
      const names = (await sh('env')).split('\n').map((line) => line.split('=')[0]);
      expect(
        names.filter((name) => !['PATH', 'PWD', 'SHLVL', '_', MARK, '[exit code 0]', 'OLDPWD'].includes(name!)),
      ).toEqual([]);
    } finally {
      delete process.env.TURNKEEP_TEST_SECRET;
    }
  });
});

describe('the output', () => {
  it('[TL3] of 100 MB costs bounded memory; its beginning and end are given, and how much is left out', {
    timeout: 60_000,
  }, async () => {
    const before = process.memoryUsage().rss;
    let most = 0;
    const context = toolContext(openWorkspace(root), undefined, () => {
      most = Math.max(most, process.memoryUsage().rss - before);
    });
    const { result } = await run(
      { command: 'echo first; head -c 100000000 /dev/zero | tr "\\0" x; echo; echo last' },
      context,
    );
    expect(result).toMatch(
      /^first\nx+\n\[… 99967\d{3} of 100000012 bytes are left out here …\]\nx+\nlast\n\[exit code 0\]$/,
    );
    expect(result.length).toBeLessThan(34 * 1024);
    expect(most).toBeLessThan(100 * 1024 * 1024);
    expect(context.outputs.join('').length).toBeLessThan(300 * 1024);
  });

  it('[TL3, TL4] without an end is stopped when its time is up', async () => {
    const context = toolContext(openWorkspace(root));
    const { result, is_error } = await run({ command: `yes ${word}`, timeout_s: 1 }, context);
    expect(is_error).toBe(true);
    expect(result).toMatch(/bytes are left out here[\s\S]*\[stopped after 1 s: its time was up\]$/);
    expect(context.outputs.length).toBeLessThan(15);
  });

  it('[TL3] of binary is made printable', async () => {
    const { result } = await run({
      command: 'head -c 2000 /dev/urandom; printf "\\0\\1\\377\\033[31mred\\033[0m\\r\\nend"',
    });
    expect(result).toMatch(/red\nend\n\[exit code 0\]$/);
    expect(result).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    expect(result.isWellFormed()).toBe(true);
  });

  it('[TL3] cut between two characters has no half of one', async () => {
    const { result } = await run({ command: 'printf x; for i in $(seq 1 3000); do printf "üüüüüüüüüü€"; done' });
    expect(result).not.toContain('\uFFFD');
    expect(result).toMatch(/^xü[ü€]*\n\[… \d+ of 69001 bytes are left out here …\]\n[ü€]+\n\[exit code 0\]$/);
  });

  it('[TL3] is shown while the command runs, and nothing of it twice', async () => {
    let go = (): void => {};
    const context = toolContext(openWorkspace(root), undefined, () => go());
    const shown = new Promise<void>((resolve) => {
      go = resolve;
    });
    const ran = run({ command: `echo early ü; until [ -e go ]; do sleep 0.02; done; echo late` }, context);
    await shown;
    expect(context.outputs.join('')).toBe('early ü\n');
    writeFileSync(join(root, 'go'), '');
    expect((await ran).result).toBe('early ü\nlate\n[exit code 0]');
    expect(context.outputs.join('')).toBe('early ü\nlate\n');
  });

  it('[TL3] that a piece of a second has too much of is shown by its end, with how much is left out', async () => {
    const context = toolContext(openWorkspace(root));
    await run({ command: 'seq 1 20000' }, context);
    expect(context.outputs.join('')).toMatch(/^\[… \d+ of \d+ bytes are left out here …\]\n[\d\n]+20000\n$/);
  });
});

describe('the processes', () => {
  const stubborn = `sh -c 'trap "" TERM HUP INT; while :; do sleep 0.1; done' ${'%'}`;
  const child = () => stubborn.replace('%', word);

  it('[TL4] two grandchildren that ignore TERM are gone soon after the stop', { timeout: 30_000 }, async () => {
    const abort = new AbortController();
    const ran = run(
      { command: `(${child()} & ${child()} & wait) & wait` },
      toolContext(openWorkspace(root), abort.signal),
    );
    const ended = ran.then((result) => [result, processesWith(word)]);
    await until('both run', () => processesWith(word).length >= 2);
    abort.abort();
    // TL4 promises this time.
    await until('they are gone', () => processesWith(word).length === 0, 10_000);
    expect(await ended).toEqual([{ result: '[stopped]', is_error: true }, []]);
  });

  it.each([
    ['a session of its own', () => `setsid ${child()}`],
    ['a group of its own', () => `set -m; ${child()}`],
    ['a group of its own with another environment', () => `set -m; env -i /bin/${child()}`],
    ['a session of its own with another environment', () => `env -i setsid -w /bin/${child()}`],
    [
      'a session of its own, again and again',
      () => `sh -c 'trap "" TERM; while :; do setsid sleep 1 ${word} 0 & sleep 0.05; done'`,
    ],
  ])('[TL4] what moves to %s is gone too', { timeout: 30_000 }, async (_where, away) => {
    const abort = new AbortController();
    const ran = run({ command: `${away()} ${word} & wait` }, toolContext(openWorkspace(root), abort.signal));
    await until('it runs', () => processesWith(word).length >= 2);
    abort.abort();
    await ran;
    expect(processesWith(word)).toEqual([]);
  });

  it('[TL4] what a command leaves in the background ends with it, and holds nobody up', async () => {
    expect(await sh(`sh -c 'sleep 1000; : ${word}' & setsid sh -c 'sleep 1001; : ${word}' & echo done`)).toMatch(
      /done\n\[exit code 0\]$/,
    );
    expect(processesWith(word)).toEqual([]);
  });

  it.each([
    ['without its environment', () => `env -i setsid /bin/sh -c 'sleep 1000; : ${word}' &`],
    [
      'twice forked, without its environment',
      () => `(env -i setsid /bin/sh -c 'sleep 1000 & sleep 1001; : ${word}' &)`,
    ],
    ['closing what it has open', () => `setsid sh -c 'exec 9<&-; sleep 1000; : ${word}' &`],
  ])('[TL4] what goes away in the background %s ends with the command', async (_how, away) => {
    expect(
      await sh(`${away()}\nuntil grep -qs ${word} /proc/[0-9]*/cmdline; do sleep 0.02; done; sleep 0.2; echo up`),
    ).toMatch(/up\n/);
    expect(processesWith(word)).toEqual([]);
  });

  it('[TL4] that clean up when they are asked to end may do so', async () => {
    const abort = new AbortController();
    const context = toolContext(openWorkspace(root), abort.signal, () => abort.abort());
    const { result } = await run(
      { command: 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.05; done' },
      context,
    );
    // The shell may say that its child was ended too.
    expect(result).toMatch(/^up\n(Terminated\n)?bye\n\[stopped\]$/);
  });

  it('[TL4] are noted while they run, in no backup, and ended when the server stops', async () => {
    const ran = run({ command: `sleep 1000; : ${word}` });
    await until('it is noted with its first process', async () => {
      const [note] = await createRunningCommands(createPaths(home)).all();
      return note?.leader;
    });
    expect(commands.running()).toBe(1);
    expect((await listHome(home)).files).toEqual([]);
    await commands.close();
    expect((await ran).result).toBe('[stopped]');
    expect(await sh('echo no more')).toBe('[stopped]');
    expect(commands.running()).toBe(0);
  });

  it('[TL4] a command whose note cannot be written is not started', async () => {
    writeFileSync(home, 'a file in the place of the home');
    expect(await sh('touch ran')).toMatch(/^The command was not started \(E(EXIST|NOTDIR)\)\.$/);
    expect(readdirSync(root)).toEqual(['sub']);
  });

  it('[TL4] many commands side by side all end, and leave nothing', async () => {
    const results = await Promise.all(Array.from({ length: 12 }, (_, n) => sh(`echo ${n}; : ${word}`)));
    expect(results).toEqual(Array.from({ length: 12 }, (_, n) => `${n}\n[exit code 0]`));
  });
});

describe('what a killed server left', () => {
  /** Starts something as a command of a server that is gone would be. */
  function orphan(mark: string): number {
    const left = spawn('/bin/sh', ['-c', `trap "" TERM; while :; do sleep 0.1; done; : ${word}`], {
      env: { PATH: process.env.PATH, [MARK]: mark },
      stdio: 'ignore',
      detached: true,
    });
    return left.pid!;
  }
  const gone = { pid: 2 ** 22 + 1, start: 'never' };

  it('[TL4] is ended by the next start, whether its first process was noted yet or not', {
    timeout: 30_000,
  }, async () => {
    const store = createRunningCommands(createPaths(home));
    for (const isNoted of [true, false]) {
      const mark = newMark();
      const pid = orphan(mark);
      await until('it runs', () => processesWith(word).length >= 1);
      await store.note({ mark, server: gone, leader: isNoted ? identityOf(pid) : null });
      expect(await commands.reap()).toBe(1);
      expect(processesWith(word)).toEqual([]);
      expect(notes()).toEqual([]);
    }
    expect(await commands.reap()).toBe(0);
  });

  it('[TL4] is not touched while its server lives, nor is a process that has the pid of a dead one', {
    timeout: 30_000,
  }, async () => {
    const store = createRunningCommands(createPaths(home));
    const mark = newMark();
    const pid = orphan(mark);
    await until('it runs', () => processesWith(word).length >= 1);
    await store.note({ mark, server: identityOf(process.pid), leader: identityOf(pid) });
    expect(await commands.reap()).toBe(0);
    expect(processesWith(word)).toContain(pid);
    // The same pid, but another process than was noted.
    const other = newMark();
    await store.note({ mark: other, server: gone, leader: { pid, start: 'another one' } });
    await store.note({ mark: newMark(), server: gone, leader: { pid: 1, start: null } });
    expect(await commands.reap()).toBe(2);
    expect(processesWith(word)).toContain(pid);
    await store.note({ mark, server: gone, leader: null });
    expect(await commands.reap()).toBe(1);
  });

  it('[TL4] is found by its mark though its note is damaged', { timeout: 30_000 }, async () => {
    const mark = newMark();
    mkdirSync(join(home, 'commands'), { recursive: true });
    orphan(mark);
    await until('it runs', () => processesWith(word).length >= 1);
    for (const text of ['', '{"server":', 'null', '[]', '{"server":7,"leader":{"pid":"x"}}']) {
      writeFileSync(join(home, 'commands', `${mark}.json`), text);
      expect(await commands.reap()).toBe(1);
    }
    writeFileSync(join(home, 'commands', 'README'), 'x');
    expect(await commands.reap()).toBe(0);
    expect(readFileSync(join(home, 'commands', 'README'), 'utf8')).toBe('x');
    rmSync(join(home, 'commands', 'README'));
  });
});
