/**
 * What an agent of others asks for, through the whole server and a real process: who is asked, what each answer does, and
 * that nothing of it is left. The agent is test/support/acp-agent.mjs, which does what its prompt says.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { SCRIPTED_AGENT } from '../support/acp-bench.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { newMark } from '../support/commands.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { processesWith } from '../support/processes.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

interface Asked {
  id: string;
  params: { tool_name: string; command: string; description: string; choices: string[] };
}

/** A home with the scripted agent, a workspace, and a word by which the processes of a test are found. */
async function place(more = '', flags: string[] = []) {
  const word = `w${newMark()}`;
  /** One that does not end by itself. */
  const command = `sleep 6${BigInt(`0x${newMark().slice(0, 8)}`)}`;
  // The folders go first and the server last: what a test leaves running would be seen.
  onTestFinished(async () => {
    await until('the process table has nothing of ours', () => processesWith(word).length === 0);
    expect(processesWith(command)).toEqual([]);
  });
  const home = await temporaryFolder();
  const workspace = await temporaryFolder();
  const agent = [process.execPath, SCRIPTED_AGENT, '--pids', path.join(home, word), ...flags];
  await mkdir(home, { recursive: true });
  const runner = `runner: {kind: acp, name: scripted, command: ${JSON.stringify(agent)}, cancel_timeout_s: 2}\n`;
  await writeFile(path.join(home, 'config.yaml'), `${runner}${more}`);
  await writeFile(path.join(workspace, 'in.txt'), 'one\ntwo\nthree\n');
  const there = (name: string) => existsSync(path.join(workspace, name));
  const text = (name: string) => readFile(path.join(workspace, name), 'utf8');
  return { home, workspace, word, command, there, text };
}

async function working(more = '', flags: string[] = []) {
  const at = await place(more, flags);
  const server = await startTestServer({ home: at.home });
  const sessionId = await server.session({ workspace: at.workspace });
  return { ...at, server, sessionId, ...asksOf(server, sessionId) };
}

function asksOf(server: Pick<TestServer, 'call'> | Pick<ChildServer, 'call'>, sessionId: string) {
  const address = `/api/sessions/${sessionId}`;
  const open = async (): Promise<Asked[]> => (await server.call('GET', `${address}/requests`)).json.requests;
  const answer = async (id: string, choice: string): Promise<string> =>
    (await server.call('POST', `${address}/requests/${id}`, { choice })).json.status;
  const isAsked = (count = 1): Promise<Asked[]> =>
    until(`${count} asked`, async () => {
      const asked = await open();
      return asked.length === count ? asked : null;
    });
  return { address, open, answer, isAsked };
}

/** The results of the calls of a session, oldest first. */
const results = async (server: TestServer, sessionId: string): Promise<string[]> =>
  (await server.messages(sessionId)).filter((row) => row.role === 'tool').map((row) => row.content);

