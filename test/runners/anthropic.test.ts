/** Anthropic's messages protocol, over real sockets against a strict fake. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TurnErrorCode } from '../../server/core/terms.ts';
import { createCatalog } from '../../server/runners/catalog.ts';
import { runnerContract } from '../contract/runner-contract.ts';
import { type FakeProvider, type Step, startFakeProvider } from '../support/fake-provider.ts';
import type { AnthropicBody } from '../support/fake-provider-anthropic.ts';
import { chunksOf, drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';
import { modelUnderTest } from './model-under-test.ts';

const KEY = 'sk-ant-0123456789abcdef';
const MODEL = 'claude-sonnet-4-5';

const anthropicAt = (baseUrl: string, change = {}) =>
  providerAt(baseUrl, { name: 'claude', kind: 'anthropic', apiKey: KEY, defaultModel: MODEL, ...change });
const turn = (input: string, change = {}) => turnOf(input, { model: `claude/${MODEL}`, ...change });

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider({ apiKey: KEY, models: [MODEL, 'claude-other'] });
});
afterEach(async () => {
  expect(provider.violations).toEqual([]);
  await provider.close();
});
const runner = (change = {}, parts = {}) => modelRunnerOn(anthropicAt(provider.baseUrl, change), parts);

runnerContract('anthropic', async () => {
  const fake = await startFakeProvider({ apiKey: KEY });
  return modelUnderTest(fake, anthropicAt(fake.baseUrl), `claude/${MODEL}`);
});

describe('[RU10] a provider that speaks the messages protocol', () => {
  it('[RU10] text and thinking come chunk by chunk, and an empty delta or a signature is no event', async () => {
    provider.next({ reasoning: ['let ', 'me see'] }, { text: ['Hel', 'lo', '', ' you'] });
    const { events, end } = await drive(runner(), turn('hi'));
    expect(end).toEqual({ kind: 'completed' });
    expect(chunksOf(events, 'reasoning.delta')).toEqual(['let ', 'me see']);
    expect(chunksOf(events, 'message.delta')).toEqual(['Hel', 'lo', ' you']);
    expect(provider.requests[0]?.headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' });
    const body = provider.requests[0]?.raw as AnthropicBody;
    expect(body.max_tokens).toBeGreaterThan(1000);
    expect(body.tools?.map(({ name }) => name)).toEqual(['read_file', 'list_files', 'search_files']);
  });

  it('[RU10] tools loop, and signed thoughts go back as they came', async () => {
    provider.next(
      { reasoning: 'I should look' },
      { text: 'Looking.' },
      { tool_calls: [{ name: 'list_files' }, { name: 'read_file', args: '{"path": "x' }] },
    );
    provider.next({ text: 'Done.' });
    const { events, end } = await drive(runner(), turn('go'));
    expect(end.kind).toBe('completed');
    const results = events.flatMap((event) => (event.type === 'tool.complete' ? [event.payload.is_error] : []));
    expect(results.sort()).toEqual([false, true]);
    const said = (provider.requests[1]!.raw as AnthropicBody).messages.find(({ role }) => role === 'assistant');
    expect(said?.content).toMatchObject([
      { type: 'thinking', thinking: 'I should look', signature: 'signed-0' },
      { type: 'text', text: 'Looking.' },
      { type: 'tool_use', name: 'list_files' },
      { type: 'tool_use', name: 'read_file', input: { invalid_arguments: '{"path": "x' } },
    ]);
  });

  it('[RU10] a conversation that began at another provider, with its ids, is taken', async () => {
    const call = {
      id: 'functions.list_files:0',
      type: 'function' as const,
      function: { name: 'list_files', arguments: '' },
    };
    const history = [
      { id: 'a.0', role: 'user' as const, content: 'look', timestamp: 1 },
      { id: 'a.1', role: 'assistant' as const, content: '', reasoning: 'hm', timestamp: 1, tool_calls: [call] },
      { id: 'a.2', role: 'tool' as const, content: '', tool_call_id: call.id, timestamp: 1 },
    ];
    const { end } = await drive(runner(), turn('and now?', { history }));
    expect(end.kind).toBe('completed');
  });

  it('[RU10] its list of models is asked for with its own headers', async () => {
    const catalog = createCatalog({
      providers: [anthropicAt(provider.baseUrl), providerAt('http://127.0.0.1:9/v1')],
      builtin: true,
      now: () => 1,
      discovery: [],
    });
    await catalog.refresh();
    expect(catalog.list().models.map(({ id }) => id)).toEqual([
      'builtin',
      `claude/${MODEL}`,
      'claude/claude-other',
      'custom/fake-model',
    ]);
    expect(catalog.list().providers.map(({ name, status }) => [name, status])).toEqual([
      ['claude', 'ok'],
      ['custom', 'unreachable'],
    ]);
    expect(provider.lists).toMatchObject([
      { path: '/v1/models?limit=1000', headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' } },
    ]);
  });
});

const refusal = (status: number, type: string, message = 'It went wrong.', headers = {}): Step[] => [
  { status, body: { type: 'error', error: { type, message }, request_id: 'req_1' }, headers },
];
type Case = [title: string, steps: Step[], code: TurnErrorCode, retryable: boolean, shown?: string];

const CASES: Case[] = [
  ['overloaded', refusal(529, 'overloaded_error', 'Overloaded'), 'provider_error', true],
  ['a rate limit', refusal(429, 'rate_limit_error'), 'rate_limited', true],
  ['a refused key', refusal(401, 'authentication_error', 'invalid x-api-key'), 'auth', false],
  ['no permission', refusal(403, 'permission_error'), 'auth', false],
  ['a model that there is not', refusal(404, 'not_found_error', 'model: claude-none'), 'model_not_found', false],
  ['a wrong path', refusal(404, 'not_found_error', 'Not Found'), 'provider_error', false],
  [
    'too long',
    refusal(400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    'context_too_long',
    false,
  ],
  ['a body that is too large', refusal(413, 'request_too_large'), 'context_too_long', false],
  [
    'an empty account',
    refusal(400, 'invalid_request_error', 'Your credit balance is too low to access the API.'),
    'quota',
    false,
  ],
  ['a bad request', refusal(400, 'invalid_request_error'), 'provider_error', false],
  ['a failure inside', refusal(500, 'api_error'), 'provider_error', true],
  [
    'overloaded in the first frame',
    [{ error: { type: 'overloaded_error', message: 'Overloaded' } }],
    'provider_error',
    true,
  ],
  [
    'a rate limit in the first frame',
    [{ error: { type: 'rate_limit_error', message: 'Slow down' } }],
    'rate_limited',
    true,
  ],
  [
    'an error in the stream',
    [{ text: 'so far' }, { error: { type: 'overloaded_error', message: 'Overloaded' } }],
    'provider_error',
    true,
    'so far',
  ],
  ['a broken first frame', [{ broken_frame: true }, { text: 'on' }], 'provider_error', true],
  [
    'a broken frame, though more follows',
    [{ text: 'so far' }, { broken_frame: true }, { text: ' on' }],
    'provider_error',
    true,
    'so far',
  ],
  [
    'a frame that is no event',
    [{ text: 'so far' }, { frame: { type: 'message_delta', delta: 3 } }],
    'provider_error',
    true,
    'so far',
  ],
  ['a web page with status 200', [{ html: '<html>It works!</html>' }], 'provider_error', false],
  [
    'noise',
    [{ raw: Buffer.from([0, 255, 13, 10, 200, 7, 10, 10]) }, { end: 'without-finish' }],
    'provider_error',
    false,
  ],
  ['a socket cut in the middle of a chunk', [{ text: 'so far' }, { cut: 'mid-chunk' }], 'network', true, 'so far'],
  ['a socket cut before the headers', [{ cut: 'before-headers' }], 'network', true],
  ['a stream that just stops', [{ text: 'so far' }, { end: 'without-finish' }], 'network', true, 'so far'],
  ['a refusal of the model', [{ text: 'I would' }, { finish: 'refusal' }], 'content_filter', false, 'I would'],
  ['a reply without anything', [], 'empty_reply', true],
  ['only thinking, to the limit', [{ reasoning: 'hm' }, { finish: 'max_tokens' }], 'empty_reply', true],
];

describe("[RU8] Anthropic's failures end the turn as errors with codes", () => {
  it.each(CASES)('[RU8] %s', async (_title, steps, code, retryable, shown = '') => {
    provider.next(...steps);
    const { events, end } = await drive(runner(), turn('hi'));
    expect(end).toMatchObject({ kind: 'failed', error: { code, retryable } });
    expect(chunksOf(events, 'message.delta').join('')).toBe(shown);
    expect(provider.requests).toHaveLength(1);
  });

  it('[RU8] an event that is new to the protocol is passed over', async () => {
    provider.next({ text: 'so ' }, { frame: { type: 'message_mood', mood: 'good' } }, { text: 'far' });
    const { events, end } = await drive(runner(), turn('hi'));
    expect(end).toEqual({ kind: 'completed' });
    expect(chunksOf(events, 'message.delta').join('')).toBe('so far');
  });

  it('[RU8] silence is given up as stalled, before and within an answer', async () => {
    for (const steps of [[{ hang: true }], [{ text: 'so far' }, { hang: true }]] satisfies Step[][]) {
      provider.next(...steps);
      const { end } = await drive(runner({}, { stallTimeoutS: 0.2 }), turn('hi'));
      expect(end).toMatchObject({ kind: 'failed', error: { code: 'stalled' } });
    }
    expect(await Promise.all(provider.requests.map(({ ended }) => ended))).toEqual([true, true]);
  });

  it('[RU8] a key that is refused, and one that is not set, are told apart and not shown', async () => {
    const wrong = await drive(runner({ apiKey: 'sk-ant-wrong-0123456789' }), turn('hi'));
    expect(wrong.end).toMatchObject({
      error: { code: 'auth', message: expect.stringContaining('refused the API key') },
    });
    expect(JSON.stringify(wrong)).not.toContain('wrong-0123');
    const none = await drive(runner({ apiKey: null }), turn('hi'));
    expect(none.end).toMatchObject({ error: { code: 'auth', message: expect.stringContaining('none is set') } });
  });

  it('[RU8] characters in pieces, byte by byte and 2,000 chunks at once come out whole', async () => {
    provider.next({ byte_by_byte: true }, { text: 'Grüße 👋' });
    expect(chunksOf((await drive(runner(), turn('a'))).events, 'message.delta').join('')).toBe('Grüße 👋');
    provider.next({ split_utf8: 'ein 👋 Gruß' });
    expect(chunksOf((await drive(runner(), turn('b'))).events, 'message.delta').join('')).toBe('ein 👋 Gruß');
    provider.next({ burst: 2000 });
    expect(chunksOf((await drive(runner(), turn('c'))).events, 'message.delta')).toHaveLength(2000);
  });
});

it('[RU12] cached tokens are part of the input, and cost what they cost', async () => {
  provider.next(
    { text: 'ok' },
    { usage: { input_tokens: 100, cache_read_input_tokens: 800, cache_creation_input_tokens: 100, output_tokens: 50 } },
  );
  const price = { input: 3, output: 15, cached: 0.3 };
  const { events } = await drive(runner({ price, contextLength: 200_000 }), turn('hi'));
  expect(events.find((event) => event.type === 'usage')?.payload).toEqual({
    input_tokens: 1000,
    output_tokens: 50,
    cached_tokens: 800,
    cost_usd: 0.00159,
    context_used: 1050,
    context_length: 200_000,
  });
});
