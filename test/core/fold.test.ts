/** The fold: from the events of a run to its rows, what a snapshot shows of it, and its counts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../server/core/events.ts';
import { addUsage, createFold, type FoldEnd, finalRow } from '../../server/core/fold.ts';
import { markerRow } from '../../server/core/marker.ts';
import type { Message, TurnError, Usage } from '../../server/core/terms.ts';

const RUN = '0123456789abcdef0123456789abcdef';

const start = (part: object = {}): RunEvent => ({
  type: 'run.start',
  payload: { admission_id: 'a1', input: 'hello', generation: 1, timestamp: 99, model: 'm', ...part },
});
const message: RunEvent = { type: 'message.start', payload: {} };
const text = (value: string): RunEvent => ({ type: 'message.delta', payload: { text: value } });
const reasoning = (value: string): RunEvent => ({ type: 'reasoning.delta', payload: { text: value } });
const usage = (input: number, output: number, part: Partial<Usage> = {}): RunEvent => ({
  type: 'usage',
  payload: { input_tokens: input, output_tokens: output, ...part },
});
const call = (id: string, args: unknown = { q: id }): RunEvent => ({
  type: 'tool.start',
  payload: { tool_id: id, name: 'search', args, preview: `search ${id}` },
});
const result = (id: string, is_error = false): RunEvent => ({
  type: 'tool.complete',
  payload: { tool_id: id, name: 'search', result: `result of ${id}`, is_error, duration_s: 0.5 },
});

const denial = (id: string): RunEvent => ({
  type: 'tool.complete',
  payload: { tool_id: id, name: 'search', result: `result of ${id}`, is_error: true, denied: true, duration_s: 0.5 },
});
const plan = (content: string): RunEvent => ({
  type: 'todo.updated',
  payload: { todos: [{ content, status: 'pending' }] },
});

const COMPLETE: FoldEnd = { kind: 'complete' };
const ERROR: TurnError = { code: 'stalled', message: 'It stalled.', retryable: true };
const DEAD: FoldEnd = { kind: 'dead', cause: 'process_restart' };

/** Rows of a run: its events come one second apart, beginning at 100, and its end is at 200. */
function rowsOf(events: readonly RunEvent[], end: FoldEnd | null = COMPLETE): readonly Message[] {
  const fold = createFold(RUN);
  const closed = events.flatMap((event, n) => fold.apply(event, 100 + n));
  if (end) closed.push(...fold.end(end, 200));
  expect(closed).toEqual(fold.rows());
  return fold.rows();
}

const prompt: Message = { id: `${RUN}.0`, role: 'user', content: 'hello', timestamp: 99, run_id: RUN };
const reply = (n: number, timestamp: number, content: string, part: Partial<Message> = {}): Message => ({
  id: `${RUN}.${n}`,
  role: 'assistant',
  content,
  timestamp,
  run_id: RUN,
  status: 'complete',
  model: 'm',
  ...part,
});
const toolRow = (n: number, timestamp: number, id: string, part: Partial<Message> = {}): Message => ({
  id: `${RUN}.${n}`,
  role: 'tool',
  content: `result of ${id}`,
  timestamp,
  run_id: RUN,
  status: 'complete',
  tool_call_id: id,
  name: 'search',
  duration_s: 0.5,
  ...part,
});
const calls = (...ids: string[]): Pick<Message, 'tool_calls'> => ({
  tool_calls: ids.map((id) => ({
    id,
    type: 'function',
    function: { name: 'search', arguments: JSON.stringify({ q: id }) },
  })),
});