it('[AC20][AP7] a permission: the session waits, nothing is done before the yes, and the turn goes on with it', async () => {
  const { server, sessionId, isAsked, answer, there } = await working();
  const asked = server.ask(sessionId, 'acp: exec echo done > made.txt; say after');
  const [request] = await isAsked();
  expect(request!.params).toMatchObject({ tool_name: 'terminal', command: 'echo done > made.txt' });
  expect(request!.params.description).toContain('scripted asks to run this itself');
  expect((await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status).toBe('waiting');
  expect(there('made.txt')).toBe(false);
  expect(await answer(request!.id, 'once')).toBe('ok');
  expect(await asked).toMatchObject({ admission: { outcome: 'completed' }, message: { content: 'after' } });
  expect(there('made.txt')).toBe(true);
  expect(await answer(request!.id, 'deny')).toBe('expired');
});

it('[AC20][AP2] a no, and silence, are told to the agent: nothing is done, and its turn goes on', async () => {
  const { server, sessionId, isAsked, answer, there } = await working('approvals: {timeout: 0.4}\n');
  const asked = server.ask(
    sessionId,
    'acp: exec touch a.txt; edit b.txt x; write c.txt x; term touch d.txt; say after',
  );
  await answer((await isAsked())[0]!.id, 'deny');
  expect(await asked).toMatchObject({ admission: { outcome: 'completed' }, message: { content: 'after' } });
  expect(['a.txt', 'b.txt', 'c.txt', 'd.txt'].filter(there)).toEqual([]);
  const [denied, ...silent] = await results(server, sessionId);
  expect(denied).toContain('did not allow');
  expect(silent).toEqual([
    expect.stringContaining('did not allow'),
    ...Array(2).fill(expect.stringContaining('in time')),
  ]);
});

it('[AC20][AP7] clients that are gone change nothing; of two that answer at once the first counts', async () => {
  const { server, sessionId, isAsked, answer, there, address } = await working();
  const watched = await server.stream(`${address}/events`);
  await watched.next((event) => event.type === 'session.snapshot');
  const asked = server.ask(sessionId, 'acp: exec touch made.txt');
  await watched.next((event) => event.type === 'request.open');
  watched.drop();
  const [request] = await isAsked();
  const other = await connectGateway(server.url, { capable: true });
  await other.call('session.resume', { session_id: sessionId });
  const [first, second] = await Promise.all([
    other.call('request.answer', { id: request!.id, result: { choice: 'once' } }).then(({ status }) => status),
    answer(request!.id, 'deny'),
  ]);
  expect([first, second].toSorted()).toEqual(['expired', 'ok']);
  expect((await asked).admission.outcome).toBe('completed');
  expect(there('made.txt')).toBe(first === 'ok');
});

it('[AC20] exactly one question for one thing, also where the agent has its client do it', async () => {
  const { server, sessionId, isAsked, answer, open, text, word } = await working();
  const asked = server.ask(
    sessionId,
    `acp: askwrite new/a.txt hello; askterm echo ${word} > b.txt; say after; write new/a.txt again`,
  );
  const questions: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const [request] = await isAsked();
    questions.push(`${request!.params.tool_name}: ${request!.params.command}`);
    expect(await answer(request!.id, 'once')).toBe('ok');
    await until('it is over', async () => (await open()).every(({ id }) => id !== request!.id));
  }
  expect((await asked).admission.outcome).toBe('completed');
  expect(questions).toEqual([
    expect.stringMatching(/^write_file: new\/a\.txt\n[\s\S]*\+hello/),
    `terminal: echo ${word} > b.txt`,
    expect.stringMatching(/^write_file: new\/a\.txt\n[\s\S]*again/),
  ]);
  expect(await text('new/a.txt')).toBe('again');
  expect(await text('b.txt')).toBe(`${word}\n`);
});

it('[AC20][AP4] what was allowed for the session is not asked again, of the agent or of its client', async () => {
  const { server, sessionId, isAsked, answer, open } = await working();
  const asked = server.ask(sessionId, 'acp: exec true; exec true; term true; askterm true; say after');
  await answer((await isAsked())[0]!.id, 'session');
  expect((await asked).message.content).toBe('after');
  expect((await server.ask(sessionId, 'acp: exec true; say more')).message.content).toBe('more');
  expect(await open()).toEqual([]);
});

it('[AC20] auto asks nobody, whatever the agent asks', async () => {
  const { server, sessionId, text } = await working('approvals: {mode: auto}\n');
  const script =
    'acp: exec echo 1 > a.txt; askwrite b.txt 2; askterm echo 3 > c.txt; options reject_once; exec echo 4 > a.txt';
  expect((await server.ask(sessionId, script)).admission.outcome).toBe('completed');
  expect([await text('a.txt'), await text('b.txt'), await text('c.txt')]).toEqual(['1\n', '2', '3\n']);
});

it('[AC20][AP7] several at once are answered apart, and an interrupt takes back what is open', async () => {
  const { server, sessionId, isAsked, answer, open, there, address } = await working();
  const asked = server.ask(
    sessionId,
    'acp: together exec touch a.txt | exec touch b.txt | exec touch c.txt; say after',
  );
  const three = await isAsked(3);
  const idOf = (name: string) => three.find(({ params }) => params.command.endsWith(name))!.id;
  await answer(idOf('b.txt'), 'deny');
  await answer(idOf('a.txt'), 'once');
  await until('a.txt', () => there('a.txt'));
  await server.call('POST', `${address}/interrupt`, {});
  expect((await asked).admission.outcome).toBe('interrupted');
  expect(await open()).toEqual([]);
  expect(await answer(idOf('c.txt'), 'once')).toBe('expired');
  expect(['a.txt', 'b.txt', 'c.txt'].filter(there)).toEqual(['a.txt']);
  // The agent heard that its question was taken back, and the next turn is its own.
  expect((await server.ask(sessionId, 'acp: say alive')).message.content).toBe('alive');
});

