/** When the person is asked, about what, and what each answer means. */
import { expect, it } from 'vitest';
import type { ConfigFile } from '../../db/files/config-file.ts';
import { createAllowList } from '../../server/runners/allow-list.ts';
import { createApprovals } from '../../server/runners/approvals.ts';
import type { Answer, Question } from '../../server/runners/runner.ts';
import type { ToolEffect } from '../../server/workspace/tool.ts';

const SECRET = 'correct-horse-battery';
const YES: Answer = { kind: 'choice', choice: 'once' };

/** Approvals, and a person who gives this answer. */
function approvalsWith(answer: Answer, { mode = 'manual', patterns = [] as string[] } = {}) {
  const kept: string[] = [];
  const file: ConfigFile = {
    async addTo(_section, _key, text) {
      kept.push(text);
      return 'written';
    },
  };
  const allowed = createAllowList({ patterns, file, log: { info: () => {}, warn: () => {} } });
  const approvals = createApprovals({ mode: mode as 'manual', allowed, secrets: [SECRET] });
  const asked: Extract<Question, { kind: 'approval' }>[] = [];
  const ask = async (question: Question): Promise<Answer> => {
    asked.push(question as (typeof asked)[number]);
    return answer;
  };
  const call = (name: string, effect: ToolEffect, args: unknown, sessionId = 'one') =>
    approvals.allow({ name, effect }, args, { sessionId, ask });
  const run = (command: string, more: object = {}, sessionId = 'one') =>
    call('terminal', 'run', { command, ...more }, sessionId);
  return { call, run, asked, kept };
}

it.each<[ToolEffect, boolean]>([
  ['read', false],
  ['plan', false],
  ['ask', false],
  ['write', true],
  ['run', true],
])('[AP1] in manual mode a tool that can %s asks: %j', async (effect, isAsked) => {
  const { call, asked } = approvalsWith(YES);
  expect(await call('some_tool', effect, { command: 'x', path: 'a' })).toEqual({ ok: true });
  expect(asked).toHaveLength(isAsked ? 1 : 0);
});

it('[AP1] auto asks nobody', async () => {
  const { call, run, asked } = approvalsWith({ kind: 'timeout' }, { mode: 'auto' });
  expect(await run('rm -r /')).toEqual({ ok: true });
  expect(await call('write_file', 'write', { path: 'a', content: '' })).toEqual({ ok: true });
  expect(asked).toEqual([]);
});

it.each<[Answer, RegExp]>([
  [{ kind: 'choice', choice: 'deny' }, /^The person did not allow this\.$/],
  [{ kind: 'timeout' }, /did not allow this.*in time/],
  [{ kind: 'withdrawn' }, /did not allow this.*withdrawn/],
  [{ kind: 'answers', answers: {} }, /did not allow this/],
])('[AP2] %j is a no that the agent can read', async (answer, words) => {
  const { run } = approvalsWith(answer);
  const decision = await run('ls');
  expect(decision).toMatchObject({ ok: false, result: expect.stringMatching(words) });
  // Silence is a no as well, but nobody's.
  expect('denied' in decision).toBe(answer.kind === 'choice');
});

it('[AP1] once is for this call: the next one is asked again', async () => {
  const { run, asked, kept } = approvalsWith(YES);
  await run('npm test');
  await run('npm test');
  expect(asked).toHaveLength(2);
  expect(kept).toEqual([]);
});

it('[AP4] session is for the same call in this session, always for every session', async () => {
  const inSession = approvalsWith({ kind: 'choice', choice: 'session' });
  for (const command of ['npm test', 'npm test', 'npm run build']) await inSession.run(command);
  await inSession.run('npm test', {}, 'two');
  expect(inSession.asked.map(({ command }) => command)).toEqual(['npm test', 'npm run build', 'npm test']);
  const always = approvalsWith({ kind: 'choice', choice: 'always' });
  for (const session of ['one', 'two']) await always.run('npm test', {}, session);
  for (const name of ['write_file', 'write_file', 'edit_file']) await always.call(name, 'write', { path: 'a' });
  expect(always.asked.map(({ pattern }) => pattern)).toEqual(['terminal: npm test', 'write_file', 'edit_file']);
  expect(always.kept).toEqual(['terminal: npm test', 'write_file', 'edit_file']);
});

it('[AP3] what the configuration allows is not asked', async () => {
  const { run, call, asked } = approvalsWith({ kind: 'timeout' }, { patterns: ['terminal: npm test *', 'write_file'] });
  expect(await run('npm test a.ts')).toEqual({ ok: true });
  expect(await call('write_file', 'write', { path: 'a', content: 'b' })).toEqual({ ok: true });
  expect((await run('npm test; rm -r x')).ok).toBe(false);
  expect(asked).toHaveLength(1);
});

