/** How a turn ends when a provider fails: over real sockets, and the classification as a table. */
import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TurnError } from '../../server/core/terms.ts';
import { classifyProblem } from '../../server/runners/model/failure.ts';
import { readProblem } from '../../server/runners/model/problem.ts';
import { redactKey } from '../../server/runners/model/redact.ts';
import { createStallWatch } from '../../server/runners/model/stall-watch.ts';
import type { ProviderConfig } from '../../server/runners/provider.ts';
import { type FakeProvider, type Step, startFakeProvider } from '../support/fake-provider.ts';
import { chunksOf, drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  await provider.close();
});

/** Runs a turn against the steps; gives its error and what was shown before. */
async function failWith(steps: Step[], config: Partial<ProviderConfig> = {}, parts = {}) {
  provider.next(...steps);
  const { events, end } = await drive(modelRunnerOn(providerAt(provider.baseUrl, config), parts), turnOf('hi'));
  if (end.kind !== 'failed') throw new Error(`the turn ended as ${end.kind}`);
  return { error: end.error, shown: chunksOf(events, 'message.delta').join(''), events };
}

const errorBody = (fields: object) => ({ error: { message: 'It went wrong.', ...fields } });

type Case = [title: string, steps: Step[], code: TurnError['code'], retryable: boolean, shown?: string];

const CASES: Case[] = [
  [
    'noise in place of a stream',
    [{ raw: Buffer.from([0, 255, 13, 10, 200, 7, 10, 10]) }, { end: 'without-finish' }],
    'provider_error',
    false,
  ],
  ['a web page with status 200', [{ html: '<html><body>It works!</body></html>' }], 'provider_error', false],
  [
    'an error document with status 200',
    [{ status: 200, body: errorBody({ code: 'insufficient_quota' }) }],
    'quota',
    false,
  ],
  ['a stream with nothing in it', [{ end: 'without-finish' }], 'provider_error', false],
  ['a refused key', [{ status: 401, body: errorBody({ code: 'invalid_api_key' }) }], 'auth', false],
  ['a forbidden model', [{ status: 403, body: errorBody({ type: 'permission_error' }) }], 'auth', false],
  [
    'a model that there is not',
    [{ status: 404, body: errorBody({ code: 'model_not_found' }) }],
    'model_not_found',
    false,
  ],
  [
    'a model that there is not, in words',
    [{ status: 404, body: errorBody({ message: 'model "x" not found, try pulling it first' }) }],
    'model_not_found',
    false,
  ],
  ['a wrong path', [{ status: 404, body: '<html>Not Found</html>' }], 'provider_error', false],
  [
    'a rate limit',
    [{ status: 429, body: errorBody({ type: 'requests', code: 'rate_limit_exceeded' }) }],
    'rate_limited',
    true,
  ],
  ['an empty account', [{ status: 429, body: errorBody({ type: 'insufficient_quota' }) }], 'quota', false],
  ['payment required', [{ status: 402, body: errorBody({}) }], 'quota', false],
  [
    'a conversation that is too long',
    [{ status: 400, body: errorBody({ code: 'context_length_exceeded' }) }],
    'context_too_long',
    false,
  ],
  [
    'too long, as llama.cpp says it',
    [{ status: 400, body: errorBody({ code: 400, type: 'exceed_context_size_error' }) }],
    'context_too_long',
    false,
  ],
  [
    'too long, in words',
    [{ status: 400, body: { object: 'error', message: "This model's maximum context length is 4096 tokens" } }],
    'context_too_long',
    false,
  ],
  [
    'a body that is too large',
    [{ status: 413, body: errorBody({ code: 'rate_limit_exceeded' }) }],
    'context_too_long',
    false,
  ],
  ['a filtered prompt', [{ status: 400, body: errorBody({ code: 'content_filter' }) }], 'content_filter', false],
  ['a filtered answer', [{ text: 'I would' }, { finish: 'content_filter' }], 'content_filter', false, 'I would'],
  ['a bad request', [{ status: 400, body: errorBody({ type: 'invalid_request_error' }) }], 'provider_error', false],
  ['a failure inside', [{ status: 500, body: errorBody({ type: 'server_error' }) }], 'provider_error', true],
  ['a failure without a body', [{ status: 502, body: '' }], 'provider_error', true],
  [
    'a model that is loading',
    [{ status: 503, body: errorBody({ code: 503, type: 'unavailable_error' }) }],
    'provider_error',
    true,
  ],
  [
    'an error in the stream',
    [{ text: 'so far' }, { error: { message: 'Overloaded', type: 'overloaded_error' } }],
    'provider_error',
    true,
    'so far',
  ],
  ['a rate limit in the stream', [{ error: { message: 'slow down', code: 429 } }], 'rate_limited', true],
  [
    'an error in the stream that is only a text',
    [{ text: 'so far' }, { frame: { error: 'it broke' } }],
    'provider_error',
    true,
    'so far',
  ],
  [
    'an error beside choices',
    [
      {
        frame: {
          error: { code: 502, message: 'upstream' },
          choices: [{ delta: { content: '' }, finish_reason: 'error' }],
        },
      },
    ],
    'provider_error',
    true,
  ],
  [
    'a broken frame, though more follows',
    [{ text: 'so far' }, { broken_frame: true }, { text: ' and on' }],
    'provider_error',
    true,
    'so far',
  ],
  ['a frame that is no chunk', [{ text: 'so far' }, { frame: { choices: 'none' } }], 'provider_error', true, 'so far'],
  ['a socket cut in the middle of a chunk', [{ text: 'so far' }, { cut: 'mid-chunk' }], 'network', true, 'so far'],
  ['a socket cut before the headers', [{ cut: 'before-headers' }], 'network', true],
  ['a stream that just stops', [{ text: 'so far' }, { end: 'without-finish' }], 'network', true, 'so far'],
  ['a reply without anything', [], 'empty_reply', true],
  ['a reply of blanks', [{ text: ' \n' }], 'empty_reply', true, ' \n'],
  ['a reply of an empty list of calls', [{ empty_tool_calls: true }, { finish: 'tool_calls' }], 'empty_reply', true],
  ['only reasoning, to the limit', [{ reasoning: 'hm' }, { finish: 'length' }], 'empty_reply', true],
];

