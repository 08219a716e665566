/** What a model streams, and the loop of a turn over its tools. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunnerEvent } from '../../server/runners/runner.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { chunksOf, drive, modelRunnerOn, providerAt, turnOf } from './model-bench.ts';

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(async () => {
  expect(provider.violations).toEqual([]);
  await provider.close();
});

const runner = (change = {}) => modelRunnerOn(providerAt(provider.baseUrl), change);
const typesOf = (events: RunnerEvent[]) => events.map((event) => event.type);
type PayloadOf<T extends RunnerEvent['type']> = Extract<RunnerEvent, { type: T }>['payload'];
const of = <T extends RunnerEvent['type']>(events: RunnerEvent[], type: T): PayloadOf<T>[] =>
  events.filter((event) => event.type === type).map((event) => event.payload as PayloadOf<T>);

describe('[RU5] text and reasoning of a model are streamed apart, chunk by chunk', () => {
  it('[RU5] one delta for each chunk, reasoning apart from text, after one message.start', async () => {
    provider.next({ reasoning: ['let ', 'me see'] }, { text: ['Hel', 'lo', ' you'] });
    const { events, end } = await drive(runner(), turnOf('hi'));
    expect(end).toEqual({ kind: 'completed' });
    expect(chunksOf(events, 'reasoning.delta')).toEqual(['let ', 'me see']);
    expect(chunksOf(events, 'message.delta')).toEqual(['Hel', 'lo', ' you']);
    expect(typesOf(events)).toEqual([
      'message.start',
      'reasoning.delta',
      'reasoning.delta',
      'message.delta',
      'message.delta',
      'message.delta',
      'usage',
    ]);
  });

  it('[RU5] a chunk is shown while the answer is still being written', async () => {
    const hold = provider.hold();
    provider.next({ text: 'first' }, { hold }, { text: 'second' });
    let released = false;
    const { events } = await drive(runner(), turnOf('hi'), undefined, async (event) => {
      if (event.type !== 'message.delta' || released) return;
      expect(event.payload.text).toBe('first');
      await hold.reached;
      released = true;
      hold.release();
    });
    expect(released).toBe(true);
    expect(chunksOf(events, 'message.delta')).toEqual(['first', 'second']);
  });

  it('[RU5] one byte per packet and a character cut between packets are the same text', async () => {
    provider.next({ byte_by_byte: true }, { text: 'häß — 😀' });
    provider.next({ split_utf8: 'ü 😀' });
    const slow = await drive(runner(), turnOf('slow'));
    expect(chunksOf(slow.events, 'message.delta').join('')).toBe('häß — 😀');
    const cut = await drive(runner(), turnOf('cut'));
    expect(chunksOf(cut.events, 'message.delta')).toEqual(['ü 😀']);
    expect(cut.end.kind).toBe('completed');
  });

  it('[RU5] 2,000 chunks at once are 2,000 deltas', async () => {
    provider.next({ burst: 2000 });
    const { events, end } = await drive(runner(), turnOf('many'));
    expect(end.kind).toBe('completed');
    expect(chunksOf(events, 'message.delta')).toEqual(Array.from({ length: 2000 }, (_, n) => `[${n}]`));
  });

  it('[RU5] half a surrogate pair and an empty list of tool calls do not end a turn', async () => {
    provider.next({ lone_surrogate: true }, { empty_tool_calls: true }, { text: ' on' });
    const { events, end } = await drive(runner(), turnOf('hi'));
    expect(end.kind).toBe('completed');
    expect(chunksOf(events, 'message.delta')).toEqual(['half \ud83d gone', ' on']);
  });

  it('[RU5] a stream that ends with [DONE] and no finish reason is complete', async () => {
    provider.next({ text: 'all of it' }, { end: 'done-only' });
    expect((await drive(runner(), turnOf('hi'))).end).toEqual({ kind: 'completed' });
  });

  it('[RU5] usage is told with cached and reasoning tokens and the fill of the window', async () => {
    provider.next(
      { text: 'ok' },
      {
        usage: {
          prompt_tokens: 100,
          completion_tokens: 20,
          prompt_tokens_details: { cached_tokens: 64 },
          completion_tokens_details: { reasoning_tokens: 12 },
        },
      },
    );
    const known = modelRunnerOn(providerAt(provider.baseUrl, { contextLength: 8000 }));
    const { events } = await drive(known, turnOf('hi'));
    expect(of(events, 'usage')).toEqual([
      {
        input_tokens: 100,
        output_tokens: 20,
        cached_tokens: 64,
        reasoning_tokens: 12,
        context_used: 120,
        context_length: 8000,
      },
    ]);
  });

  it('[RU5] an answer that the output limit cut is kept, and said to be cut', async () => {
    provider.next({ text: 'half an' }, { finish: 'length' });
    const { events, end } = await drive(runner(), turnOf('hi'));
    expect(end.kind).toBe('completed');
    expect(of(events, 'status').map((status) => status.kind)).toEqual(['length']);
  });

  it('[RU5] an abort ends the turn at once, stops the request, and nothing comes after it', async () => {
    const hold = provider.hold();
    provider.next({ text: 'shown' }, { hold }, { text: 'late' });
    const abort = new AbortController();
    const { events } = await drive(runner(), turnOf('hi'), abort.signal, async (event) => {
      if (event.type !== 'message.delta') return;
      await hold.reached;
      abort.abort();
      hold.release();
    });
    expect(chunksOf(events, 'message.delta')).toEqual(['shown']);
    expect(await provider.requests[0]?.ended).toBe(true);
  });

  it('[RU5] an abort before any answer, and a reader that leaves, stop the request too', async () => {
    provider.next({ hang: true });
    const abort = new AbortController();
    const waiting = drive(runner(), turnOf('hi'), abort.signal);
    const request = await provider.waitForRequests(1);
    abort.abort();
    expect((await waiting).events).toEqual([]);
    expect(await request.ended).toBe(true);

    provider.next({ text: 'one' }, { hang: true });
    for await (const event of runner().run(turnOf('hi'), new AbortController().signal)) {
      if (event.type === 'message.delta') break;
    }
    expect(await provider.requests[1]?.ended).toBe(true);
  });

  it('[RU5] an abort ends the turn also when the connection does not react to it', async () => {
    const deaf: typeof fetch = (input, init) => fetch(input, { ...init, signal: null });
    provider.next({ hang: true });
    const abort = new AbortController();
    const before = drive(runner({ fetch: deaf }), turnOf('hi'), abort.signal);
    await provider.waitForRequests(1);
    abort.abort();
    await before;

    const hold = provider.hold();
    provider.next({ text: 'one' }, { hold });
    const later = new AbortController();
    const { events } = await drive(runner({ fetch: deaf }), turnOf('hi'), later.signal, async (event) => {
      if (event.type !== 'message.delta') return;
      await hold.reached;
      queueMicrotask(() => later.abort());
    });
    expect(chunksOf(events, 'message.delta')).toEqual(['one']);
  });
});

describe('[RU6] the workspace tools go with every main request and a turn loops until the model is done', () => {
  it('[RU6] all calls of a step start before the first completes, usage between; then the model goes on', async () => {
    provider.next(
      { text: 'Looking.' },
      {
        tool_calls: [
          { id: 'a', name: 'read_file', args: { path: 'x.txt' } },
          { id: 'b', name: 'list_files' },
        ],
      },
    );
    provider.next({ text: 'Done.' });
    const { events, end } = await drive(runner(), turnOf('look', { workspace: '/somewhere' }));
    expect(end).toEqual({ kind: 'completed' });
    expect(typesOf(events)).toEqual([
      'message.start',
      'message.delta',
      'usage',
      'tool.start',
      'tool.start',
      'tool.complete',
      'tool.complete',
      'message.start',
      'message.delta',
      'usage',
    ]);
    expect(of(events, 'tool.start')).toEqual([
      { tool_id: 'a', name: 'read_file', args: { path: 'x.txt' }, preview: 'read x.txt' },
      { tool_id: 'b', name: 'list_files', args: {}, preview: 'list' },
    ]);
    const results = of(events, 'tool.complete').map(({ tool_id, result, is_error }) => ({ tool_id, result, is_error }));
    expect(results).toContainEqual({ tool_id: 'a', result: 'content of x.txt', is_error: false });
    expect(of(events, 'tool.complete').every(({ duration_s }) => duration_s >= 0 && duration_s < 5)).toBe(true);

    const [, second] = provider.requests;
    expect(second?.body.messages.slice(-3)).toEqual([
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'read_file', arguments: '{"path":"x.txt"}' } },
          { id: 'b', type: 'function', function: { name: 'list_files', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'content of x.txt' },
      { role: 'tool', tool_call_id: 'b', content: 'a.txt' },
    ]);
  });

  it('[RU6] every request carries the three tools, with and without a workspace', async () => {
    provider.next({ tool_calls: [{ name: 'read_file', args: { path: 'x' } }] });
    const { events } = await drive(runner(), turnOf('no workspace'));
    await drive(runner(), turnOf('workspace', { workspace: '/somewhere' }));
    expect(provider.requests).toHaveLength(3);
    for (const { body } of provider.requests) {
      expect(body.tools?.map((tool) => tool.function.name)).toEqual(['read_file', 'list_files', 'search_files']);
      expect(body.tools?.[0]?.function.parameters).toMatchObject({ required: ['path'] });
      expect(body.stream).toBe(true);
    }
    expect(of(events, 'tool.complete')).toMatchObject([{ result: 'This session has no workspace.', is_error: true }]);
  });

  it('[RU6] a tool that there is not, and arguments that are not JSON, are results that the model reads', async () => {
    provider.next({
      tool_calls: [
        { id: 'a', name: 'rm -rf', args: {} },
        { id: 'b', name: 'read_file', args: '{"path": "x' },
        { id: 'c', name: 'read_file', args: '[1]' },
      ],
    });
    provider.next({ text: 'Sorry.' });
    const { events, end } = await drive(runner(), turnOf('go'));
    expect(end.kind).toBe('completed');
    expect(of(events, 'tool.complete').every((done) => done.is_error)).toBe(true);
    expect(of(events, 'tool.start')[1]).toMatchObject({ args: '{"path": "x', preview: 'read ?' });
    const results = provider.requests[1]?.body.messages.filter((message) => message.role === 'tool');
    expect(results?.map((message) => message.content)).toEqual([
      'There is no tool named "rm -rf". The tools are: read_file, list_files, search_files.',
      'The arguments are not a JSON object. Call the tool again with valid JSON.',
      'The arguments are not a JSON object. Call the tool again with valid JSON.',
    ]);
  });

  it('[RU6] ids that a model uses again are unique within the run and the conversation', async () => {
    const call = { tool_calls: [{ id: 'call_0', name: 'list_files' }] };
    provider.next(call);
    provider.next(call);
    provider.next({ text: 'ok' });
    const history = [
      {
        id: 'r.1',
        role: 'assistant' as const,
        content: '',
        timestamp: 1,
        tool_calls: [{ id: 'call_9', type: 'function' as const, function: { name: 'list_files', arguments: '{}' } }],
      },
    ];
    const { events } = await drive(runner(), turnOf('go', { history }));
    const ids = of(events, 'tool.start').map((start) => start.tool_id);
    expect(ids).toEqual(['call_0', 'made_1']);
  });

  it('[RU6] reasoning between tool calls goes back to the model within the turn', async () => {
    provider.next({ reasoning: 'I should look' }, { tool_calls: [{ name: 'list_files' }] });
    provider.next({ text: 'ok' });
    await drive(runner(), turnOf('go'));
    const said = provider.requests[1]?.body.messages.find((message) => message.tool_calls);
    expect(said?.reasoning_content).toBe('I should look');
  });

  it('[RU6] the last permitted step must answer without tools, and says so', async () => {
    for (let n = 0; n < 2; n += 1) provider.next({ tool_calls: [{ name: 'list_files' }] });
    provider.next({ text: 'What I have so far.' });
    const { events, end } = await drive(runner({ maxSteps: 3 }), turnOf('go'));
    expect(end).toEqual({ kind: 'completed' });
    expect(of(events, 'status').map((status) => status.kind)).toEqual(['max_steps']);
    expect(provider.requests.map(({ body }) => body.tool_choice)).toEqual([undefined, undefined, 'none']);
    expect(provider.requests[2]?.body.tools).toHaveLength(3);
  });

  it('[RU6] a model that never stops calling tools is stopped', async () => {
    for (let n = 0; n < 3; n += 1) provider.next({ tool_calls: [{ name: 'list_files' }] });
    const { events, end } = await drive(runner({ maxSteps: 3 }), turnOf('go'));
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'provider_error', retryable: false } });
    expect(provider.requests).toHaveLength(3);
    expect(of(events, 'tool.start')).toHaveLength(2);
  });

  it('[RU6] an abort stops running tools and asks no more', async () => {
    provider.next({ tool_calls: [{ name: 'search_files', args: { query: 'x' } }] });
    const abort = new AbortController();
    const { events } = await drive(runner(), turnOf('go', { workspace: '/x' }), abort.signal, (event) => {
      if (event.type === 'tool.start') setImmediate(() => abort.abort());
    });
    expect(of(events, 'tool.complete')).toEqual([]);
    expect(provider.requests).toHaveLength(1);
  });

  it('[RU6] a prompt that carries its own script: a tool, then numbered chunks', async () => {
    const prompt = 'script:chunks=2,id=abc script:tool=read_file,args={"path": "a b.txt"}';
    const reversed = 'script:tool=list_files script:chunks=2,delay=1,id=abc';
    const first = await drive(runner(), turnOf(prompt));
    expect(chunksOf(first.events, 'message.delta')).toEqual(['[abc:0] ', '[abc:1] ']);
    const second = await drive(runner(), turnOf(reversed));
    expect(of(second.events, 'tool.complete').map(({ result }) => result)).toEqual(['a.txt']);
    expect(chunksOf(second.events, 'message.delta')).toEqual(['[abc:0] ', '[abc:1] ']);
    const third = await drive(runner(), turnOf('script:tool=read_file,args={"path": "a b.txt"}', { workspace: '/x' }));
    expect(of(third.events, 'tool.start').map(({ args }) => args)).toEqual([{ path: 'a b.txt' }]);
    expect(chunksOf(third.events, 'message.delta').join('')).toBe('The tool said: content of a b.txt');
    const echo = await drive(runner(), turnOf('one two'));
    expect(chunksOf(echo.events, 'message.delta')).toEqual(['You', ' said:', ' one', ' two']);
  });
});
