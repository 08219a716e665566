/** MCP tools in turns of a model: asked for, allowed, called, stopped, missing. A whole server, real processes, the strict provider. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { logFile, sentTo, stdioServer, variable } from '../support/mcp.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

interface Scene {
  provider: FakeProvider;
  server: TestServer;
  sessionId: string;
  /** A turn in which the model calls this tool, and then says what it gave. */
  ask(tool: string, args?: object): Promise<{ content: string }>;
  results(): Promise<string[]>;
  question(): Promise<{ id: string; params: { command: string; description: string; choices: string[] } }>;
  answer(id: string, choice: string): Promise<unknown>;
}

async function sceneWith(mcp_servers: object, more: object = {}, env: Record<string, string> = {}): Promise<Scene> {
  const provider = await startFakeProvider();
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  const model = { provider: 'custom', base_url: provider.baseUrl, default: 'fake-model' };
  const config = stringify({ model, mcp_servers, ...more });
  const server = await startTestServer({ config, env: { PATH: process.env.PATH ?? '', ...env } });
  const sessionId = await server.session();
  return {
    provider,
    server,
    sessionId,
    async ask(tool, args = {}) {
      provider.script(
        ({ messages = [] }) => messages.at(-1)?.role === 'user',
        [{ tool_calls: [{ name: tool, args }] }],
      );
      return (await server.ask(sessionId, 'go')).message;
    },
    results: async () =>
      (await server.messages(sessionId)).filter((row) => row.role === 'tool').map((row) => row.content),
    question: () =>
      until(
        'it is asked',
        async () => (await server.call('GET', `/api/sessions/${sessionId}/requests`)).json.requests[0],
      ),
    answer: (id, choice) => server.call('POST', `/api/sessions/${sessionId}/requests/${id}`, { choice }),
  };
}

const AUTO = { approvals: { mode: 'auto' } };

it('[MC1] a turn uses a tool among 200 of a server that lies about others, and the pickiest provider takes them all', async () => {
  const { provider, ask, results, server } = await sceneWith({ own: stdioServer('--tools', '200', '--lies') }, AUTO);
  await ask('own__tool_200');
  await ask('own__loop');
  expect(await results()).toEqual(['tool_200 ran', 'loop ran']);
  const names = provider.requests[0]!.body.tools!.map((tool) => tool.function.name);
  expect(names.filter((name) => name.startsWith('own__'))).toHaveLength(223);
  expect(new Set(names).size).toBe(names.length);
  const { json } = await server.call('GET', '/api/mcp');
  expect(json.servers).toMatchObject([{ name: 'own', kind: 'stdio', status: 'ready' }]);
  expect(json.servers[0].tools).toHaveLength(223);
  expect(json.servers[0].left_out).toHaveLength(10);
});

it('[MC5][AP1] a call waits for a yes and shows what would be asked of the server; `always` allows that tool and no other', async () => {
  const log = await logFile();
  const { server, sessionId, ask, results, question, answer } = await sceneWith({ own: stdioServer('--log', log) });
  const calls = async () => (await sentTo(log)).filter(({ method }) => method === 'tools/call').length;

  const denied = ask('own__echo', { text: 'first\nsecond', more: { deep: 1 } });
  const asked = await question();
  expect(asked.params).toMatchObject({
    command: 'own__echo\ntext:\n  first\n  second\nmore: {"deep":1}',
    choices: ['once', 'session', 'always', 'deny'],
  });
  expect(await calls()).toBe(0);
  await answer(asked.id, 'deny');
  await denied;
  expect(await results()).toEqual(['The person did not allow this.']);
  expect(await calls()).toBe(0);

  const allowed = ask('own__echo', { text: 'x' });
  await answer((await question()).id, 'always');
  await allowed;
  await ask('own__echo', { text: 'unasked' });
  expect((await results()).slice(1)).toEqual(['echo: x', 'echo: unasked']);
  expect(await readFile(path.join(server.home, 'config.yaml'), 'utf8')).toContain('- own__echo');

  const other = ask('own__fail');
  await answer((await question()).id, 'deny');
  await other;
  expect((await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status).toBe('idle');
});

it('[MC5] arguments that are longer than a person can be asked about are refused unasked', async () => {
  const { ask, results } = await sceneWith({ own: stdioServer() });
  await ask('own__echo', { text: 'x'.repeat(20_000) });
  expect(await results()).toEqual([expect.stringContaining('more than a person can be asked about')]);
});

it('[MC4] an interrupt stops a call and tells the server, also one that ignores it; the next turn works', async () => {
  const log = await logFile();
  const scene = await sceneWith({ own: stdioServer('--log', log) }, AUTO);
  const { server, sessionId, ask, results, provider } = scene;
  for (const tool of ['own__wait', 'own__sleep']) {
    provider.next({ tool_calls: [{ name: tool }] });
    const { admission } = await server.prompt(sessionId, 'go');
    await until('it is called', async () => (await sentTo(log)).some(({ params }) => params?.name === tool.slice(5)));
    await server.call('POST', `/api/sessions/${sessionId}/interrupt`, {});
    await until('the turn has ended', async () => {
      const { json } = await server.call('GET', `/api/sessions/${sessionId}/prompts`);
      const found = json.admissions.find(
        (one: { admission_id: string }) => one.admission_id === admission.admission_id,
      );
      return found.outcome === 'interrupted';
    });
  }
  await until('both were told', async () => {
    return (await sentTo(log)).filter(({ method }) => method === 'notifications/cancelled').length === 2;
  });
  await ask('own__echo', { text: 'again' });
  expect((await results()).at(-1)).toBe('echo: again');
});

it('[MC4] progress is shown in the stream, before the result', async () => {
  const { server, sessionId, provider } = await sceneWith({ own: stdioServer() }, AUTO);
  provider.next({ tool_calls: [{ name: 'own__steps', args: { count: 2 } }] });
  const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body: { text: 'go' } });
  const shown = await reader.next(({ type }) => type === 'tool.output');
  expect(shown.json.payload.text).toContain('1/2 step 1');
  const complete = await reader.next(({ type }) => type === 'tool.complete');
  expect(complete.json.payload).toMatchObject({ name: 'own__steps', result: 'all steps are done', is_error: false });
  await reader.next(({ type }) => type === 'message.complete');
});

