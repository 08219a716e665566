/** What an agent of others may ask of its client: permissions, files and commands, with real files and processes. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigFile } from '../../db/files/config-file.ts';
import { createClientMethods } from '../../server/runners/acp/client-methods.ts';
import { createAllowList } from '../../server/runners/allow-list.ts';
import { createApprovals } from '../../server/runners/approvals.ts';
import type { Answer, ApprovalChoice, Question, RunnerEvent } from '../../server/runners/runner.ts';
import type { Commands } from '../../server/workspace/commands.ts';
import { openWorkspace } from '../../server/workspace/workspace.ts';
import { commandsIn, newMark } from '../support/commands.ts';
import { processesWith } from '../support/processes.ts';
import { until } from '../support/until.ts';

type Approval = Extract<Question, { kind: 'approval' }>;

const NEVER = new AbortController().signal;
const ONCE = { optionId: 'yes', name: 'Allow', kind: 'allow_once' };
const ALWAYS = { optionId: 'yes-always', name: 'Always allow', kind: 'allow_always' };
const NO = { optionId: 'no', name: 'Reject', kind: 'reject_once' };
const NO_ALWAYS = { optionId: 'no-always', name: 'Never', kind: 'reject_always' };
const USUAL = [ALWAYS, ONCE, NO];

let base: string;
let root: string;
let commands: Commands;
/** A word in the arguments of what a test starts, to find it in the process table. */
let word: string;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'turnkeep-acp-'));
  root = join(base, 'ws');
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(base, 'outside.txt'), 'secret');
  writeFileSync(join(root, 'a.txt'), 'one\ntwo\r\nthree\n');
  commands = await commandsIn(join(base, 'home'));
  word = `w${newMark()}`;
});

afterEach(async () => {
  await commands.close();
  expect(processesWith(word)).toEqual([]);
  rmSync(base, { recursive: true, force: true });
});

/** The methods of a turn, and a person who answers so; a list is answered one after the other. */
function turnWith(
  answers:
    | ApprovalChoice
    | Answer
    | (ApprovalChoice | Answer)[]
    | ((question: Approval, settled: AbortSignal) => Promise<Answer>),
  {
    mode = 'manual' as 'manual' | 'auto',
    hasWorkspace = true,
    patterns = [] as string[],
    known = {} as Record<string, object>,
  } = {},
) {
  const asked: Approval[] = [];
  const events: RunnerEvent[] = [];
  const stop = new AbortController();
  const kept: string[] = [];
  const file: ConfigFile = {
    async addTo(_section, _key, text) {
      kept.push(text);
      return 'written';
    },
  };
  const allowed = createAllowList({ patterns, file, log: { info: () => {}, warn: () => {} } });
  const methods = createClientMethods({
    turn: {
      sessionId: 'one',
      runId: 'run',
      async ask(question, settled) {
        asked.push(question as Approval);
        if (typeof answers === 'function') return answers(question as Approval, settled ?? NEVER);
        const answer = Array.isArray(answers) ? answers[asked.length - 1]! : answers;
        return typeof answer === 'string' ? { kind: 'choice', choice: answer } : answer;
      },
    },
    agent: 'fake',
    workspace: hasWorkspace ? openWorkspace(root) : null,
    approvals: createApprovals({ mode, allowed, secrets: ['correct-horse-battery'] }),
    signal: stop.signal,
    tell: (told) => events.push(...told),
    updates: {
      announce: (call) => [{ type: 'status', payload: { kind: 'announced', text: JSON.stringify(call) } }],
      known: (id) => (known[id] ? { id: `tool of ${id}`, fields: known[id] } : null),
      answered: () => {},
      terminalOutput: (id, text) => [{ type: 'tool.output', payload: { tool_id: id, text } }],
    },
    commands,
  });
  const permission = (toolCall: object, options: object[] = USUAL, cancelled = NEVER) =>
    methods.requestPermission({ sessionId: 's', toolCall: { toolCallId: 'c', ...toolCall }, options }, cancelled);
  const run = (command: string | string[], more: object = {}) =>
    permission({ kind: 'execute', title: 'Run it', rawInput: { command, ...more } });
  const read = (path: string, more: object = {}) => methods.readTextFile({ path, ...more });
  const write = (path: string, content: string) => methods.writeTextFile({ path, content }, NEVER);
  const create = (command: string, more: object = {}) => methods.createTerminal({ command, ...more }, NEVER);
  /** Runs a terminal to its end. */
  const ran = async (command: string, more: object = {}) => {
    const id = await create(command, more);
    const exit = await methods.waitForTerminalExit(id);
    return { ...(await methods.terminalOutput(id)), ...exit };
  };
  return { methods, asked, events, stop, kept, permission, run, read, write, create, ran };
}