describe('the rows of a run', () => {
  const recovered = { recovered: true };
  const marker = (recovery: 'recovered' | 'none'): Message => markerRow(RUN, 200, 'process_restart', recovery);

  const table: [what: string, events: RunEvent[], end: FoldEnd, rows: Message[]][] = [
    ['nothing but a prompt', [start()], COMPLETE, [prompt]],
    ['text', [start(), message, text('a'), text(''), text('b')], COMPLETE, [prompt, reply(1, 101, 'ab')]],
    ['text without message.start', [start(), text('a')], COMPLETE, [prompt, reply(1, 101, 'a')]],
    [
      'reasoning, then text',
      [start(), message, reasoning('h'), reasoning('m'), text('a')],
      COMPLETE,
      [prompt, reply(1, 101, 'a', { reasoning: 'hm' })],
    ],
    ['reasoning alone', [start(), reasoning('hm')], COMPLETE, [prompt, reply(1, 101, '', { reasoning: 'hm' })]],
    ['an empty reply', [start(), message], COMPLETE, [prompt, reply(1, 101, '')]],
    [
      'two messages',
      [start(), message, text('a'), message, text('b')],
      COMPLETE,
      [prompt, reply(1, 101, 'a'), reply(2, 103, 'b')],
    ],
    [
      'an empty message that another follows',
      [start(), message, message, text('b')],
      COMPLETE,
      [prompt, reply(1, 101, 'b')],
    ],
    [
      'a message that stays empty behind another',
      [start(), text('a'), message],
      COMPLETE,
      [prompt, reply(1, 101, 'a')],
    ],
    [
      'one tool, then text',
      [start(), message, text('look: '), call('t1'), result('t1'), message, text('so')],
      COMPLETE,
      [prompt, reply(1, 101, 'look: ', calls('t1')), toolRow(2, 104, 't1'), reply(3, 105, 'so')],
    ],
    [
      'two tools one after the other',
      [start(), call('t1'), result('t1'), call('t2'), result('t2', true), text('so')],
      COMPLETE,
      [
        prompt,
        reply(1, 101, '', calls('t1')),
        toolRow(2, 102, 't1'),
        reply(3, 103, '', calls('t2')),
        toolRow(4, 104, 't2', { is_error: true }),
        reply(5, 105, 'so'),
      ],
    ],
    [
      'two tools side by side, answered the other way round',
      [start(), call('t1'), call('t2'), result('t2'), result('t1'), text('so')],
      COMPLETE,
      [prompt, reply(1, 101, '', calls('t1', 't2')), toolRow(2, 103, 't2'), toolRow(3, 104, 't1'), reply(4, 105, 'so')],
    ],
    [
      'a tool that starts after the first result',
      [start(), call('t1'), result('t1'), call('t2'), text('meanwhile'), result('t2')],
      COMPLETE,
      [
        prompt,
        reply(1, 101, '', calls('t1')),
        toolRow(2, 102, 't1'),
        reply(3, 103, 'meanwhile', calls('t2')),
        toolRow(4, 105, 't2'),
      ],
    ],
    [
      'todos and status alone, which leave no row',
      [
        start(),
        { type: 'todo.updated', payload: { todos: [{ content: 'x', status: 'pending' }] } },
        { type: 'status', payload: { kind: 'retry', text: 'again' } },
      ],
      COMPLETE,
      [prompt],
    ],
    [
      'a list of things to do, on the row that is open or comes next; the last one of a row counts',
      [start(), plan('a'), text('on it'), call('t1'), plan('b'), plan('c'), result('t1'), plan('d'), text('end')],
      COMPLETE,
      [
        prompt,
        reply(1, 102, 'on it', { ...calls('t1'), todos: [{ content: 'c', status: 'pending' }] }),
        toolRow(2, 106, 't1'),
        reply(3, 108, 'end', { todos: [{ content: 'd', status: 'pending' }] }),
      ],
    ],
    [
      'a list of things to do that is told just before a person says something',
      [
        start(),
        message,
        plan('a'),
        { type: 'message.input', payload: { kind: 'steer', admission_id: 'a2', input: 'and?', timestamp: 102 } },
        text('b'),
      ],
      COMPLETE,
      [
        prompt,
        { id: `${RUN}.1`, role: 'user', content: 'and?', timestamp: 102, run_id: RUN },
        reply(2, 104, 'b', { todos: [{ content: 'a', status: 'pending' }] }),
      ],
    ],
    [
      'a call that the person denied',
      [start(), call('t1'), denial('t1')],
      COMPLETE,
      [prompt, reply(1, 101, '', calls('t1')), toolRow(2, 102, 't1', { is_error: true, denied: true })],
    ],
    [
      'usage, on the row that is open',
      [start(), text('a'), usage(1, 2), message, text('b'), usage(3, 4)],
      COMPLETE,
      [
        prompt,
        reply(1, 101, 'a', { usage: { input_tokens: 1, output_tokens: 2 } }),
        reply(2, 103, 'b', { usage: { input_tokens: 3, output_tokens: 4 } }),
      ],
    ],
    [
      'interrupted in a reply',
      [start(), text('a')],
      { kind: 'interrupted' },
      [prompt, reply(1, 101, 'a', { status: 'interrupted' })],
    ],
    [
      'interrupted before anything',
      [start()],
      { kind: 'interrupted' },
      [prompt, reply(1, 200, '', { status: 'interrupted' })],
    ],
    [
      'interrupted with a reason, after a tool',
      [start(), call('t1'), result('t1')],
      { kind: 'interrupted', error: ERROR },
      [
        prompt,
        reply(1, 101, '', calls('t1')),
        toolRow(2, 102, 't1'),
        reply(3, 200, '', { status: 'interrupted', error: ERROR }),
      ],
    ],
    [
      'interrupted while a tool runs',
      [start(), text('a'), call('t1')],
      { kind: 'interrupted' },
      [prompt, reply(1, 101, 'a', { ...calls('t1'), status: 'interrupted' })],
    ],
    [
      'failed in a reply',
      [start(), text('a')],
      { kind: 'error', error: ERROR },
      [prompt, reply(1, 101, 'a', { status: 'error', error: ERROR })],
    ],
    [
      'failed before anything',
      [start()],
      { kind: 'error', error: ERROR },
      [prompt, reply(1, 200, '', { status: 'error', error: ERROR })],
    ],
    ['dead before anything', [start()], DEAD, [prompt, marker('none')]],
    ['dead in a reply that is still empty', [start(), message], DEAD, [prompt, marker('none')]],
    [
      'dead in a reply',
      [start(), text('a')],
      DEAD,
      [prompt, reply(1, 101, 'a', { status: 'partial', ...recovered }), marker('recovered')],
    ],
    [
      'dead after a tool',
      [start(), call('t1'), result('t1')],
      DEAD,
      [
        prompt,
        reply(1, 101, '', { ...calls('t1'), ...recovered }),
        toolRow(2, 102, 't1', recovered),
        marker('recovered'),
      ],
    ],
    [
      'dead after a tool, in a reply that is still empty',
      [start(), call('t1'), result('t1'), message],
      DEAD,
      [
        prompt,
        reply(1, 101, '', { ...calls('t1'), ...recovered }),
        toolRow(2, 102, 't1', recovered),
        marker('recovered'),
      ],
    ],
  ];

  it.each(table)('[EV4] the rows of a run are fold(journal events): %s', (_what, events, end, rows) => {
    expect(rowsOf(events, end)).toEqual(rows);
  });

  it('[EV4] the prompt has the attachments and the time of its claim; a run without a model names none', () => {
    const [first, second] = rowsOf([start({ attachments: ['x'], model: '' }), text('a')]);
    expect(first).toEqual({ ...prompt, attachments: ['x'] });
    expect(second).toEqual({ ...reply(1, 101, 'a'), model: undefined });
    expect(Object.keys(second ?? {})).not.toContain('model');
    expect(Object.keys(rowsOf([start({ attachments: [] })])[0] ?? {})).not.toContain('attachments');
  });

  it('[EV4] arguments of a tool are JSON text, also where there are none', () => {
    const given = (args: unknown) => {
      const payload = { tool_id: 't', name: 'search', args, preview: '' };
      return rowsOf([start(), { type: 'tool.start', payload }])[1]?.tool_calls?.[0]?.function.arguments;
    };
    expect([given({ a: [1] }), given(undefined), given(null), given('x')]).toEqual(['{"a":[1]}', '{}', '{}', '"x"']);
  });

  it('[EV4] rows come out as they close, not before', () => {
    const fold = createFold(RUN);
    const ids = (event: RunEvent) => fold.apply(event, 100).map((row) => row.id.split('.')[1]);
    expect(
      [start(), message, text('a'), call('t1'), call('t2'), result('t1'), result('t2'), text('b')].map(ids),
    ).toEqual([['0'], [], [], [], [], ['1', '2'], ['3'], []]);
    expect(fold.end(COMPLETE, 200).map((row) => row.id)).toEqual([`${RUN}.4`]);
  });
});

