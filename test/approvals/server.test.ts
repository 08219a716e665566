/**
 * Approvals and questions through the whole server, with the built-in agent and the model runner and their real tools:
 * asked over SSE and WebSocket, answered over REST and WebSocket, by whoever comes first.
 */
import { access, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startFakeProvider } from '../support/fake-provider.ts';
import { connectGateway, type GatewayClient } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

interface Asked {
  id: string;
  kind: string;
  params: { command: string; choices: string[]; pattern?: string; questions: { qid: string }[] };
}

/** A server with a session that has a workspace. */
async function working(config = '', home?: string) {
  const workspace = await temporaryFolder();
  const server = await startTestServer({ ...(home ? { home } : {}), ...(config ? { config } : {}) });
  const sessionId = await server.session({ workspace });
  const open = async (): Promise<Asked[]> =>
    (await server.call('GET', `/api/sessions/${sessionId}/requests`)).json.requests;
  const answer = async (id: string, body: object) =>
    (await server.call('POST', `/api/sessions/${sessionId}/requests/${id}`, body)).json;
  const isThere = (name: string) =>
    access(path.join(workspace, name)).then(
      () => true,
      () => false,
    );
  return { server, sessionId, workspace, open, answer, isThere };
}

const isAsked = (open: () => Promise<Asked[]>, count = 1) =>
  until(`${count} asked`, async () => {
    const asked = await open();
    return asked.length === count ? asked : null;
  });