const selected = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } });
const CANCELLED = { outcome: { outcome: 'cancelled' } };
const refusal = (code: number, words: RegExp) => ({ code, message: expect.stringMatching(words) });

describe('a permission', () => {
  it.each<[ApprovalChoice | Answer, object]>([
    ['once', selected('yes')],
    ['session', selected('yes')],
    ['always', selected('yes')],
    ['deny', selected('no')],
    [{ kind: 'timeout' }, selected('no')],
    [{ kind: 'withdrawn' }, selected('no')],
  ])('[AC20] the answer %j is told as one of the options of the agent', async (answer, told) => {
    const { run, asked } = turnWith(answer);
    expect(await run('npm test')).toEqual(told);
    expect(asked).toHaveLength(1);
  });

  it.each<[string, object[], ApprovalChoice, object]>([
    ['no way to say no', [ONCE], 'deny', CANCELLED],
    ['only a lasting no', [ONCE, NO_ALWAYS], 'deny', selected('no-always')],
    ['only a lasting yes', [ALWAYS, NO], 'once', selected('yes-always')],
    [
      'the same id twice',
      [
        { ...ONCE, optionId: 'x' },
        { ...NO, optionId: 'x' },
      ],
      'once',
      selected('x'),
    ],
    ['the same kind twice', [ONCE, { ...ONCE, optionId: 'second' }, NO], 'once', selected('yes')],
    ['kinds that nobody knows', [{ ...ONCE, kind: 'maybe' }, { optionId: 'z' }, ONCE, NO], 'once', selected('yes')],
  ])('[AC20] options: %s', async (_, options, choice, told) => {
    const { permission, asked } = turnWith(choice);
    expect(await permission({ kind: 'execute', rawInput: { command: 'ls' } }, options)).toEqual(told);
    expect(asked).toHaveLength(1);
  });

  it('[AC20] nobody is asked what they could not allow', async () => {
    const { permission, asked } = turnWith('once');
    expect(await permission({}, [])).toEqual(CANCELLED);
    expect(await permission({}, [NO, { optionId: 'maybe', kind: 'maybe' }])).toEqual(selected('no'));
    expect(asked).toEqual([]);
  });

  it('[AC20] when a yes to the agent is more than a yes to this, the person is told', async () => {
    const { permission, asked } = turnWith('once');
    await permission({ kind: 'execute', rawInput: { command: 'ls' } }, [ALWAYS, NO]);
    expect(asked[0]!.description).toContain('only as "Always allow"');
  });

  it.each([[{}], [{ toolCall: {} }], [{ toolCall: { toolCallId: 'c' } }], [null], [[1]]])(
    '[AC20] what is no request is refused in words: %j',
    async (params) => {
      const { methods, asked } = turnWith('once');
      await expect(methods.requestPermission(params, NEVER)).rejects.toMatchObject(refusal(-32602, /must/));
      expect(asked).toEqual([]);
    },
  );

  it('[AC20] a command in the workspace is asked as one of ours, and the same patterns hold', async () => {
    const { run, asked, kept } = turnWith(['always', 'session'], { patterns: ['terminal: make *'] });
    expect(await run('make all', { description: 'Builds', timeout: 1000, cwd: root })).toEqual(selected('yes'));
    expect(asked).toEqual([]);
    await run('npm test', { description: 'Runs the tests' });
    await run(['/bin/bash', '-lc', 'npm test'], { call_id: '2', started_at_ms: 1, is_background: false, cwd: root });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ tool_name: 'terminal', command: 'npm test', pattern: 'terminal: npm test' });
    expect(asked[0]!.description).toMatch(/^fake asks to run this itself, with all rights.*It says: "Runs the tests"/);
    expect(kept).toEqual(['terminal: npm test']);
    await run('npm test', { cwd: 'sub' });
    await run('npm test', { cwd: 'sub' });
    expect(asked).toHaveLength(2);
    expect(asked[1]!.command).toBe('npm test\n# cwd: sub');
  });

  it.each([
    ['elsewhere', { command: 'make', cwd: '/' }, 'make\n# cwd: /'],
    ['in nobody’s terms', { script: 'make' }, 'Run it\n# script: make'],
    ['as a text alone', 'make', 'Run it\n# input: make'],
    ['of a shell of its own', { command: ['./sh', '-c', 'make'] }, './sh -c make'],
    ['with a folder too many', { command: 'make', cwd: '.', workdir: '/' }, 'make\n# workdir: /'],
    ['with an environment', { command: 'make', env: { A: 'b' } }, 'make\n# env: {"A":"b"}'],
    ['with what may be an environment', { command: 'make', env: [{ name: 'A' }] }, 'make\n# env: [{"name":"A"}]'],
    ['with more that it says', { command: 'make', sandbox: false }, 'make\n# sandbox: false'],
    ['as a list of anything', { command: [1] }, 'Run it\n# input: [1]'],
  ])('[AC20][AP3] a command %s is covered by no pattern for commands', async (_, rawInput, shown) => {
    const { permission, asked } = turnWith('deny', { patterns: ['terminal: make *', 'terminal: make'] });
    await permission({ kind: 'execute', title: 'Run it', rawInput });
    expect(asked).toMatchObject([{ tool_name: expect.stringMatching(/^(fake.execute|terminal)$/), command: shown }]);
  });

  it('[AC20][AP3] a change is a change of our files only where every path of it is inside', async () => {
    const { permission, asked } = turnWith('deny', { patterns: ['write_file'] });
    symlinkSync(base, join(root, 'out'));
    const edit = (...paths: string[]) =>
      permission({
        kind: 'edit',
        title: 'Edit',
        content: paths.map((path) => ({ type: 'diff', path, oldText: 'a\n', newText: 'b\n' })),
      });
    expect(await edit(join(root, 'a.txt'), join(root, 'new/b.txt'))).toEqual(selected('yes'));
    expect(asked).toEqual([]);
    await edit(join(root, 'a.txt'), join(base, 'outside.txt'));
    await edit(join(root, 'out/x.txt'));
    await permission({ kind: 'edit', title: 'Edit something' });
    expect(asked.map(({ tool_name }) => tool_name)).toEqual(Array(3).fill('fake.edit'));
    expect(asked[0]!.command).toContain(join(base, 'outside.txt'));
    expect(asked[0]!.command).toContain('+b');
  });

  it('[AC20][AP5] of a change it is shown what differs, of other things their input, and no secret', async () => {
    const { permission, asked } = turnWith('deny');
    const content = [
      { type: 'diff', path: join(root, 'a.txt'), oldText: 'one\ntwo\n', newText: 'one\n2\n' },
      { type: 'x' },
      7,
    ];
    await permission({ kind: 'edit', rawInput: { path: 'a.txt' }, content });
    expect(asked[0]).toMatchObject({
      tool_name: 'write_file',
      command: expect.stringMatching(/^a\.txt\ndiff:\n[\s\S]*-two\n *\+2/),
    });
    await permission({ kind: 'fetch', title: 'Fetch', rawInput: { url: 'http://x/?key=correct-horse-battery' } });
    expect(asked[1]).toMatchObject({ tool_name: 'fake.fetch', command: 'Fetch\n# url: http://x/?key=[hidden]' });
  });

  it('[AC20] a request that names only its call is asked about with what was said of that call before', async () => {
    const known = { c: { kind: 'execute', title: 'x', rawInput: { command: 'rm -r build' } } };
    const { permission, asked, events } = turnWith('deny', { known });
    await permission({ kind: null, title: null });
    expect(asked).toMatchObject([{ tool_name: 'terminal', command: 'rm -r build', tool_id: 'tool of c' }]);
    expect(events).toHaveLength(1);
    await permission({ toolCallId: 'never announced' });
    expect(asked[1]).toMatchObject({ tool_name: 'fake.other', command: 'other' });
  });

  it('[AC20] several at once do not touch each other', async () => {
    const { run, asked } = turnWith(async ({ command }) => ({
      kind: 'choice',
      choice: command === 'b' ? 'deny' : 'once',
    }));
    expect(await Promise.all(['a', 'b', 'c'].map((each) => run(each)))).toEqual(['yes', 'no', 'yes'].map(selected));
    expect(asked).toHaveLength(3);
  });

  it('[AC20] auto asks nobody', async () => {
    const { run, asked } = turnWith('deny', { mode: 'auto' });
    expect(await run('rm -r /')).toEqual(selected('yes'));
    expect(asked).toEqual([]);
  });

  it('[AC20] a stop of the turn, and the agent itself, take a question back', async () => {
    const withdrawn = (settled: AbortSignal) =>
      new Promise<Answer>((resolve) => settled.addEventListener('abort', () => resolve({ kind: 'withdrawn' })));
    const { permission, asked, stop } = turnWith((_, settled) => withdrawn(settled));
    const taken = new AbortController();
    const answered = permission({ title: 'x' }, USUAL, taken.signal);
    await until('asked', () => asked.length === 1);
    taken.abort();
    expect(await answered).toEqual(CANCELLED);
    stop.abort();
    expect(await permission({ title: 'y' })).toEqual(CANCELLED);
    expect(asked).toHaveLength(1);
  });
});