it('[MC2] a server that is down costs its tools, not the turn, and the reader is told', async () => {
  const { server, sessionId, ask, results } = await sceneWith(
    { own: stdioServer(), gone: { command: 'no-such-command-anywhere' } },
    AUTO,
  );
  const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body: { text: 'hello' } });
  const told = await reader.next(({ type }) => type === 'status');
  expect(told.json.payload).toEqual({
    kind: 'mcp',
    text: 'The tools of the MCP server "gone" are missing: its command, or the folder to start it in, was not found.',
  });
  expect((await reader.next(({ type }) => type === 'message.complete')).json.payload.outcome).toBe('completed');
  await ask('own__die');
  await ask('gone__anything');
  expect(await results()).toEqual([
    expect.stringContaining('broke off during the call'),
    expect.stringContaining('There is no tool named "gone__anything"'),
  ]);
});

it('[MC5] a key of a server is in no event, row, question or log', async () => {
  const key = 'very-secret-key-0815';
  const env = { API_KEY: variable('MCP_KEY') };
  const { server, sessionId, ask, question, answer, provider } = await sceneWith(
    { own: { ...stdioServer(), env } },
    {},
    { MCP_KEY: key },
  );
  const turn = ask('own__echo', { text: `is it ${key}?` });
  const asked = await question();
  expect(asked.params.command).toBe('own__echo\ntext: is it [hidden]?');
  await answer(asked.id, 'deny');
  await turn;
  const other = ask('own__key');
  await answer((await question()).id, 'once');
  await other;
  expect(JSON.stringify(provider.requests.at(-1)!.body.messages.at(-1))).toContain('my key is [hidden]');
  const last = (await server.messages(sessionId)).slice(-3);
  expect(JSON.stringify([last, server.logs, (await server.call('GET', '/api/mcp')).json])).not.toContain(key);
});

it('[MC2] a server that never answers does not delay the start, and a turn no longer than it may take to connect', async () => {
  const { server, sessionId } = await sceneWith({ silent: { ...stdioServer('--slow', 'never'), connect_timeout: 2 } });
  expect((await server.call('GET', '/api/mcp')).json.servers).toMatchObject([{ status: 'connecting', tools: [] }]);
  const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body: { text: 'hello' } });
  const complete = await reader.next(({ type }) => type === 'message.complete');
  expect(complete.json.payload.outcome).toBe('completed');
  const told = reader.events.flatMap(({ type, json }) => (type === 'status' ? [json.payload.text] : []));
  expect(told.at(-1)).toBe('The tools of the MCP server "silent" are missing: it did not answer within 2 s.');
});

it('[MC1][RU2] without a model the built-in agent calls any tool by its name, and asks in the same way', async () => {
  const config = stringify({ mcp_servers: { own: stdioServer() } });
  const server = await startTestServer({ config, env: { PATH: process.env.PATH ?? '' } });
  const sessionId = await server.session();
  await server.prompt(sessionId, '/tool own__echo {"text": "hello"}');
  const asked = await until('it is asked', async () => {
    return (await server.call('GET', `/api/sessions/${sessionId}/requests`)).json.requests[0];
  });
  await server.call('POST', `/api/sessions/${sessionId}/requests/${asked.id}`, { choice: 'once' });
  const { message } = await server.ask(sessionId, '/tool nothing');
  expect((await server.messages(sessionId)).map((row) => row.content)).toContain('echo: hello');
  expect(message.content).toContain('There is no tool `nothing`. These are there: `list_files`');
  expect((await server.ask(sessionId, '/tool own__echo [1]')).message.content).toContain('Say it like this');
});