it('[AC21][RU3] files inside the workspace, and none outside', async () => {
  const { server, sessionId, workspace, home } = await working('approvals: {mode: auto}\n');
  await server.ask(
    sessionId,
    `acp: read in.txt; read in.txt 2 1; read ../x; read ${home}/config.yaml; read none; write ${home}/x.txt x; write new/a.txt x; write in.txt 1`,
  );
  expect(await results(server, sessionId)).toEqual([
    'one\ntwo\nthree\n',
    'two\n',
    expect.stringContaining('outside the workspace'),
    expect.stringContaining('outside the workspace'),
    expect.stringContaining('does not exist'),
    expect.stringContaining('outside the workspace'),
    expect.stringContaining('new/a.txt'),
    expect.stringContaining('in.txt'),
  ]);
  expect(existsSync(path.join(home, 'x.txt'))).toBe(false);
  expect((await readdir(workspace)).toSorted()).toEqual(['in.txt', 'new']);
});

it('[AC22] a terminal is shown while it runs; none outlives its turn, however that ends', async () => {
  const { server, sessionId, address, command } = await working('approvals: {mode: auto}\n');
  const stream = await server.stream(`${address}/events`);
  await stream.next((event) => event.type === 'session.snapshot');
  await server.ask(sessionId, 'acp: term echo hello;exit 3; termkill 1 sleep 60');
  const output = await stream.next((event) => event.type === 'tool.output');
  expect(output.json.payload.text).toContain('hello');
  // The agent leaves it and says that it is done.
  await server.ask(sessionId, `acp: termkeep ${command}; say left`);
  expect(processesWith(command)).toEqual([]);
  // A stop ends what runs.
  const asked = server.ask(sessionId, `acp: term ${command}`);
  await until('it runs', () => processesWith(command).length > 0);
  await server.call('POST', `${address}/interrupt`, {});
  expect((await asked).admission.outcome).toBe('interrupted');
  await until('it is gone', () => processesWith(command).length === 0);
});

it('[AC22] an agent that dies takes its terminals and its questions along', async () => {
  const { server, sessionId, word, open, isAsked, command } = await working(
    'approvals: {allow: ["terminal: sleep *"]}\n',
  );
  const asked = server.ask(sessionId, `acp: together exec rm x | term ${command}; say never`);
  expect((await isAsked())[0]!.params.command).toBe('rm x');
  await until('its command runs', () => processesWith(command).length > 0);
  process.kill(processesWith(word)[0]!, 'SIGKILL');
  expect((await asked).message).toMatchObject({ status: 'error', error: { code: 'agent_crashed' } });
  expect(await open()).toEqual([]);
  expect(processesWith(command)).toEqual([]);
});

it('[AC20][AP7] kill -9 of the server while a question is open: the turn is kept, nothing was done, no process is left', async () => {
  const { home, workspace, word, there } = await place();
  const first = await startChildServer({ home });
  const created = await first.call('POST', '/api/sessions', { workspace });
  const sessionId = created.json.session.session_id;
  const before = asksOf(first, sessionId);
  await first.call('POST', `${before.address}/prompts`, { text: 'acp: say first; exec touch a.txt' });
  const [request] = await before.isAsked();
  expect(processesWith(word)).toHaveLength(1);
  await first.kill();

  const second = await startChildServer({ home });
  const after = asksOf(second, sessionId);
  await until('its agent is ended', () => processesWith(word).length === 0);
  const rows = (await second.call('GET', `${after.address}/messages`)).json.messages;
  expect(rows[0]).toMatchObject({ role: 'user', content: 'acp: say first; exec touch a.txt' });
  expect(rows[1]).toMatchObject({ role: 'assistant', content: 'first', tool_calls: [{}] });
  expect(rows.at(-1)).toMatchObject({ error: { code: 'interrupted', cause: 'process_restart' } });
  expect(await after.open()).toEqual([]);
  expect(await after.answer(request!.id, 'once')).toBe('expired');
  expect(there('a.txt')).toBe(false);

  const again = second.call('POST', `${after.address}/prompts?wait=1`, { text: 'acp: exec touch a.txt' });
  await after.answer((await after.isAsked())[0]!.id, 'once');
  expect((await again).json.admission.outcome).toBe('completed');
  expect(there('a.txt')).toBe(true);
  second.process.kill('SIGTERM');
  await second.exited;
});
