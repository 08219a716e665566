/** A provider that misbehaves, and a whole server before it: what is stored, what comes back, and what is sent next. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type FakeProvider, type FakeProviderOptions, type Step, startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const KEY = 'sk-test-0123456789abcdef';

async function fakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const provider = await startFakeProvider(options);
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  return provider;
}

const configOf = ({ baseUrl }: FakeProvider, more = ''): string =>
  `model: {provider: custom, base_url: "${baseUrl}", default: fake-model}\n${more}`;

const sessionOf = async (server: TestServer, id: string) =>
  (await server.call('GET', `/api/sessions/${id}`)).json.session;

const idle = (server: TestServer, id: string) =>
  until('the session is idle', async () => (await sessionOf(server, id)).status === 'idle');

type Case = [title: string, steps: Step[], code: string, retryable: boolean, text: string];
const CASES: Case[] = [
  ['a page with status 200', [{ html: '<html>It works!</html>' }], 'provider_error', false, ''],
  [
    'a broken frame in mid-stream',
    [{ text: 'so far' }, { broken_frame: true }, { text: '!' }],
    'provider_error',
    true,
    'so far',
  ],
  [
    'an error object in the stream',
    [{ text: 'so far' }, { error: { code: 429, message: 'slow' } }],
    'rate_limited',
    true,
    'so far',
  ],
  ['a cut socket', [{ text: ['so ', 'far'] }, { cut: 'mid-chunk' }], 'network', true, 'so far'],
  ['an empty list of calls', [{ empty_tool_calls: true }, { finish: 'tool_calls' }], 'empty_reply', true, ''],
  ['silence', [{ text: 'so far' }, { hang: true }], 'stalled', true, 'so far'],
  [
    'a full account',
    [{ status: 429, body: { error: { code: 'insufficient_quota', message: 'no' } } }],
    'quota',
    false,
    '',
  ],
  ['too long', [{ status: 400, body: { error: { code: 'context_length_exceeded' } } }], 'context_too_long', false, ''],
];

it.each(CASES)(
  '[RU8] %s: the error is stored, there after a restart, and the next prompt works',
  async (_title, steps, code, retryable, text) => {
    const provider = await fakeProvider();
    const home = await temporaryFolder();
    const config = configOf(provider, 'agent: {stall_timeout_s: 0.5}');
    const first = await startTestServer({ home, config });
    const id = await first.session();
    provider.next(...steps);
    const { message, admission } = await first.ask(id, 'first');
    expect(message).toMatchObject({ status: 'error', error: { code, retryable } });
    expect(admission).toMatchObject({ outcome: 'failed', error: { code } });
    expect((await sessionOf(first, id)).status).toBe('idle');
    const before = await first.messages(id);
    await first.close();

    const second = await startTestServer({ home });
    expect(await second.messages(id)).toEqual(before);
    expect(before.at(-1)).toMatchObject({ content: text, status: 'error', error: { code, retryable } });
    const next = await second.ask(id, 'and now?');
    expect(next.message).toMatchObject({ status: 'complete', content: 'You said: and now?' });
  },
);

it('[RU8] broken arguments, half a surrogate pair, characters in pieces and a burst are no failures', async () => {
  const provider = await fakeProvider();
  const server = await startTestServer({ config: configOf(provider) });
  const id = await server.session();
  provider.next({ tool_calls: [{ name: 'read_file', args: '{"path": "x' }] });
  provider.next({ lone_surrogate: true }, { byte_by_byte: true }, { text: ' Grüße 👋 ' }, { split_utf8: 'é👋' });
  const { message } = await server.ask(id, 'go');
  expect(message).toMatchObject({ status: 'complete', content: 'half \ufffd gone Grüße 👋 é👋' });
  const tool = (await server.messages(id)).find(({ role }) => role === 'tool');
  expect(tool).toMatchObject({ is_error: true, content: expect.stringContaining('not a JSON object') });
  provider.next({ burst: 2000 });
  const burst = await server.ask(id, 'all at once');
  expect(burst.message.content).toBe(Array.from({ length: 2000 }, (_, n) => `[${n}]`).join(''));
  expect((await server.ask(id, 'more')).message.content).toBe('You said: more');
});

it('[RU8] a field "error" that says null is no failure, wherever the packets cut it', async () => {
  const provider = await fakeProvider();
  const server = await startTestServer({ config: configOf(provider) });
  const id = await server.session();
  const chunk = (content: string) =>
    `data: ${JSON.stringify({ id: 'x', error: null, choices: [{ index: 0, delta: { content } }] }).replace('null', ' null')}\n\n`;
  for (const way of [[], [{ byte_by_byte: true }]] satisfies Step[][]) {
    const said = 'say "error": null and {"error":null} "';
    provider.next(...way, { raw: chunk('Hel') }, { raw: chunk('lo ') }, { text: said });
    expect((await server.ask(id, 'hi')).message).toMatchObject({ status: 'complete', content: `Hello ${said}` });
  }
});

it('[RU8] a chunk that comes after the stop is not part of the answer', async () => {
  const provider = await fakeProvider();
  const server = await startTestServer({ config: configOf(provider) });
  const id = await server.session();
  const hold = provider.hold();
  provider.next({ text: 'first' }, { hold }, { text: ' late' });
  const stream = await server.stream(`/api/sessions/${id}/events`);
  await server.prompt(id, 'go');
  await stream.next((event) => event.type === 'message.delta');
  await server.call('POST', `/api/sessions/${id}/interrupt`, {});
  await stream.next((event) => event.type === 'message.complete');
  hold.release();
  expect((await server.ask(id, 'on')).message.content).toBe('You said: on');
  const [, stopped] = await server.messages(id);
  expect(stopped).toMatchObject({ content: 'first', status: 'interrupted' });
});

it('[RU11] a provider that asks to wait is waited for, which is shown and can be stopped', async () => {
  const provider = await fakeProvider();
  const server = await startTestServer({ config: configOf(provider) });
  const id = await server.session();
  const limit = (seconds: string): Step => ({
    status: 429,
    headers: { 'retry-after': seconds },
    body: { error: { code: 'rate_limit_exceeded', message: 'slow down' } },
  });
  provider.next(limit('0'));
  expect((await server.ask(id, 'soon')).message.content).toBe('You said: soon');

  provider.next(limit('60'));
  const stream = await server.stream(`/api/sessions/${id}/events`);
  await server.prompt(id, 'later');
  const status = await stream.next((event) => event.type === 'status');
  expect(status.json.payload).toMatchObject({ kind: 'rate_limited', text: expect.stringContaining('60 s') });
  await server.call('POST', `/api/sessions/${id}/interrupt`, {});
  await stream.next((event) => event.type === 'message.complete');
  await idle(server, id);

  provider.next(limit('600'));
  const { message } = await server.ask(id, 'much later');
  expect(message.error).toMatchObject({ code: 'rate_limited', retryable: true, retry_after: 600 });
  expect((await server.ask(id, 'again')).message.content).toBe('You said: again');
});

it('[RU11] api_max_retries: 0 asks once', async () => {
  const provider = await fakeProvider();
  const server = await startTestServer({ config: configOf(provider, 'agent: {api_max_retries: 0}') });
  const { message } = await server.ask(await server.session(), 'script:status=503');
  expect(message.error).toMatchObject({ code: 'provider_error', retryable: true });
  expect(provider.requests).toHaveLength(1);
});

it.each(['custom', 'anthropic'])(
  '[RU7] a strict provider takes the next prompt after a stop at any event of a tool turn: %s',
  {
    timeout: 120_000,
  },
  async (kind) => {
    const provider = await fakeProvider();
    const config = configOf(provider).replace('{provider: custom', `{api_key_env: KEY, provider: ${kind}`);
    const server = await startTestServer({ config, env: { KEY } });
    const workspace = path.join(server.home, 'workspace');
    await mkdir(workspace);
    await writeFile(path.join(workspace, 'a.txt'), 'content');
    const prompt = 'script:reasoning=1,chunks=2,delay=10,tool=list_files script:chunks=2,delay=10,id=b';
    for (let at = 1; ; at += 1) {
      const id = await server.session({ workspace });
      const stream = await server.stream(`/api/sessions/${id}/events`);
      await server.prompt(id, prompt);
      const event = await stream.next(({ json, type }) => json.seq === at || type === 'message.complete');
      await server.call('POST', `/api/sessions/${id}/interrupt`, {});
      await stream.next(({ type }) => type === 'message.complete');
      const { message } = await server.ask(id, 'and now?');
      expect(message).toMatchObject({ status: 'complete', content: 'You said: and now?' });
      stream.drop();
      if (event.type === 'message.complete') {
        expect(at).toBeGreaterThan(8);
        return;
      }
    }
  },
);

it('[RU10] providers of every kind side by side: all are listed, and a session changes between turns', async () => {
  const local = await fakeProvider({ models: ['fake-model', 'other'] });
  const claude = await fakeProvider({ apiKey: KEY, models: ['claude-sonnet-4-5'] });
  const cloud = await fakeProvider({ apiKey: `${KEY}-2`, models: ['gpt-x', 'text-embedding-y'] });
  const config = configOf(
    local,
    `providers:
  claude: {kind: anthropic, base_url: "${claude.baseUrl}", api_key_env: CLAUDE_KEY, models: [claude-preview]}
  cloud: {kind: openai, base_url: "${cloud.baseUrl}/", default: gpt-x, context_length: 1000}
`,
  );
  const server = await startTestServer({ config, env: { CLAUDE_KEY: KEY, OPENAI_API_KEY: `${KEY}-2` } });
  const models = await until('all are listed', async () => {
    const { json } = await server.call('GET', '/api/models');
    return json.providers.every(({ status }: { status: string }) => status === 'ok') && json;
  });
  expect(models.models.map(({ id }: { id: string }) => id)).toEqual([
    'builtin',
    'custom/fake-model',
    'custom/other',
    'claude/claude-preview',
    'claude/claude-sonnet-4-5',
    'cloud/gpt-x',
  ]);
  expect(models.default).toBe('custom/fake-model');

  const id = await server.session();
  const tool = 'script:tool=list_files';
  for (const model of [null, 'claude/claude-sonnet-4-5', 'cloud/gpt-x', 'claude/claude-preview', 'custom/other']) {
    if (model) await server.call('PATCH', `/api/sessions/${id}`, { model });
    const { message } = await server.ask(id, tool);
    expect(message).toMatchObject({ status: 'complete', model: model ?? 'custom/fake-model' });
  }
  expect([local, claude, cloud].map(({ requests }) => requests.length)).toEqual([4, 4, 2]);
  expect(claude.requests[0]?.headers['x-api-key']).toBe(KEY);
  expect(cloud.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}-2`);
  expect((await server.call('PATCH', `/api/sessions/${id}`, { model: 'claude/none' })).status).toBe(422);
  const everything = JSON.stringify([server.logs, await server.messages(id), models]);
  expect(everything).not.toContain(KEY);
});

it('[SE5] a key that a provider repeats, in an error or in an answer, is in no event, message, title or log', async () => {
  const provider = await fakeProvider({ apiKey: KEY });
  const config = `model: {provider: openai, base_url: "${provider.baseUrl}", default: fake-model}`;
  const server = await startTestServer({ config, env: { OPENAI_API_KEY: KEY } });
  const id = await server.session();
  const stream = await server.stream(`/api/sessions/${id}/events`);
  provider.next({ status: 401, body: { error: { message: `Bad key ${KEY}`, code: 'invalid_api_key' } } });
  await server.ask(id, 'one');
  provider.next({ reasoning: `It is ${KEY}.` }, { text: `Your key is ${KEY}, is it?` });
  provider.nextTitle({ text: `About ${KEY}` });
  expect((await server.ask(id, 'two')).message.content).toBe('Your key is [key], is it?');
  provider.next({ text: ['It is ', KEY.slice(0, 9), KEY.slice(9), ' and sk-t'] }, { text: ' too' });
  expect((await server.ask(id, 'three')).message.content).toBe('It is [key] and sk-t too');
  provider.next({ tool_calls: [{ name: 'read_file', args: { path: KEY } }] });
  await server.ask(id, 'four');
  const everything = JSON.stringify([
    stream.text(),
    server.logs,
    await server.messages(id),
    await sessionOf(server, id),
  ]);
  expect(everything).not.toContain(KEY);
  expect(everything).not.toContain(KEY.slice(9));
});

it('[RU12] the counts of every step, their cost and the fill of the window are in events, messages and session', async () => {
  const provider = await fakeProvider();
  const config = `model:
  {provider: custom, base_url: "${provider.baseUrl}", default: fake-model, context_length: 32000, price: {input: 2, output: 10, cached: 0.5}}`;
  const server = await startTestServer({ config });
  const id = await server.session();
  const stream = await server.stream(`/api/sessions/${id}/events`);
  const counts = (input: number, output: number, cached: number, reasoning: number): Step => ({
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    },
  });
  provider.next({ tool_calls: [{ name: 'list_files' }] }, counts(1000, 20, 0, 5));
  provider.next({ text: 'Done.' }, counts(1100, 30, 1000, 0));
  await server.ask(id, 'go');
  const first = { input_tokens: 1000, output_tokens: 20, reasoning_tokens: 5, cost_usd: 0.0022, context_used: 1020 };
  const second = { input_tokens: 1100, output_tokens: 30, cached_tokens: 1000, cost_usd: 0.001, context_used: 1130 };
  const events = stream.events.filter(({ type }) => type === 'usage').map(({ json }) => json.payload);
  expect(events).toMatchObject([first, second]);
  expect(events[1].context_length).toBe(32_000);
  const rows = (await server.messages(id)).filter(({ role }) => role === 'assistant');
  expect(rows.map(({ usage }) => usage)).toMatchObject([first, second]);
  const complete = await stream.next(({ type }) => type === 'message.complete');
  const total = { input_tokens: 2100, output_tokens: 50, context_used: 1130, context_length: 32_000 };
  expect(complete.json.payload.usage).toMatchObject({ ...total, cached_tokens: 1000, reasoning_tokens: 5 });
  expect(complete.json.payload.usage.cost_usd).toBeCloseTo(0.0032, 9);
  const { usage } = await sessionOf(server, id);
  expect(usage).toMatchObject({ ...total, cached_tokens: 1000, reasoning_tokens: 5 });
  expect(usage.cost_usd).toBeCloseTo(0.0032, 9);
});