describe('what the end of a run names', () => {
  it('[EV3] is the last assistant row; a marker only where there is nothing else', () => {
    const table: [events: RunEvent[], end: FoldEnd, id: string | null][] = [
      [[start()], COMPLETE, null],
      [[start(), text('a')], COMPLETE, `${RUN}.1`],
      [[start(), call('t1'), result('t1')], COMPLETE, `${RUN}.1`],
      [[start(), text('a')], DEAD, `${RUN}.1`],
      [[start()], DEAD, `${RUN}.m`],
    ];
    for (const [events, end, id] of table) expect(finalRow(rowsOf(events, end))?.id ?? null).toBe(id);
  });
});

describe('a snapshot of a run', () => {
  it('[SU2] shows all text in order, and tools with what is known of them', () => {
    const fold = createFold(RUN);
    for (const event of [
      start(),
      reasoning('h'),
      reasoning('m'),
      text('a'),
      text('b'),
      call('t1'),
      call('t2'),
      result('t2', true),
      text('c'),
    ]) {
      fold.apply(event, 100);
    }
    const view = fold.view();
    expect(view).toMatchObject({ todos: [], notice: null });
    expect(view).toMatchObject({
      text: 'abc',
      reasoning: 'hm',
      tools: [
        { tool_id: 't1', name: 'search', args: { q: 't1' }, preview: 'search t1' },
        {
          tool_id: 't2',
          name: 'search',
          args: { q: 't2' },
          preview: 'search t2',
          result: 'result of t2',
          is_error: true,
          duration_s: 0.5,
        },
      ],
      parts: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'ab' },
        { type: 'tool', tool_id: 't1' },
        { type: 'tool', tool_id: 't2' },
        { type: 'text', text: 'c' },
      ],
      todos: [],
      notice: null,
    });
    // What was shown stays as it was.
    fold.apply(text('d'), 100);
    fold.apply(result('t1'), 100);
    expect(view.parts.at(-1)).toEqual({ type: 'text', text: 'c' });
    expect(view.tools[0]).not.toHaveProperty('result');
    expect(fold.view().text).toBe('abcd');
  });

  it('[SU2] shows the end of what a running tool puts out, and of no tool that there is not; no row has it', () => {
    const fold = createFold(RUN);
    const output = (tool_id: string, value: string): RunEvent => ({
      type: 'tool.output',
      payload: { tool_id, text: value },
    });
    for (const event of [start(), call('t1'), call('t2'), output('t1', 'a'), output('t1', 'b'), output('t3', 'x')]) {
      fold.apply(event, 100);
    }
    expect(fold.view().tools.map((tool) => tool.output)).toEqual(['ab', undefined]);
    fold.apply(output('t2', `\u{1f600}${'y'.repeat(64 * 1024 - 1)}`), 100);
    expect(fold.view().tools[1]!.output).toBe(`\uFFFD${'y'.repeat(64 * 1024 - 1)}`);
    const changed: RunEvent = {
      type: 'tool.complete',
      payload: { tool_id: 't1', name: 'search', result: 'r', is_error: false, duration_s: 1, diff: '-a\n+b\n' },
    };
    const rows = fold.apply(changed, 100);
    expect(fold.view().tools[0]).toMatchObject({ output: 'ab', result: 'r', diff: '-a\n+b\n' });
    expect(Object.keys(rows[1]!)).toEqual(expect.not.arrayContaining(['output', 'diff']));
  });

  it('[SU2] shows the last list of things to do and the last notice', () => {
    const fold = createFold(RUN);
    for (const word of ['first', 'second']) {
      fold.apply({ type: 'todo.updated', payload: { todos: [{ content: word, status: 'pending' }] } }, 100);
      fold.apply({ type: 'status', payload: { kind: 'retry', text: word } }, 100);
    }
    expect(fold.view()).toMatchObject({
      text: '',
      parts: [],
      todos: [{ content: 'second', status: 'pending' }],
      notice: { kind: 'retry', text: 'second' },
    });
    expect(fold.rows()).toEqual([]);
  });
});

