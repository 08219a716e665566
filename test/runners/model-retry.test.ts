/** When a failed step is asked again, and how long that takes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TurnError } from '../../server/core/terms.ts';
import { planRetry } from '../../server/runners/model/retry.ts';
import { retryAfterOf } from '../../server/runners/model/retry-after.ts';
import { type FakeProvider, type Step, startFakeProvider } from '../support/fake-provider.ts';
import { drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';

let provider: FakeProvider;
let slept: number[] = [];
beforeEach(async () => {
  slept = [];
  provider = await startFakeProvider();
});
afterEach(async () => {
  await provider.close();
});

const runner = (change = {}) =>
  modelRunnerOn(providerAt(provider.baseUrl), {
    maxRetries: 2,
    sleep: async (ms) => void slept.push(ms),
    ...change,
  });
const fails = (status: number, fields = {}, headers: Record<string, string> = {}): Step[] => [
  { status, body: { error: { message: 'It went wrong.', ...fields } }, headers },
];
const limited = (headers: Record<string, string> = {}) => fails(429, { code: 'rate_limit_exceeded' }, headers);
const always = (steps: Step[], times = 5): void => {
  for (let n = 0; n < times; n += 1) provider.next(...steps);
};

describe('[RU11] a step is asked again when that can help', () => {
  it('[RU11] twice by default with doubling pauses, each told as a status; then the answer', async () => {
    provider.next(...fails(503, { type: 'server_error' }));
    provider.next(...limited());
    provider.next({ text: 'At last.' });
    const { events, end } = await drive(runner(), turnOf('hi'));
    expect(end).toEqual({ kind: 'completed' });
    expect(events.slice(0, 2).map((event) => event.type === 'status' && event.payload.kind)).toEqual([
      'retrying',
      'rate_limited',
    ]);
    expect(events[1]).toMatchObject({
      payload: { text: expect.stringMatching(/Asking again in 1 s \(try 3 of 3\)\.$/) },
    });
    expect(slept).toEqual([500, 1000]);
    expect(provider.requests).toHaveLength(3);
    expect(provider.violations).toEqual([]);
  });

  it.each([0, 1, 3])('[RU11] with %i retries there are at most that many requests more', async (maxRetries) => {
    always(limited());
    const { end } = await drive(runner({ maxRetries }), turnOf('hi'));
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'rate_limited', retryable: true } });
    expect(provider.requests).toHaveLength(maxRetries + 1);
    expect(slept).toHaveLength(maxRetries);
    if (end.kind === 'failed' && maxRetries > 0) expect(end.error.message).toContain(`asked ${maxRetries + 1} times`);
  });

  it('[RU11] each step of a turn has its own retries', async () => {
    for (const answer of [{ tool_calls: [{ name: 'list_files' }] }, { text: 'Done.' }] satisfies Step[]) {
      always(fails(500), 2);
      provider.next(answer);
    }
    const { end } = await drive(runner(), turnOf('hi'));
    expect(end).toEqual({ kind: 'completed' });
    expect(provider.requests).toHaveLength(6);
    expect(provider.violations).toEqual([]);
  });

  const HELPED: [string, Step[]][] = [
    ['a cut connection', [{ cut: 'before-headers' }]],
    ['a stream that was cut before anything came', [{ cut: 'mid-chunk' }]],
    ['an overloaded provider in the stream', [{ error: { message: 'Overloaded', type: 'overloaded_error' } }]],
    ['a broken first frame', [{ broken_frame: true }]],
    [
      'a tool call that broke off, which was not shown',
      [{ tool_calls: [{ name: 'list_files' }] }, { cut: 'mid-chunk' }],
    ],
  ];
  it.each(HELPED)('[RU11] %s is asked again', async (_title, steps) => {
    provider.next(...steps);
    provider.next({ text: 'ok' });
    expect((await drive(runner(), turnOf('hi'))).end).toEqual({ kind: 'completed' });
    expect(provider.requests).toHaveLength(2);
  });

  const NOT: [string, Step[], TurnError['code']][] = [
    ['an empty account', fails(429, { type: 'insufficient_quota' }, { 'retry-after': '1' }), 'quota'],
    ['a refused key', fails(401), 'auth'],
    ['a conversation that is too long', fails(400, { code: 'context_length_exceeded' }), 'context_too_long'],
    ['a model that there is not', fails(404, { code: 'model_not_found' }), 'model_not_found'],
    ['a filtered prompt', fails(400, { code: 'content_filter' }), 'content_filter'],
    ['a bad request', fails(400), 'provider_error'],
    ['a page', [{ html: '<p>no</p>' }], 'provider_error'],
    ['an empty reply', [], 'empty_reply'],
    ['silence', [{ hang: true }], 'stalled'],
    ['a failure after text', [{ text: 'so far' }, { cut: 'mid-chunk' }], 'network'],
    ['a failure after reasoning', [{ reasoning: 'hm' }, { error: { type: 'overloaded_error' } }], 'provider_error'],
  ];
  it.each(NOT)('[RU11] %s is not asked again', async (_title, steps, code) => {
    always(steps);
    const { end } = await drive(runner({ stallTimeoutS: 0.2 }), turnOf('hi'));
    expect(end).toMatchObject({ kind: 'failed', error: { code } });
    expect(provider.requests).toHaveLength(1);
    expect(slept).toEqual([]);
  });

  it('[RU11] what the provider asks to wait is waited, but no longer than the stall time-out', async () => {
    provider.next(...limited({ 'retry-after': '7' }));
    provider.next(...fails(503, {}, { 'retry-after-ms': '2500' }));
    provider.next({ text: 'ok' });
    expect((await drive(runner(), turnOf('hi'))).end.kind).toBe('completed');
    expect(slept).toEqual([7000, 2500]);
    provider.next(...limited({ 'retry-after': '31' }));
    const { end, events } = await drive(runner({ stallTimeoutS: 30 }), turnOf('hi'));
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'rate_limited', retry_after: 31 } });
    expect(events).toEqual([]);
    expect(slept).toHaveLength(2);
  });

  it('[RU11] a stop ends the wait at once, and nothing more is asked', async () => {
    always(limited({ 'retry-after': '20' }));
    const abort = new AbortController();
    // By itself it never ends.
    const sleep = (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const { events } = await drive(runner({ sleep }), turnOf('hi'), abort.signal, (event) => {
      if (event.type === 'status') setImmediate(() => abort.abort());
    });
    expect(events.map((event) => event.type)).toEqual(['status']);
    expect(provider.requests).toHaveLength(1);
  });
});

it('[RU11] pauses double from half a second, a quarter more or less', () => {
  const error: TurnError = { code: 'network', message: '', retryable: true };
  const policy = { maxRetries: 9, longestWaitS: 120 };
  const waits = (random: number) => [0, 1, 2, 3].map((retries) => planRetry(error, retries, policy, random)?.waitS);
  expect(waits(0)).toEqual([0.375, 0.75, 1.5, 3]);
  expect(waits(1)).toEqual([0.625, 1.25, 2.5, 5]);
});

it('[RU11] the headers that say when are read in all their forms', () => {
  const now = Date.UTC(2026, 0, 1) / 1000;
  const cases: [Record<string, string>, number | null][] = [
    [{}, null],
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': '1.5' }, 1.5],
    [{ 'retry-after': '-5' }, null],
    [{ 'retry-after': 'soon' }, null],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30],
    [{ 'retry-after': 'Wed, 31 Dec 2025 00:00:30 GMT' }, 0],
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1.5],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }, 360],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '20ms' }, 0.02],
    [{ 'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '6m0s' }, null],
    [{ 'anthropic-ratelimit-tokens-remaining': '0', 'anthropic-ratelimit-tokens-reset': '2026-01-01T00:00:12Z' }, 12],
    [{ 'ratelimit-reset': '12' }, 12],
    [{ 'x-ratelimit-reset': String((now + 9) * 1000) }, 9],
    [{ 'x-ratelimit-reset': String(now + 8) }, 8],
    [{ 'retry-after': '3', 'x-ratelimit-reset': '60' }, 3],
  ];
  for (const [headers, seconds] of cases) {
    const found = retryAfterOf(headers, now);
    if (seconds === null) expect([headers, found]).toEqual([headers, null]);
    else expect(found, JSON.stringify(headers)).toBeCloseTo(seconds, 6);
  }
});