describe('a file is read', () => {
  it.each<[object, string]>([
    [{}, 'one\ntwo\r\nthree\n'],
    [{ line: 2 }, 'two\r\nthree\n'],
    [{ line: 2, limit: 1 }, 'two\r\n'],
    [{ line: 0, limit: 1 }, 'one\n'],
    [{ line: null, limit: null }, 'one\ntwo\r\nthree\n'],
    [{ limit: 99 }, 'one\ntwo\r\nthree\n'],
  ])('[AC21] with its line ends, from a line and so many lines: %j', async (range, content) => {
    const { read, asked } = turnWith('deny');
    expect(await read('a.txt', range)).toEqual({ content });
    expect(await read(join(root, 'a.txt'), range)).toEqual({ content });
    expect(asked).toEqual([]);
  });

  it('[AC21][RU3] only inside the workspace, whatever leads out, and only what is a file', async () => {
    const { read } = turnWith('once');
    symlinkSync(join(base, 'outside.txt'), join(root, 'link'));
    symlinkSync('a.txt', join(root, 'inside'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    expect(await read('inside')).toEqual({ content: 'one\ntwo\r\nthree\n' });
    for (const path of ['../outside.txt', join(base, 'outside.txt'), 'link', '/etc/passwd', '/dev/zero']) {
      await expect(read(path), path).rejects.toMatchObject(refusal(-32002, /outside the workspace/));
    }
    for (const path of ['pipe', 'sub'])
      await expect(read(path)).rejects.toMatchObject(refusal(-32002, /not a regular/));
    await expect(read('none.txt')).rejects.toMatchObject(refusal(-32002, /does not exist/));
  });

  it('[AC21] text only, whole or not at all', async () => {
    const { read } = turnWith('once');
    writeFileSync(join(root, 'empty'), '');
    writeFileSync(join(root, 'binary'), Buffer.from([1, 0, 2]));
    writeFileSync(join(root, 'latin'), Buffer.from([0x61, 0xe4, 0x0a]));
    writeFileSync(join(root, 'bom'), '\ufeffx');
    writeFileSync(join(root, 'huge'), `${'x'.repeat(1023)}\n`.repeat(5000));
    expect(await read('empty')).toEqual({ content: '' });
    expect(await read('bom')).toEqual({ content: '\ufeffx' });
    expect((await read('huge', { line: 4999 })).content).toHaveLength(2048);
    await expect(read('huge')).rejects.toMatchObject(refusal(-32602, /larger than 4 MB/));
    await expect(read('binary')).rejects.toMatchObject(refusal(-32602, /binary/));
    await expect(read('latin')).rejects.toMatchObject(refusal(-32602, /UTF-8/));
    await expect(read('a.txt', { line: 9 })).rejects.toMatchObject(refusal(-32602, /has 3 lines/));
    await expect(read('a.txt', { line: -1 })).rejects.toMatchObject(refusal(-32602, /whole number/));
    await expect(turnWith('once').methods.readTextFile(null)).rejects.toMatchObject(
      refusal(-32602, /"path" is missing/),
    );
  });
});

describe('a file is written', () => {
  it('[AC21][AP1] after a yes, whole, with its folders; a no is a refusal and nothing is there', async () => {
    const yes = turnWith('once');
    expect(await yes.write(join(root, 'new/deep/b.txt'), 'b')).toEqual({});
    expect(await yes.write('a.txt', '1')).toEqual({});
    expect(readFileSync(join(root, 'new/deep/b.txt'), 'utf8') + readFileSync(join(root, 'a.txt'), 'utf8')).toBe('b1');
    expect(yes.asked).toMatchObject([{ tool_name: 'write_file', command: 'new/deep/b.txt\ncontent:\n  b' }, {}]);
    const no = turnWith('deny');
    await expect(no.write('c/d.txt', 'b')).rejects.toMatchObject(refusal(-32001, /did not allow/));
    expect(() => readFileSync(join(root, 'c'))).toThrow('ENOENT');
  });

  it('[AC21][TL1] nobody is asked about what is outside or too large, and nothing of it is written', async () => {
    const { write, asked } = turnWith('once');
    symlinkSync(base, join(root, 'out'));
    symlinkSync(join(base, 'nothing'), join(root, 'dangling'));
    for (const path of ['../x.txt', join(base, 'x.txt'), 'out/x.txt', 'dangling']) {
      await expect(write(path, 'x'), path).rejects.toMatchObject(refusal(-32602, /outside/));
    }
    await expect(write('big', 'x'.repeat(4 * 1024 * 1024 + 1))).rejects.toMatchObject(
      refusal(-32602, /4 MB are the most/),
    );
    expect(asked).toEqual([]);
    await expect(write('sub', 'x')).rejects.toMatchObject(refusal(-32603, /not a regular file/));
  });

  it('[AC20] is not asked about again when just that was allowed; once, and only what was shown', async () => {
    const { permission, write, asked } = turnWith('once');
    const path = join(root, 'a.txt');
    const allow = () =>
      permission({ kind: 'edit', content: [{ type: 'diff', path, oldText: 'two\r\n', newText: '2\r\n' }] });
    await allow();
    await write(path, 'one\n2\nthree\n');
    expect(asked).toHaveLength(1);
    await write(path, 'one\n2\nthree\n');
    expect(asked).toHaveLength(2);
    await allow();
    await write(path, 'something else');
    expect(asked).toHaveLength(4);
    await permission({ kind: 'edit', locations: [{ path: 'b.txt' }] });
    await write('c.txt', 'x');
    expect(asked).toHaveLength(6);
    await permission({ kind: 'edit', content: [{ type: 'diff', path, oldText: 'two', newText: '' }] });
    await write(path, 'anything');
    expect(asked).toHaveLength(8);
  });

  it('[AC20] what was not shown is asked about, whatever of it was shown', async () => {
    const path = join(root, 'a.txt');
    const diff = (oldText: string | null, newText: string) => ({ content: [{ type: 'diff', path, oldText, newText }] });
    const isAskedAfter = async (allowed: object, content: string): Promise<boolean> => {
      const { permission, write, asked } = turnWith('once');
      writeFileSync(path, 'one\ntwo\nthree\n');
      await permission({ kind: 'edit', locations: [{ path }], ...allowed });
      await write(path, content);
      expect(readFileSync(path, 'utf8')).toBe(content);
      return asked.length > 1;
    };
    expect(await isAskedAfter(diff('two', '2'), 'one\n2\nthree\nrm -rf /\n')).toBe(true);
    expect(await isAskedAfter({ rawInput: { file_path: path, old_string: 'two', new_string: '2' } }, 'x')).toBe(true);
    expect(await isAskedAfter({ rawInput: { file_path: path, content: 'all' } }, 'all and more')).toBe(true);
    expect(await isAskedAfter(diff(null, 'all'), 'all and more')).toBe(true);
    expect(await isAskedAfter(diff('four', '4'), 'one\ntwo\n4\n')).toBe(true);

    expect(await isAskedAfter(diff('two', '2'), 'one\n2\nthree\n')).toBe(false);
    expect(await isAskedAfter(diff('two\n', ''), 'one\nthree\n')).toBe(false);
    expect(await isAskedAfter(diff('one\ntwo\nthree\n', 'one\nthree\n'), 'one\nthree\n')).toBe(false);
    expect(await isAskedAfter({ rawInput: { file_path: path, content: 'all' } }, 'all')).toBe(false);
    expect(await isAskedAfter(diff(null, 'all'), 'all\n')).toBe(false);
    const two = [...diff('two', '2').content, ...diff('three', '3').content];
    expect(await isAskedAfter({ content: two }, 'one\n2\n3\n')).toBe(false);
    expect(await isAskedAfter({ content: two }, 'one\n2\nthree\n')).toBe(true);
  });
});

describe('a terminal', () => {
  it('[AC22] runs a program with exactly these arguments, and that is what the person is shown', async () => {
    const { ran, asked } = turnWith('once');
    const args = ['a b', '', "it's", '$HOME', '`x`', '"', '*', 'two\nlines', '-n', '\\', 'ä€😀', '!', '~', '#'];
    const { output, exitCode } = await ran('printf', { args: ['[%s]', ...args] });
    expect(output).toBe(args.map((each) => `[${each}]`).join(''));
    expect(exitCode).toBe(0);
    // What is shown means the same to a shell.
    expect(execFileSync('/bin/sh', ['-c', asked[0]!.command], { encoding: 'utf8' })).toBe(output);
  });

  it('[AC22] a command without arguments is a line for a shell', async () => {
    const { ran, asked } = turnWith('once');
    expect(await ran('echo one && echo two | tr a-z A-Z')).toMatchObject({ output: 'one\nTWO\n', exitCode: 0 });
    expect(asked[0]).toMatchObject({ tool_name: 'terminal', command: 'echo one && echo two | tr a-z A-Z' });
  });

  it('[AC22] has its environment and its folder, which are shown', async () => {
    const { ran, asked } = turnWith('once');
    const env = [
      { name: 'GIVEN', value: 'a b' },
      { name: 'TURNKEEP_COMMAND', value: 'mine' },
    ];
    const { output } = await ran('pwd; echo "$GIVEN"; echo "$TURNKEEP_COMMAND"', { env, cwd: join(root, 'sub') });
    expect(output).toMatch(/\/ws\/sub\na b\n[0-9a-f]{32}\n$/);
    expect(asked[0]!.command).toMatch(/# cwd: sub\n# env: \{"GIVEN":"a b"/);
  });

  it.each<[string, object, RegExp]>([
    ['outside', { cwd: '/tmp' }, /outside/],
    ['in a file', { cwd: 'a.txt' }, /not a folder/],
    ['nowhere', { cwd: 'none' }, /does not exist/],
    ['with no name of a variable', { env: [{ name: 'A=B', value: '' }] }, /"env" needs/],
    ['with arguments that are no text', { args: [1] }, /must be strings/],
    ['with a NUL', { args: ['\0'] }, /NUL/],
    ['of 200 kB', { args: ['x'.repeat(200_000)] }, /100000 are the most/],
  ])('[AC22] %s is refused, and nobody is asked', async (_, more, words) => {
    const { create, asked } = turnWith('once');
    await expect(create('ls', more)).rejects.toMatchObject(refusal(-32602, words));
    expect(asked).toEqual([]);
  });

  it('[AC22][AP1] a no is a refusal, and nothing runs', async () => {
    const { create } = turnWith('deny');
    await expect(create(`touch ${join(root, 'made')}`)).rejects.toMatchObject(refusal(-32001, /did not allow/));
    expect(() => readFileSync(join(root, 'made'))).toThrow('ENOENT');
  });

  it.each([
    ['the same line', ['echo x'], 'echo x', {}],
    ['a shell that is given the line', ['echo x'], 'sh', { args: ['-c', 'echo x'] }],
    ['the same words', [['printf', '%s', 'a b']], 'printf', { args: ['%s', 'a b'] }],
  ])('[AC20] is not asked about again when just that was allowed, once: %s', async (_, [allowed], command, more) => {
    const { run, ran, asked } = turnWith('once');
    await run(allowed!, { description: 'x' });
    expect(await ran(command, more)).toMatchObject({ exitCode: 0 });
    expect(asked).toHaveLength(1);
    await ran(command, more);
    expect(asked).toHaveLength(2);
    await run(allowed!);
    await ran(command, { ...more, cwd: 'sub' });
    await ran(command, { ...more, env: [{ name: 'LD_PRELOAD', value: '' }] });
    expect(asked).toHaveLength(5);
  });

  it('[AC22] keeps the end of its output, cut between characters, and never more than was wished', async () => {
    const { ran } = turnWith('once');
    const cut = await ran('printf "%0.s€" $(seq 1 100); printf ab', { outputByteLimit: 10 });
    expect(cut).toMatchObject({ output: '€€ab', truncated: true });
    expect(await ran('printf abc', { outputByteLimit: 3 })).toMatchObject({ output: 'abc', truncated: false });
    expect(await ran('printf abc', { outputByteLimit: 0 })).toMatchObject({ output: '', truncated: true });
    const noText = await ran("printf '\\377\\376\\375\\374'", { outputByteLimit: 6 });
    expect(noText).toMatchObject({ output: '\ufffd\ufffd', truncated: true });
    const huge = await ran('head -c 9000000 /dev/zero | tr "\\0" x');
    expect(huge.truncated).toBe(true);
    expect(huge.output).toHaveLength(1024 * 1024);
  });

  it('[AC22] is followed while it runs, killed, and released; how it ended is told', async () => {
    const { methods, create, events } = turnWith('once');
    const id = await create(`echo ${word}; sleep 60; echo never`);
    await until('output', async () => (await methods.terminalOutput(id)).output === `${word}\n`);
    expect(await methods.terminalOutput(id)).not.toHaveProperty('exitStatus');
    await until('told', () => events.some(({ type }) => type === 'tool.output'));
    expect(await methods.killTerminal(id)).toEqual({});
    expect(processesWith(word)).toEqual([]);
    expect(await methods.waitForTerminalExit(id)).toEqual({ exitCode: null, signal: 'SIGTERM' });
    expect(await methods.terminalOutput(id)).toMatchObject({ output: `${word}\n`, exitStatus: { signal: 'SIGTERM' } });
    expect(await methods.releaseTerminal(id)).toEqual({});
    for (const method of ['terminalOutput', 'waitForTerminalExit', 'killTerminal', 'releaseTerminal'] as const) {
      await expect(methods[method](id)).rejects.toMatchObject(refusal(-32002, /no terminal "run\.t1"/));
    }
    const failed = await create('exit 3');
    expect(await methods.waitForTerminalExit(failed)).toEqual({ exitCode: 3, signal: null });
  });

  it('[AC22][TL4] a release ends what runs, with all that it started', async () => {
    const { methods, create } = turnWith('once');
    const id = await create(`setsid sh -c 'trap "" TERM; sleep 60; : ${word}' & sleep 60; : ${word}`);
    await until('both run', () => processesWith(word).length >= 2);
    await methods.releaseTerminal(id);
    expect(processesWith(word)).toEqual([]);
  });

  it.each(['close', 'stop'])('[AC22][TL4] none outlives its turn: %s', async (how) => {
    const { methods, create, stop } = turnWith('once');
    await Promise.all([1, 2, 3].map(() => create(`sleep 60; : ${word}`)));
    // A process that was just begun has not its own command line yet.
    await until('all are there', () => processesWith(word).length >= 3);
    if (how === 'stop') stop.abort();
    else await methods.close();
    await until('all are gone', () => processesWith(word).length === 0);
    await methods.close();
    await expect(create('ls')).rejects.toMatchObject({ message: expect.stringContaining('stopped') });
  });

  it('[AC22] a stop while the person is asked starts nothing', async () => {
    const { create, stop, methods } = turnWith(async () => {
      stop.abort();
      return { kind: 'choice', choice: 'once' };
    });
    await expect(create(`sleep 60; : ${word}`)).rejects.toMatchObject(refusal(-32001, /stopped/));
    await methods.close();
  });

  it('[AC22] so many at once, and no more', async () => {
    const { methods, create } = turnWith('once', { mode: 'auto' });
    await Promise.all(Array.from({ length: 32 }, () => create('true')));
    await expect(create('true')).rejects.toMatchObject(refusal(-32603, /32 terminals are open/));
    await methods.close();
  }, 30_000);
});

it('[AC21][AC22] without a workspace there are no files and no commands, and permissions are of the agent alone', async () => {
  const { read, write, create, run, asked } = turnWith('once', { hasWorkspace: false, patterns: ['terminal: ls'] });
  for (const refused of [read('a.txt'), write('a.txt', ''), create('ls')]) {
    await expect(refused).rejects.toMatchObject(refusal(-32002, /no workspace/));
  }
  expect(await run('ls')).toEqual(selected('yes'));
  expect(asked).toMatchObject([{ tool_name: 'fake.execute' }]);
});