it('[AP3] another folder is another call; a time limit and the workspace itself are not', async () => {
  const { run, asked } = approvalsWith(YES, { patterns: ['terminal: make *'] });
  await run('make', { timeout_s: 5, cwd: '.' });
  await run('make', { timeout_s: '5' });
  expect(asked).toEqual([]);
  await run('make', { cwd: '../elsewhere' });
  await run('make', { cwd: '7' });
  expect(asked.map(({ command }) => command)).toEqual(['make\n# cwd: ../elsewhere', 'make\n# cwd: 7']);
});

it.each([
  ['run', { command: 'ls', x: { toString: 1, valueOf: 1 } }],
  ['run', { command: { toString: 1 } }],
  ['write', { path: 'a', valueOf: 'x', constructor: 'y', hasOwnProperty: 'z' }],
  ['write', JSON.parse('{"path":"a","__proto__":"x\\ny"}')],
  ['write', { path: { toString: 1 } }],
] as const)('[AP1][AP5] names and values of any kind are asked about: %s %j', async (effect, args) => {
  const { call, asked } = approvalsWith(YES);
  expect(await call('some_tool', effect, args)).toEqual({ ok: true });
  expect(asked).toHaveLength(1);
  for (const name of Object.keys(args))
    if (name !== 'path' && name !== 'command') expect(asked[0]!.command).toContain(name);
  expect(asked[0]!.command).not.toContain('[object');
});

it('[AP5] a command with a secret is shown without it, and is never kept', async () => {
  const { run, asked } = approvalsWith(YES);
  await run(`curl -H "x: ${SECRET}" x`);
  await run('TOKEN=abcdef make');
  await run('make');
  expect(asked.map(({ command, choices, pattern = null }) => [command, choices.join(' '), pattern])).toEqual([
    ['curl -H "x: [hidden]" x', 'once session deny', null],
    ['TOKEN=[hidden] make', 'once session deny', null],
    ['make', 'once session always deny', 'terminal: make'],
  ]);
});

it('[AP5] what is written is shown, as far as it goes', async () => {
  const { call, asked } = approvalsWith(YES);
  await call('write_file', 'write', { path: 'a\nb', content: `password=hunter2\n${'x'.repeat(20_000)}` });
  await call('edit_file', 'write', { path: 'c', old_text: 'one\ntwo', new_text: 'three', replace_all: true });
  expect(asked[0]!.command).toMatch(
    /^a\\nb\ncontent:\n {2}password=\[hidden\]\n {2}x+\n\[12\d{3} more characters are not shown\.\]$/,
  );
  expect(asked[1]!.command).toBe('c\nold_text:\n- one\n- two\nnew_text:\n+ three\nreplace_all: true');
});

it('[AP5] a command that cannot be shown whole is not asked about and not run', async () => {
  const { run, asked } = approvalsWith(YES);
  expect(await run(`echo ${'x'.repeat(20_000)}; rm -r y`)).toMatchObject({ ok: false });
  expect(asked).toEqual([]);
});

it('[AP4] a no stays a no, whatever is allowed in the same moment; other commands and sessions go on waiting', async () => {
  const allowed = createAllowList({
    patterns: [],
    file: { addTo: async () => 'written' },
    log: { info: () => {}, warn: () => {} },
  });
  const approvals = createApprovals({ mode: 'manual', allowed, secrets: [] });
  const answers: ((answer: Answer) => void)[] = [];
  const ask = (_question: Question, settled?: AbortSignal): Promise<Answer> =>
    new Promise((resolve) => {
      answers.push(resolve);
      settled?.addEventListener('abort', () => resolve({ kind: 'withdrawn' }));
    });
  const run = (command: string, sessionId: string) =>
    approvals.allow({ name: 'terminal', effect: 'run' }, { command }, { sessionId, ask });
  const calls = [
    run('make', 'one'),
    run('make', 'one'),
    run('make', 'one'),
    run('make clean', 'one'),
    run('make', 'two'),
  ];
  answers[0]!({ kind: 'choice', choice: 'session' });
  answers[1]!({ kind: 'choice', choice: 'deny' });
  expect((await Promise.all(calls.slice(0, 3))).map(({ ok }) => ok)).toEqual([true, false, true]);
  for (const at of [3, 4]) answers[at]!({ kind: 'timeout' });
  expect((await Promise.all(calls.slice(3))).map(({ ok }) => ok)).toEqual([false, false]);
});