const statusOf = async (server: TestServer, sessionId: string): Promise<string> =>
  (await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status;

/** The results of the tools of a session, oldest first. */
const toolResults = async (server: TestServer, sessionId: string): Promise<string[]> =>
  (await server.messages(sessionId)).filter((row) => row.role === 'tool').map((row) => row.content);

it('[AP1][AP7] a turn that writes waits, and its session says so; nothing is there before the yes', async () => {
  const { server, sessionId, open, answer, isThere, workspace } = await working();
  const stream = await server.stream(`/api/sessions/${sessionId}/events`);
  await stream.next((event) => event.type === 'session.snapshot');
  const { admission } = await server.prompt(sessionId, '/write a.txt hello');
  const told = await stream.next((event) => event.type === 'request.open');
  expect(told.json.payload).toMatchObject({ kind: 'approval', params: { tool_name: 'write_file' } });
  expect((await isAsked(open))[0]).toMatchObject({ id: told.json.payload.id });
  expect(await statusOf(server, sessionId)).toBe('waiting');
  expect(await isThere('a.txt')).toBe(false);
  expect(await answer(told.json.payload.id, { choice: 'once' })).toEqual({ status: 'ok' });
  const cancel = await stream.next((event) => event.type === 'request.cancel');
  expect(cancel.json.payload).toEqual({ id: told.json.payload.id, method: 'approval', reason: 'resolved' });
  const end = await stream.next((event) => event.type === 'message.complete');
  expect(end.json.payload).toMatchObject({ admission_id: admission.admission_id, outcome: 'completed' });
  expect(await readFile(path.join(workspace, 'a.txt'), 'utf8')).toBe('hello\n');
  expect(await statusOf(server, sessionId)).toBe('idle');
  expect(await answer(told.json.payload.id, { choice: 'deny' })).toEqual({ status: 'expired' });
});

it('[AP2] a no is told to the agent, nothing is run, and the next prompt works', async () => {
  const { server, sessionId, open, answer, isThere } = await working();
  const asked = server.ask(sessionId, '/run touch made.txt');
  const [request] = await isAsked(open);
  expect(request!.params.command).toBe('touch made.txt');
  await answer(request!.id, { choice: 'deny' });
  expect((await asked).admission.outcome).toBe('completed');
  expect(await toolResults(server, sessionId)).toEqual(['The person did not allow this.']);
  expect(await isThere('made.txt')).toBe(false);
  expect((await server.ask(sessionId, '1 + 1')).message.content).toContain('2');
});

it('[AP2] silence is a no after approvals.timeout; an answer after it changes nothing', async () => {
  const { server, sessionId, answer, isThere } = await working('approvals: {timeout: 0.3}');
  const stream = await server.stream(`/api/sessions/${sessionId}/events`);
  await stream.next((event) => event.type === 'session.snapshot');
  expect((await server.ask(sessionId, '/run touch made.txt')).admission.outcome).toBe('completed');
  const { id } = (await stream.next((event) => event.type === 'request.open')).json.payload;
  const cancel = await stream.next((event) => event.type === 'request.cancel');
  expect(cancel.json.payload).toEqual({ id, method: 'approval', reason: 'timeout' });
  expect((await toolResults(server, sessionId))[0]).toContain('nobody answered in time');
  expect(await answer(id, { choice: 'once' })).toEqual({ status: 'expired' });
  expect(await isThere('made.txt')).toBe(false);
});

it('[AP1] approvals.mode: auto asks nobody', async () => {
  const { server, sessionId, workspace } = await working('approvals: {mode: auto}');
  await server.ask(sessionId, '/run echo done > made.txt');
  expect(await readFile(path.join(workspace, 'made.txt'), 'utf8')).toBe('done\n');
});

it('[AP1] without a workspace nothing is written, run or asked', async () => {
  const { server, open } = await working();
  const bare = await server.session();
  for (const prompt of ['/write a.txt hello', '/run ls']) await server.ask(bare, prompt);
  expect(await toolResults(server, bare)).toEqual(Array(2).fill(expect.stringContaining('no workspace')));
  expect(await open()).toEqual([]);
});

it('[AP4] always holds for other sessions at once, and after a restart; session only for its own', async () => {
  const home = await temporaryFolder();
  const config = '# my settings\napprovals:\n  timeout: 60 # a minute\n';
  const first = await working(config, home);
  const { server, sessionId, open, answer, workspace } = first;
  let asked = server.ask(sessionId, '/run echo a >> made.txt');
  const [request] = await isAsked(open);
  expect(request!.params).toMatchObject({ pattern: 'terminal: echo a >> made.txt' });
  await answer(request!.id, { choice: 'always' });
  await asked;
  asked = server.ask(sessionId, '/write b.txt b');
  await answer((await isAsked(open))[0]!.id, { choice: 'session' });
  await asked;
  await server.ask(sessionId, '/write c.txt c'); // Not asked again here.
  const second = await server.session({ workspace });
  await server.ask(second, '/run echo a >> made.txt');
  expect(await readFile(path.join(workspace, 'made.txt'), 'utf8')).toBe('a\na\n');
  const written = await readFile(path.join(home, 'config.yaml'), 'utf8');
  expect(written).toContain('# my settings\n');
  expect(written).toContain('timeout: 60 # a minute\n');
  await server.close();

  const again = await working('', home);
  await again.server.ask(again.sessionId, '/run echo a >> made.txt');
  expect(await again.isThere('made.txt')).toBe(true);
  const forgotten = again.server.ask(sessionId, '/write b.txt b');
  const waiting = async (): Promise<Asked[]> =>
    (await again.server.call('GET', `/api/sessions/${sessionId}/requests`)).json.requests;
  const [asksAgain] = await isAsked(waiting);
  await again.server.call('POST', `/api/sessions/${sessionId}/requests/${asksAgain!.id}`, { choice: 'deny' });
  await forgotten;
});

it('[AP5] a secret of the configuration is in no question, and what has one cannot be allowed for good', async () => {
  const home = await temporaryFolder();
  await writeFile(path.join(home, '.env'), 'TURNKEEP_TOKEN=the-token-of-this-server\n');
  const workspace = await temporaryFolder();
  const server = await startTestServer({ home });
  const bearer = { authorization: 'Bearer the-token-of-this-server' };
  const created = await server.call('POST', '/api/sessions', { workspace }, bearer);
  const address = `/api/sessions/${created.json.session.session_id}`;
  await server.call('POST', `${address}/prompts`, { text: '/run curl -H "x: the-token-of-this-server" x' }, bearer);
  const [request] = await isAsked(
    async () => (await server.call('GET', `${address}/requests`, undefined, bearer)).json.requests,
  );
  expect(request!.params).toMatchObject({ command: 'curl -H "x: [hidden]" x', choices: ['once', 'session', 'deny'] });
  await server.call('POST', `${address}/requests/${request!.id}`, { choice: 'deny' }, bearer);
});

it('[AP7] a question survives its clients: whoever comes back finds it and answers it', async () => {
  const { server, sessionId, open, answer, isThere } = await working();
  const stream = await server.stream(`/api/sessions/${sessionId}/events`);
  await server.prompt(sessionId, '/write a.txt hello');
  const [request] = await isAsked(open);
  stream.drop();
  const back = await server.stream(`/api/sessions/${sessionId}/events`);
  const snapshot = await back.next((event) => event.type === 'session.snapshot');
  expect(snapshot.json.payload).toMatchObject({
    run: { status: 'waiting', tools: [{ name: 'write_file' }] },
    open_requests: [{ id: request!.id, kind: 'approval' }],
  });
  await answer(request!.id, { choice: 'once' });
  await back.next((event) => event.type === 'message.complete');
  expect(await isThere('a.txt')).toBe(true);
});

it('[AP7] an interrupt withdraws the question and ends the turn; nothing was done', async () => {
  const { server, sessionId, open, answer, isThere } = await working();
  const stream = await server.stream(`/api/sessions/${sessionId}/events`);
  await server.prompt(sessionId, '/write a.txt hello');
  const [request] = await isAsked(open);
  await server.call('POST', `/api/sessions/${sessionId}/interrupt`);
  const cancel = await stream.next((event) => event.type === 'request.cancel');
  expect(cancel.json.payload).toEqual({ id: request!.id, method: 'approval', reason: 'interrupted' });
  const end = await stream.next((event) => event.type === 'message.complete');
  expect(end.json.payload.outcome).toBe('interrupted');
  expect(await open()).toEqual([]);
  expect(await answer(request!.id, { choice: 'once' })).toEqual({ status: 'expired' });
  expect(await isThere('a.txt')).toBe(false);
});

/** A turn of a model that wants two files written at once, and two gateway clients that can answer. */
async function twoAtOnce() {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model}\n`;
  const made = await working(config);
  const write = (name: string) => ({ name: 'write_file', args: { path: name, content: `${name}\n` } });
  provider.next({ tool_calls: [write('first.txt'), write('second.txt')] });
  const clients: GatewayClient[] = [];
  for (const name of ['one', 'two']) {
    const client = await connectGateway(made.server.url, { name, capable: true });
    const { session_id } = await client.call('session.resume', { session_id: made.sessionId });
    expect(session_id).toMatch(/^[0-9a-f]{8}$/);
    clients.push(client);
  }
  const asked = made.server.ask(made.sessionId, 'write two files');
  const requests = await isAsked(made.open, 2);
  const idOf = (name: string): string => requests.find(({ params }) => params.command.startsWith(name))!.id;
  return { ...made, provider, clients, asked, first: idOf('first.txt'), second: idOf('second.txt') };
}

it.each([
  ['in the order of asking', false],
  ['the other way round', true],
])('[AP7] two questions at once, answered by two clients %s, each get their own answer', async (_order, reversed) => {
  const { server, sessionId, provider, clients, asked, first, second, isThere } = await twoAtOnce();
  const [one, two] = clients as [GatewayClient, GatewayClient];
  const steps = [
    () => one.call('request.answer', { id: first, result: { choice: 'once' } }),
    () => two.call('request.answer', { id: second, result: { choice: 'deny' } }),
  ];
  for (const step of reversed ? steps.reverse() : steps) expect(await step()).toEqual({ status: 'ok' });
  // The same again, by the other one: too late for both.
  expect(await two.call('request.answer', { id: first, result: { choice: 'deny' } })).toEqual({ status: 'expired' });
  expect(await one.call('request.answer', { id: second, result: { choice: 'once' } })).toEqual({ status: 'expired' });
  expect((await asked).admission.outcome).toBe('completed');
  expect([await isThere('first.txt'), await isThere('second.txt')]).toEqual([true, false]);
  const results = await toolResults(server, sessionId);
  expect(results.filter((result) => result.includes('did not allow'))).toHaveLength(1);
  for (const client of clients) {
    const cancels = client.frames.filter((frame) => frame.params?.type === 'request.cancel');
    expect(cancels.map((frame) => frame.params.payload.id).sort()).toEqual([first, second].sort());
  }
  expect(provider.violations).toEqual([]);
});

it('[AP7] both clients answer the same question at the same moment: one answer counts', async () => {
  const { clients, asked, first, second, isThere } = await twoAtOnce();
  const [one, two] = clients as [GatewayClient, GatewayClient];
  const said = await Promise.all([
    one.call('request.answer', { id: first, result: { choice: 'once' } }),
    two.call('request.answer', { id: first, result: { choice: 'deny' } }),
    two.call('request.answer', { id: second, result: { choice: 'deny' } }),
    one.call('request.answer', { id: second, result: { choice: 'once' } }),
  ]);
  expect(said.map(({ status }) => status).sort()).toEqual(['expired', 'expired', 'ok', 'ok']);
  await asked;
  expect(await isThere('first.txt')).toBe(said[0].status === 'ok');
  expect(await isThere('second.txt')).toBe(said[3].status === 'ok');
});

it('[AP4] what is allowed for the session settles the other questions that it covers, and no more', async () => {
  const { clients, asked, first, second, isThere, answer } = await twoAtOnce();
  expect(await answer(second, { choice: 'session' })).toEqual({ status: 'ok' });
  expect((await asked).admission.outcome).toBe('completed');
  expect([await isThere('first.txt'), await isThere('second.txt')]).toEqual([true, true]);
  expect(await answer(first, { choice: 'deny' })).toEqual({ status: 'expired' });
  const cancels = clients[0]!.frames.filter((frame) => frame.params?.type === 'request.cancel');
  expect(cancels.map((frame) => frame.params.payload)).toEqual([
    { id: second, method: 'approval', reason: 'resolved' },
    { id: first, method: 'approval', reason: 'resolved' },
  ]);
});

it('[AP6] a question of the agent: answered in part before the time is up, both is told to the agent', async () => {
  const { server, sessionId, open } = await working('approvals: {timeout: 2}');
  const client = await connectGateway(server.url, { capable: true });
  await client.call('session.resume', { session_id: sessionId });
  const asked = server.ask(sessionId, '/ask');
  const [request] = await isAsked(open);
  const [first] = request!.params.questions;
  await client.call('clarify.lock', { request_id: request!.id, question_id: first!.qid, answer: 'green' });
  await asked;
  const [result] = await toolResults(server, sessionId);
  expect(result).toMatch(/colour.*\n→ green\n/);
  expect(result).toMatch(/\n→ \(no answer\)\nNobody answered in time/);
});

it('[AP6] null is an answer, and is said', async () => {
  const { server, sessionId, open, answer } = await working();
  const asked = server.ask(sessionId, '/ask Shall I go on? | yes | no');
  const [request] = await isAsked(open);
  expect(request).toMatchObject({ kind: 'clarify', params: { questions: [{ choices: ['yes', 'no'] }] } });
  expect(await answer(request!.id, { answers: { [request!.params.questions[0]!.qid]: null } })).toEqual({
    status: 'ok',
  });
  await asked;
  expect((await toolResults(server, sessionId))[0]).toContain('did not want to answer');
});