describe('the usage of a run', () => {
  it('[EV4] sums the tokens of its steps and keeps the context of the last', () => {
    const fold = createFold(RUN);
    expect(fold.usage()).toBeNull();
    for (const event of [
      usage(1, 2, { context_used: 10, context_length: 100 }),
      usage(3, 4, { cached_tokens: 5, cost_usd: 0.5 }),
      usage(5, 6, { cached_tokens: 7, context_used: 30, reasoning_tokens: 1 }),
    ]) {
      fold.apply(event, 100);
    }
    expect(fold.usage()).toEqual({
      input_tokens: 9,
      output_tokens: 12,
      cached_tokens: 12,
      reasoning_tokens: 1,
      cost_usd: 0.5,
      context_used: 30,
      context_length: 100,
    });
  });

  it('[EV4] has no field that no step had, and leaves the steps alone', () => {
    const first: Usage = { input_tokens: 1, output_tokens: 1 };
    const total = addUsage(addUsage(null, first), { input_tokens: 2, output_tokens: 3 });
    expect(total).toEqual({ input_tokens: 3, output_tokens: 4 });
    expect(Object.keys(total)).toEqual(['input_tokens', 'output_tokens']);
    expect(first).toEqual({ input_tokens: 1, output_tokens: 1 });
  });
});

