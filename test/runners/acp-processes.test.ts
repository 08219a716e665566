/** The processes of agents: how long they live, and that nothing of them is left. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTurnEvents } from '../../server/runners/acp/turn-events.ts';
import type { RunnerEvent } from '../../server/runners/runner.ts';
import { createPrograms } from '../../server/workspace/programs.ts';
import { type AcpBench, type AcpBenchChange, createAcpBench, programsIn } from '../support/acp-bench.ts';
import { startConversation } from '../support/acp-conversation.ts';
import { isRunning } from '../support/processes.ts';
import { runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';

let bench: AcpBench;
const DONE = { kind: 'completed' };
const SESSIONS = ['20260303_130002_aaaaaa', '20260303_130002_bbbbbb', '20260303_130002_cccccc'] as const;

beforeEach(async () => {
  bench = await createAcpBench();
});
afterEach(() => bench.close());

const open = async (change: AcpBenchChange): Promise<void> => {
  await bench.close();
  bench = await createAcpBench(change);
};

/** Pids that an agent wrote down: its own, and those of what it started. */
const pidsIn = (file: string): number[] =>
  existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];

it('[AC5] an agent that does not stop when it is asked to is ended, and the next turn waits for that', async () => {
  await open({ limits: { cancel_timeout_s: 0.5 } });
  const conversation = startConversation(bench.agent('--ignore-cancel', '--ignore-term'), {
    workspace: bench.workspace,
  });
  const stop = new AbortController();
  const ran = conversation.say('acp: say one; hang', { signal: stop.signal });
  await expect.poll(() => bench.sent('session/prompt')).toHaveLength(1);
  const [pid] = bench.processes();
  stop.abort();
  await ran;
  // Whoever stopped it does not wait for it.
  expect(isRunning(pid!)).toBe(true);
  expect((await conversation.say('Go on.')).end).toEqual(DONE);
  expect(bench.processes()).toHaveLength(1);
  expect(bench.processes()).not.toContain(pid);
});

it.each<[how: string, steps: string]>([
  ['crashes', 'grand; say one; crash'],
  ['is killed', 'grand; say one; kill'],
  ['writes a line without an end', 'grand; say one; endless 20'],
])('[AC5] what an agent started goes with it when it %s, also what ignores TERM', async (_, steps) => {
  const pids = path.join(bench.home, 'pids');
  await runTurn(bench.agent('--pids', pids), { input: `acp: ${steps}` });
  expect(pidsIn(pids)).toHaveLength(3);
  expect(pidsIn(pids).filter(isRunning)).toEqual([]);
});

it('[AC5] the stop of the server ends all agents and what they started, also those that ignore TERM', async () => {
  const pids = path.join(bench.home, 'pids');
  const agent = bench.agent('--pids', pids, '--ignore-term', '--grandchildren');
  await Promise.all(SESSIONS.map((sessionId) => runTurn(agent, { sessionId, input: 'hello' })));
  expect(pidsIn(pids).filter(isRunning)).toHaveLength(9);
  await bench.acp.close();
  expect(pidsIn(pids).filter(isRunning)).toEqual([]);
  expect((await runTurn(agent, { input: 'hello' })).end).toMatchObject({ kind: 'failed' });
});

it('[AC5] the stop of the server does not wait for an agent that is just starting', async () => {
  const ran = runTurn(bench.agent('--silent', 'initialize'), { input: 'hello' });
  await until('it starts', () => bench.processes().length > 0);
  await bench.acp.close();
  expect((await ran).end.kind).toBe('failed');
  expect(bench.processes()).toEqual([]);
});

it('[AC5] no agent is started before those that a killed server left are ended', async () => {
  let free = (): void => {};
  const ended = new Promise<void>((resolve) => {
    free = resolve;
  });
  let asked = 0;
  await open({
    ready: () => {
      asked += 1;
      return ended;
    },
  });
  const ran = runTurn(bench.agent(), { input: 'hello' });
  await until('it waits', () => asked > 0);
  expect(bench.processes()).toEqual([]);
  free();
  expect((await ran).end).toEqual(DONE);
});

it('[AC5] an agent that does nothing is ended after a while, and started again when it is needed', async () => {
  await open({ limits: { idle_s: 0.3 } });
  const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
  await conversation.say('hello');
  await until('it is ended', () => bench.processes().length === 0);
  expect((await conversation.say('hello again')).end).toEqual(DONE);
});

it('[AC5] of too many the one that was idle longest is ended, and never one that works', async () => {
  await open({ limits: { max_processes: 2 } });
  const agent = bench.agent();
  const [first, second, third] = SESSIONS;
  const works = runTurn(agent, {
    sessionId: first,
    workspace: bench.workspace,
    input: 'acp: say one; wait go; say two',
  });
  await expect.poll(() => bench.sent('session/prompt')).toHaveLength(1);
  const [busy] = bench.processes();
  await runTurn(agent, { sessionId: second, input: 'hello' });
  const idle = bench.processes().find((pid) => pid !== busy)!;
  await runTurn(agent, { sessionId: third, workspace: bench.workspace, input: 'acp: touch go; say done' });
  await until('the idle one is ended', () => !isRunning(idle));
  expect((await works).text).toBe('onetwo');
  await until('two are left', () => bench.processes().length === 2);
  expect(bench.processes()).toContain(busy);
});