describe("[RU8] a provider's failure ends the turn as an error with a code", () => {
  it.each(CASES)('[RU8] %s', async (_title, steps, code, retryable, shown = '') => {
    const failed = await failWith(steps);
    expect(failed.error).toMatchObject({ code, retryable });
    expect(failed.shown).toBe(shown);
    expect(failed.error.message).toMatch(/^[^\n]{20,500}$/);
    expect(provider.requests).toHaveLength(1);
  });

  it('[RU8] silence before and within an answer is given up as stalled, and the request with it', async () => {
    const before = await failWith([{ hang: true }], {}, { stallTimeoutS: 0.1 });
    expect(before.error).toMatchObject({ code: 'stalled', retryable: true });
    // Long enough for what comes before the silence, also on a busy machine.
    const within = await failWith([{ text: 'so far' }, { hang: true }], {}, { stallTimeoutS: 1 });
    expect(within.error.code).toBe('stalled');
    expect(within.shown).toBe('so far');
    expect(await Promise.all(provider.requests.map((request) => request.ended))).toEqual([true, true]);
  });

  it('[RU8] a reader that takes its time is not a provider that stalls', async () => {
    provider.next({ text: ['a', 'b'] });
    const stallTimeoutS = 0.2;
    const runner = modelRunnerOn(providerAt(provider.baseUrl), { stallTimeoutS });
    let taken = 0;
    const { end } = await drive(runner, turnOf('hi'), undefined, async () => {
      // As long as a watch of the same patience takes that begins to wait only now: the runner's own would be over.
      await new Promise<void>((resolve) => {
        const watch = createStallWatch(new AbortController().signal, stallTimeoutS);
        watch.onStop(resolve);
        watch.waiting();
      });
      taken += 1;
    });
    expect(end.kind).toBe('completed');
    expect(taken).toBeGreaterThan(2);
  });

  it('[RU8] however a turn ends, it leaves no listener on its signal and no timer', async () => {
    const { signal } = new AbortController();
    const runner = modelRunnerOn(providerAt(provider.baseUrl), { stallTimeoutS: 0.1 });
    for (const step of [{ text: 'ok' }, { broken_frame: true }, { status: 500 }, { hang: true }] satisfies Step[]) {
      provider.next(step);
      await drive(runner, turnOf('hi'), signal);
    }
    provider.next({ tool_calls: [{ name: 'list_files' }] });
    await drive(runner, turnOf('hi'), signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);

    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const watch = createStallWatch(signal, 1000);
    expect(timers()).toBe(before + 1);
    watch.release();
    expect(timers()).toBe(before);
    expect(watch.signal.aborted).toBe(true);
  });

  it('[RU8] nothing listens: network, with where and why', async () => {
    const { baseUrl } = provider;
    await provider.close();
    const { end } = await drive(modelRunnerOn(providerAt(baseUrl)), turnOf('hi'));
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'network', retryable: true } });
    expect(end.kind === 'failed' && end.error.message).toContain(`${new URL(baseUrl).host} (ECONNREFUSED)`);
    provider = await startFakeProvider();
  });

  it('[RU8] the delay that a provider asks for is kept, in seconds, milliseconds or as a date', async () => {
    const limited = (headers: Record<string, string>): Step[] => [{ status: 429, body: errorBody({}), headers }];
    expect((await failWith(limited({ 'retry-after': '7' }))).error.retry_after).toBe(7);
    expect((await failWith(limited({ 'retry-after-ms': '1500' }))).error.retry_after).toBe(1.5);
    const date = 'Thu, 01 Jan 2026 00:00:30 GMT';
    const now = () => Date.UTC(2026, 0, 1) / 1000;
    expect((await failWith(limited({ 'retry-after': date }), {}, { now })).error.retry_after).toBe(30);
    expect((await failWith(limited({ 'retry-after': 'soon' }))).error).not.toHaveProperty('retry_after');
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '13s' }];
    const google = [errorBody({ code: 429, status: 'RESOURCE_EXHAUSTED', details })];
    expect((await failWith([{ status: 429, body: google }])).error).toMatchObject({
      code: 'rate_limited',
      retry_after: 13,
    });
  });

  it('[RU8] an unknown provider and an id without one are model_not_found, and nothing is asked', async () => {
    const runner = modelRunnerOn(providerAt(provider.baseUrl));
    for (const model of ['elsewhere/x', 'fake-model', '', 'custom/']) {
      const { end } = await drive(runner, turnOf('hi', { model }));
      expect(end).toMatchObject({ kind: 'failed', error: { code: 'model_not_found', retryable: false } });
    }
    expect(provider.requests).toEqual([]);
  });

  it('[RU8] a broken tool call of one step does not end the turn, and tools of a failed step are not run', async () => {
    const { events, error } = await failWith([{ tool_calls: [{ name: 'list_files' }] }, { broken_frame: true }]);
    expect(error.code).toBe('provider_error');
    expect(events.filter((event) => event.type === 'tool.start')).toEqual([]);
  });

  it('[RU8] no message holds the API key, whole or masked, however it is echoed', async () => {
    const apiKey = 'tk-very/secret+key=1';
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(401, { 'content-type': 'application/json' });
      const message = `key ${apiKey} ${encodeURIComponent(apiKey)} sk-ab****yz ${request.headers.authorization} is wrong`;
      response.end(JSON.stringify({ error: { message } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const { end } = await drive(modelRunnerOn(providerAt(baseUrl, { apiKey })), turnOf('hi'));
    server.closeAllConnections();
    server.close();
    const text = JSON.stringify(end);
    expect(text).toContain('"code":"auth"');
    expect(text).toContain('is wrong');
    for (const secret of [apiKey, encodeURIComponent(apiKey), 'very', 'sk-ab']) expect(text).not.toContain(secret);
  });

  it('[RU8] a short key is taken out as a word, not out of other words', () => {
    expect(redactKey('key none refused: nonesuch', 'none')).toBe('key [key] refused: nonesuch');
  });

  it('[RU8] credentials in the address are not shown', async () => {
    const { end } = await drive(modelRunnerOn(providerAt('http://me:hunter22@127.0.0.1:9/v1')), turnOf('hi'));
    expect(end.kind).toBe('failed');
    expect(JSON.stringify(end)).not.toContain('hunter22');
  });

  it('[RU8] time-outs of the connection itself are stalls', () => {
    const context = { provider: providerAt('http://x/v1'), model: 'm', stallTimeoutS: 600 };
    for (const code of ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']) {
      const failure = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code }) });
      expect(classifyProblem(readProblem(failure, null, false, 0), context).code).toBe('stalled');
    }
  });
});