describe('any sequence of events', () => {
  const id = fc.constantFrom('t1', 't2', 't3');
  const words = fc.string({ unit: 'grapheme', maxLength: 4 });
  const event: fc.Arbitrary<RunEvent> = fc.oneof(
    fc.constant(message),
    words.map(text),
    words.map(reasoning),
    id.map((name) => call(name)),
    fc.tuple(id, fc.boolean()).map(([name, bad]) => result(name, bad)),
    fc.tuple(fc.nat(99), fc.nat(99)).map(([input, output]) => usage(input, output)),
    fc.constant<RunEvent>({ type: 'status', payload: { kind: 'k', text: 'never shown' } }),
  );
  const events = fc.array(event, { maxLength: 40, size: 'max' }).map((rest) => [start(), ...rest]);
  const end = fc.constantFrom<FoldEnd>(COMPLETE, { kind: 'interrupted' }, { kind: 'error', error: ERROR }, DEAD);
  const textsOf = (list: readonly RunEvent[], type: 'message.delta' | 'reasoning.delta'): string =>
    list.map((one) => (one.type === type ? one.payload.text : '')).join('');

  it('[EV4] gives consecutive ids, every character once in order, one row for every result', () => {
    const property = fc.property(events, end, (list, how) => {
      const all = rowsOf(list, how);
      const rows = all.filter((row) => !row.id.endsWith('.m'));
      expect(rows.map((row) => row.id)).toEqual(rows.map((_, n) => `${RUN}.${n}`));
      expect(all.length - rows.length).toBe(how.kind === 'dead' ? 1 : 0);
      const replies = rows.filter((row) => row.role === 'assistant');
      expect(replies.map((row) => row.content).join('')).toBe(textsOf(list, 'message.delta'));
      expect(replies.map((row) => row.reasoning ?? '').join('')).toBe(textsOf(list, 'reasoning.delta'));
      const results = list.flatMap((one) => (one.type === 'tool.complete' ? [one.payload.tool_id] : []));
      expect(rows.filter((row) => row.role === 'tool').map((row) => row.tool_call_id)).toEqual(results);
      const started = list.flatMap((one) => (one.type === 'tool.start' ? [one.payload.tool_id] : []));
      expect(replies.flatMap((row) => row.tool_calls ?? []).map((one) => one.id)).toEqual(started);
      expect(rows[0]).toEqual(prompt);
    });
    fc.assert(property, { numRuns: 300 });
  });

  it('[EV4] gives the same rows live, read from a journal, and again', () => {
    const property = fc.property(events, end, (list, how) => {
      const rows = rowsOf(list, how);
      const read = JSON.parse(JSON.stringify(list)) as RunEvent[];
      expect(rowsOf(read, how)).toEqual(rows);
      expect(JSON.parse(JSON.stringify(rows))).toEqual(rows);
      expect(list).toEqual(read);
    });
    fc.assert(property);
  });

  it('[SU2] shows in a snapshot what its rows hold, at every moment', () => {
    const property = fc.property(events, (list) => {
      const fold = createFold(RUN);
      for (const [n, one] of list.entries()) {
        fold.apply(one, n);
        const view = fold.view();
        expect(view.text).toBe(textsOf(list.slice(0, n + 1), 'message.delta'));
        expect(view.reasoning).toBe(textsOf(list.slice(0, n + 1), 'reasoning.delta'));
      }
      const sum = list.reduce((total, one) => total + (one.type === 'usage' ? one.payload.input_tokens : 0), 0);
      expect(fold.usage()?.input_tokens ?? 0).toBe(sum);
    });
    fc.assert(property);
  });
});