it('[AC5] each session has its own agent: two work at once, and what becomes of one is nothing to the other', async () => {
  const agent = bench.agent();
  const [first, second] = SESSIONS;
  const works = runTurn(agent, {
    sessionId: first,
    workspace: bench.workspace,
    input: 'acp: say one; wait go; say two',
  });
  const other = await runTurn(agent, { sessionId: second, workspace: bench.workspace, input: 'acp: touch go; crash' });
  expect(other.end).toMatchObject({ kind: 'failed', error: { code: 'agent_crashed' } });
  expect(await works).toMatchObject({ end: DONE, text: 'onetwo' });
});

it('[AC5] a session without a workspace has a folder of its own, and both end with it', async () => {
  const [sessionId] = SESSIONS;
  const { text } = await runTurn(bench.agent(), { sessionId, input: 'acp: touch here; about' });
  const { cwd } = JSON.parse(text);
  expect(cwd.startsWith(bench.home)).toBe(true);
  expect(existsSync(path.join(cwd, 'here'))).toBe(true);
  await bench.acp.forget(sessionId);
  expect(existsSync(cwd)).toBe(false);
  expect(bench.processes()).toEqual([]);
});

it('[AC5] an agent that moves to another folder is started there', async () => {
  const { text } = await runTurn(bench.agent(), { workspace: bench.workspace, input: 'acp: about' });
  const moved = await runTurn(bench.agent(), { input: 'acp: about' });
  expect(JSON.parse(text).cwd).toBe(bench.workspace);
  expect(JSON.parse(moved.text).cwd).not.toBe(bench.workspace);
  await until('the first is gone', () => bench.processes().length === 1);
});

it('[AC6] what an agent says after it was stopped is part of no turn', async () => {
  const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
  const stop = new AbortController();
  const steps = 'oncancel say late; oncancel call read late; oncancel touch after; hang';
  const ran = conversation.say(`acp: ${steps}`, { signal: stop.signal });
  await expect.poll(() => bench.sent('session/prompt')).toHaveLength(1);
  stop.abort();
  expect((await ran).events).toEqual([]);
  await until('it has said that', () => existsSync(path.join(bench.workspace, 'after')));
  const next = await conversation.say('acp: say next');
  expect(next.events.map(({ type }) => type)).toEqual(['message.start', 'message.delta']);
  expect(next.text).toBe('next');
});

it('[AC5] a turn that is stopped while its agent starts ends that, and the next one starts another', async () => {
  const stop = new AbortController();
  const ran = runTurn(bench.agent('--slow-start', '600000'), { input: 'hello' }, stop.signal);
  await until('it starts', () => bench.processes().length > 0);
  stop.abort();
  // Not as one that did not start in its time.
  expect((await ran).end).toMatchObject({ kind: 'failed', error: { code: 'interrupted' } });
  expect((await runTurn(bench.agent(), { input: 'hello' })).end).toEqual(DONE);
  expect(bench.processes()).toHaveLength(1);
});

it('[AC6] a program that talks faster than it is read waits', async () => {
  const programs = createPrograms(programsIn(bench.home));
  let lines = 0;
  let free = (): void => {};
  const room = new Promise<void>((resolve) => {
    free = resolve;
  });
  const started = await programs.start({
    command: 'yes',
    args: [bench.home],
    env: { PATH: process.env.PATH ?? '' },
    folder: bench.home,
    maxLineBytes: 1000,
    onLine: () => {
      lines += 1;
    },
    room: () => (lines > 1000 ? room : null),
  });
  expect(started.ok).toBe(true);
  await until('it is read no further', async () => {
    const before = lines;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return before > 1000 && lines === before;
  });
  const before = lines;
  free();
  await until('it is read again', () => lines > before);
  await programs.close();
});

it('[AC6] events that nobody takes ask for room, until they are taken or nobody is there any more', async () => {
  const events = createTurnEvents();
  events.tell(Array<RunnerEvent>(999).fill({ type: 'message.start', payload: {} }));
  expect(events.room()).toBeNull();
  for (const makeRoom of [() => events.take(), () => events.close()]) {
    events.tell(Array<RunnerEvent>(1001).fill({ type: 'message.start', payload: {} }));
    const room = events.room();
    expect(room).not.toBeNull();
    makeRoom();
    await room;
  }
});

it('[AC6] what an agent says and asks between two prompts of a turn is no part of it', async () => {
  const asked: unknown[] = [];
  const after = path.join(bench.workspace, 'after');
  const said = [[{ text: 'acp: say two', attachments: [] }]];
  const { text, end } = await runTurn(bench.agent(), {
    workspace: bench.workspace,
    input:
      'acp: say one; late 20 say late; late 40 edit made.txt late; late 60 write made.txt late; late 200 touch after',
    ask: async (question) => {
      asked.push(question);
      return { kind: 'choice', choice: 'once' };
    },
    async steer() {
      await until('it has said and asked that', () => existsSync(after));
      return said.shift() ?? [];
    },
  });
  expect(end).toEqual(DONE);
  expect(text).toBe('onetwo');
  expect(asked).toEqual([]);
  expect(existsSync(path.join(bench.workspace, 'made.txt'))).toBe(false);
});
