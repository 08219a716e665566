/** Journals of version 1, which another program wrote: the rows of their run, how it ended, and its error. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ForeignRun, foldForeign } from '../../server/core/foreign-journal/fold-foreign.ts';
import { parseForeign } from '../../server/core/foreign-journal/records.ts';
import type { Message } from '../../server/core/terms.ts';
import { testSeed } from '../support/random.ts';

const SESSION = '20260303_130002_abcdef';
const RUN = '7c8b4108d52b4aba9af362d3a54f47ac';
const PLACE = { sessionId: SESSION, runId: RUN };

type Event = [event: string, payload?: object, line?: object];
type Line = Record<string, unknown>;

/** The lines of a run: one second apart, the first at 101. */
const linesOf = (events: readonly Event[]): Line[] =>
  events.map(([event, payload = {}, line = {}], n) => ({
    version: 1,
    event_id: `${RUN}:${n + 1}`,
    seq: n + 1,
    run_id: RUN,
    session_id: SESSION,
    event,
    type: event,
    created_at: 101 + n,
    terminal: false,
    terminal_state: null,
    payload,
    ...line,
  }));
const read = (...events: Event[]): ForeignRun => foldForeign(linesOf(events), PLACE);

const token = (text: string): Event => ['token', { text }];
const thought = (text: string): Event => ['reasoning', { text }];
const interim = (text: string, already_streamed = false): Event => ['interim_assistant', { text, already_streamed }];
const tool = (name: string, part: object = {}): Event => ['tool', { name, preview: `${name} it`, args: {}, ...part }];
const finished = (name: string, part: object = {}): Event => [
  'tool_complete',
  { name, preview: `${name} said`, duration: 0.5, is_error: false, ...part },
];
const done: Event = ['done', {}, { terminal: true, terminal_state: 'completed' }];
const cancel: Event = ['cancel', {}, { terminal: true, terminal_state: 'interrupted-by-user' }];
const streamEnd: Event = ['stream_end', {}, { terminal: true, terminal_state: 'completed' }];

const reply = (n: number, timestamp: number, content: string, part: Partial<Message> = {}): Message => ({
  id: `${RUN}.${n}`,
  role: 'assistant',
  content,
  timestamp,
  run_id: RUN,
  status: 'complete',
  recovered: true,
  ...part,
});
const result = (n: number, timestamp: number, id: string, name: string, part: Partial<Message> = {}): Message => ({
  id: `${RUN}.${n}`,
  role: 'tool',
  content: `${name} said`,
  timestamp,
  run_id: RUN,
  status: 'complete',
  tool_call_id: id,
  name,
  duration_s: 0.5,
  recovered: true,
  ...part,
});
const calls = (...list: [id: string, name: string, args?: object][]): Pick<Message, 'tool_calls'> => ({
  tool_calls: list.map(([id, name, args = {}]) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  })),
});
const PARTIAL = { status: 'partial' } as const;

describe('the rows of a foreign run', () => {
  const table: [what: string, events: Event[], rows: Message[]][] = [
    ['nothing', [], []],
    ['nothing but an end', [done, streamEnd], []],
    ['tokens are one text', [token('Hel'), token(''), token('lo'), done], [reply(1, 101, 'Hello')]],
    ['an emoji cut between two tokens', [token('a\ud83d'), token('\ude00'), done], [reply(1, 101, 'a\u{1F600}')]],
    ['signs that cannot be stored', [token('a\ud83d \0'), done], [reply(1, 101, 'a\uFFFD \uFFFD')]],
    [
      'a text that goes on behind an end is another',
      [token('a'), ['error'], token('b'), done],
      [reply(1, 101, 'a'), reply(2, 103, 'b')],
    ],
    ['a text whose end never came', [token('Hel')], [reply(1, 101, 'Hel', PARTIAL)]],
    ['a text that was cancelled', [token('Hel'), cancel], [reply(1, 101, 'Hel', PARTIAL)]],
    [
      'an interim text that was streamed only ends it',
      [token('a'), interim('a', true), token('b'), done],
      [reply(1, 101, 'a'), reply(2, 103, 'b')],
    ],
    [
      'an interim text that was not streamed joins it with a blank line',
      [token('a'), interim('more'), interim('alone'), done],
      [reply(1, 101, 'a\n\nmore'), reply(2, 103, 'alone')],
    ],
    [
      'what an interim text ended is whole, although the run is not',
      [token('a'), interim('a', true)],
      [reply(1, 101, 'a')],
    ],
    [
      'reasoning belongs to the row that follows',
      [thought('h'), thought('m'), token('a'), interim('', true), thought('so'), token('b'), done],
      [reply(1, 101, 'a', { reasoning: 'hm' }), reply(2, 105, 'b', { reasoning: 'so' })],
    ],
    ['reasoning alone', [thought('hm'), done], [reply(1, 101, '', { reasoning: 'hm' })]],
    ['blanks alone', [token('\n'), token(' '), thought('\n'), interim('  '), done], []],
    [
      'a tool joins the text before it',
      [
        token('look:'),
        tool('ls', { tid: 't1', args: { path: '.' } }),
        finished('ls', { tid: 't1' }),
        token('so'),
        done,
      ],
      [reply(1, 101, 'look:', calls(['t1', 'ls', { path: '.' }])), result(2, 103, 't1', 'ls'), reply(3, 104, 'so')],
    ],
    [
      'a tool joins also a text that an interim line ended',
      [token('look:'), interim('look:', true), tool('ls'), finished('ls'), done],
      [reply(1, 101, 'look:', calls(['journal-3', 'ls'])), result(2, 104, 'journal-3', 'ls')],
    ],
    [
      'a tool without an id has that of its line',
      [token('a'), tool('ls'), token('b'), done],
      [reply(1, 101, 'a', calls(['journal-2', 'ls'])), reply(2, 103, 'b')],
    ],
    [
      'tools before any text share one empty row',
      [tool('ls'), finished('ls'), token('\n\n'), tool('cat'), finished('cat'), token('so'), done],
      [
        reply(1, 101, '', calls(['journal-1', 'ls'], ['journal-4', 'cat'])),
        result(2, 102, 'journal-1', 'ls'),
        result(3, 105, 'journal-4', 'cat'),
        reply(4, 106, 'so'),
      ],
    ],
    [
      'a snippet is the result, a preview only where there is none; arguments are what can be stored',
      [tool('ls', { args: { '\0': 'a\ud83d' } }), finished('ls', { snippet: 'all of it' }), done],
      [
        reply(1, 101, '', calls(['journal-1', 'ls', { '\uFFFD': 'a\uFFFD' }])),
        result(2, 102, 'journal-1', 'ls', { content: 'all of it' }),
      ],
    ],
    [
      'reasoning between two tools makes a row',
      [thought('1'), tool('ls'), finished('ls'), thought('2'), tool('cat'), finished('cat'), done],
      [
        reply(1, 101, '', { reasoning: '1', ...calls(['journal-2', 'ls']) }),
        result(2, 103, 'journal-2', 'ls'),
        reply(3, 104, '', { reasoning: '2', ...calls(['journal-5', 'cat']) }),
        result(4, 106, 'journal-5', 'cat'),
      ],
    ],
    [
      'a result that comes while the next text runs stands before that text',
      [tool('ls'), token('mean'), finished('ls'), token('while'), done],
      [reply(1, 101, '', calls(['journal-1', 'ls'])), result(2, 103, 'journal-1', 'ls'), reply(3, 102, 'meanwhile')],
    ],
    [
      'a result without an id is of the latest open call of its name',
      [
        tool('ls'),
        tool('ls'),
        tool('cat'),
        finished('ls', { preview: 'second' }),
        finished('ls', { preview: 'first' }),
      ],
      [
        reply(1, 101, '', calls(['journal-1', 'ls'], ['journal-2', 'ls'], ['journal-3', 'cat'])),
        result(2, 104, 'journal-2', 'ls', { content: 'second' }),
        result(3, 105, 'journal-1', 'ls', { content: 'first' }),
      ],
    ],
    [
      'a result with an id is of that call and no other',
      [
        tool('ls', { tid: 'a' }),
        tool('ls', { tid: 'b' }),
        finished('ls', { tid: 'a' }),
        finished('ls', { tid: 'a' }),
        done,
      ],
      [reply(1, 101, '', calls(['a', 'ls'], ['b', 'ls'])), result(2, 103, 'a', 'ls')],
    ],
    [
      'an id that is given twice is made different',
      [
        tool('ls', { tid: 'a' }),
        finished('ls', { tid: 'a' }),
        tool('ls', { tid: 'a' }),
        finished('ls', { tid: 'a' }),
        done,
      ],
      [reply(1, 101, '', calls(['a', 'ls'], ['a-2', 'ls'])), result(2, 102, 'a', 'ls'), result(3, 104, 'a-2', 'ls')],
    ],
    ['a result of no call at all is none', [token('a'), finished('ls'), done], [reply(1, 101, 'a')]],
    [
      'a result says that it failed; no length of time is invented, and none but a text is a text',
      [
        tool('ls'),
        finished('ls', { is_error: true, duration: undefined }),
        tool('cat'),
        finished('cat', { preview: 7 }),
        done,
      ],
      [
        reply(1, 101, '', calls(['journal-1', 'ls'], ['journal-3', 'cat'])),
        (({ duration_s: _, ...row }) => row)(result(2, 102, 'journal-1', 'ls', { is_error: true })),
        result(3, 104, 'journal-3', 'cat', { content: '' }),
      ],
    ],
    [
      'a call that never finished',
      [token('a'), tool('ls'), cancel],
      [reply(1, 101, 'a', { ...calls(['journal-2', 'ls']), ...PARTIAL })],
    ],
    [
      'a call that never finished, of a text that was whole',
      [token('a'), interim('a', true), tool('ls')],
      [reply(1, 101, 'a', { ...calls(['journal-3', 'ls']), ...PARTIAL })],
    ],
    [
      'a call that had its result',
      [token('a'), tool('ls'), finished('ls')],
      [reply(1, 101, 'a', calls(['journal-2', 'ls'])), result(2, 103, 'journal-2', 'ls')],
    ],
    [
      'what is no output',
      [
        ['metering', { tps: 1 }],
        token('a'),
        ['title', { text: 'no' }],
        ['todo_state', {}],
        token('b'),
        done,
        streamEnd,
      ],
      [reply(1, 102, 'ab')],
    ],
  ];

  it.each(table)('[JO5] %s', (_, events, rows) => {
    const run = read(...events);
    expect(run.rows).toStrictEqual(rows);
  });

  it('[JO5][RE1] the same lines give the same rows, and are left as they were', () => {
    const lines = linesOf(table.flatMap(([, events]) => events));
    const before = structuredClone(lines);
    expect(foldForeign(lines, PLACE)).toStrictEqual(foldForeign(structuredClone(lines), PLACE));
    expect(lines).toEqual(before);
  });
});

describe('whose line it is', () => {
  const foreign: [what: string, line: object][] = [
    ['of another session', { session_id: 'other' }],
    ['of another run', { run_id: 'f'.repeat(32), event_id: `${'f'.repeat(32)}:2` }],
    ['of another run with an id of this one', { run_id: 'f'.repeat(32) }],
    ['with an id that is not its own', { event_id: `${RUN}:3` }],
    ['without an id', { event_id: undefined }],
    ['numbered with true', { seq: true, event_id: `${RUN}:true` }],
    ['numbered with text', { seq: '2' }],
    ['numbered 0', { seq: 0, event_id: `${RUN}:0` }],
    ['numbered between', { seq: 1.5, event_id: `${RUN}:1.5` }],
    ['without an event', { event: undefined, type: 7 }],
    ['of version 2', { version: 2 }],
  ];

  it.each(foreign)('[JO5] a line %s is passed over', (_, line) => {
    const run = read(token('a'), ['token', { text: 'FOREIGN' }, line], token('b'), ['cancel', {}, line]);
    expect(run.rows).toStrictEqual([reply(1, 101, 'ab', PARTIAL)]);
    expect(run.terminal).toBeNull();
  });

  it('[JO5] what is no line at all is passed over', () => {
    const lines = [null, 7, 'token', [], ...linesOf([token('a'), ['token', undefined, { payload: ['x'] }], done])];
    expect(foldForeign(lines, PLACE).rows).toStrictEqual([reply(1, 101, 'a')]);
  });
});

describe('how a foreign run ended', () => {
  const bare = (event: string, payload: object = {}): Event => [event, payload, { terminal_state: undefined }];
  const stated = (event: string, terminal_state: string): Event => [event, {}, { terminal: true, terminal_state }];

  const table: [what: string, events: Event[], terminal: ForeignRun['terminal']][] = [
    ['no terminal line', [token('a')], null],
    ['stream_end alone', [token('a'), streamEnd], 'completed'],
    ['stream_end alone, whatever it says', [stated('stream_end', 'errored')], 'completed'],
    ['stream_end does not hide what went before', [cancel, streamEnd], 'interrupted-by-user'],
    ['the last one counts', [stated('apperror', 'errored'), done, streamEnd], 'completed'],
    ['also when it is the worse one', [done, streamEnd, stated('apperror', 'errored')], 'errored'],
    ['a state of its own', [stated('apperror', 'interrupted-by-crash')], 'interrupted-by-crash'],
    ['the limit of tools', [stated('done', 'tool_limit_reached')], 'tool_limit_reached'],
    [
      'the limit of tools in the payload',
      [bare('done', { terminal_state: 'tool_limit_reached' })],
      'tool_limit_reached',
    ],
    ['a state that nobody knows', [stated('done', 'exploded')], 'completed'],
    ['done', [bare('done')], 'completed'],
    ['cancel', [bare('cancel')], 'interrupted-by-user'],
    ['error', [bare('error')], 'errored'],
    ['an error that was a cancel', [bare('apperror', { type: 'cancelled' })], 'interrupted-by-user'],
    ['an error that was a crash', [bare('apperror', { type: 'interrupted' })], 'interrupted-by-crash'],
    ['an error of the limit of tools', [bare('apperror', { type: 'tool_limit_reached' })], 'tool_limit_reached'],
    ['an error that somebody named toString', [bare('apperror', { type: 'toString' })], 'errored'],
    ['a line that only says that it is terminal', [['token', { text: 'a' }, { terminal: true }]], null],
  ];

  it.each(table)('[JO5] %s', (_, events, terminal) => {
    expect(read(...events).terminal).toBe(terminal);
  });
});

describe('the error of a foreign run', () => {
  const words = '**Rate limited.** Try again in a minute.';
  const transcript = [
    { role: 'user', content: 'old' },
    { role: 'assistant', content: 'Old failure.', _error: true },
    { role: 'user', content: 'the prompt' },
    { role: 'assistant', content: 'said before' },
    { role: 'assistant', content: words, _error: true, timestamp: 150 },
    { role: 'tool', content: 'late' },
  ];
  const apperror = (part: object = {}, session: object = {}, line: object = {}): Event => [
    'apperror',
    {
      type: 'rate_limit',
      message: 'not these words',
      session_id: SESSION,
      session: { session_id: SESSION, messages: transcript, ...session },
      ...part,
    },
    { terminal: true, terminal_state: 'errored', ...line },
  ];
  const ending = (row: object) => [...transcript.slice(0, 3), row];

  it('[JO5][RE4] keeps its own words, in the place of the marker', () => {
    const error = { code: 'rate_limited', message: words, retryable: true } as const;
    const run = read(token('a'), apperror(), streamEnd);
    expect(run.rows).toStrictEqual([reply(1, 101, 'a', PARTIAL)]);
    expect(run.terminal).toBe('errored');
    expect(run.error).toStrictEqual({
      error,
      row: {
        id: `${RUN}.m`,
        role: 'assistant',
        content: words,
        timestamp: 150,
        run_id: RUN,
        status: 'error',
        recovered: true,
        error,
      },
    });
    expect(read(apperror()).rows).toEqual([]);
  });

  const none: [what: string, events: Event[]][] = [
    ['another session', [apperror({ session_id: 'other' })]],
    ['no session', [apperror({ session_id: undefined })]],
    ['a transcript of another session', [apperror({}, { session_id: 'other' })]],
    ['no transcript', [apperror({ session: null })]],
    ['no messages', [apperror({}, { messages: 'none' })]],
    ['a line of another run', [apperror({}, {}, { event_id: `${RUN}:9` })]],
    ['words that were stored already', [apperror({ terminal_session_persisted: true })]],
    ['a reply that is no error', [apperror({}, { messages: ending({ role: 'assistant', content: words }) })]],
    [
      'an error that is not said to be one',
      [apperror({}, { messages: ending({ role: 'assistant', content: words, _error: 1 }) })],
    ],
    ['an error without words', [apperror({}, { messages: ending({ role: 'assistant', content: ' ', _error: true }) })]],
    ['only an older error', [apperror({}, { messages: transcript.slice(0, 3) })]],
    ['an end that came after it', [apperror(), done]],
    ['an error event of another kind', [['error', apperror()[1]]]],
  ];

  it.each(none)('[JO5] %s: there is none', (_, events) => {
    expect(read(...events).error).toBeNull();
  });

  it('[JO5] is read also where it was not stored, behind stream_end, in parts, and without a time', () => {
    const row = {
      role: 'assistant',
      content: [
        { type: 'text', text: 'It ' },
        { type: 'text', text: 'broke.' },
      ],
      _error: true,
    };
    const run = read(streamEnd, apperror({ terminal_session_persisted: false }, { messages: [row] }));
    expect(run.error?.row).toMatchObject({ content: 'It broke.', timestamp: 102 });
  });

  it('[JO5] has one of our codes, whatever its type is', () => {
    const table: [type: unknown, code: string, retryable: boolean][] = [
      ['quota_exhausted', 'quota', false],
      ['auth_mismatch', 'auth', false],
      ['gateway_auth_error', 'auth', false],
      ['credential_pool_empty', 'auth', false],
      ['model_not_found', 'model_not_found', false],
      ['compression_exhausted', 'context_too_long', false],
      ['no_response', 'empty_reply', true],
      ['tool_limit_reached', 'provider_error', false],
      ['cancelled', 'interrupted', true],
      ['interrupted', 'interrupted', true],
      ['error', 'provider_error', true],
      ['toString', 'provider_error', true],
      [undefined, 'provider_error', true],
    ];
    for (const [type, code, retryable] of table) {
      expect(read(apperror({ type })).error?.error, String(type)).toEqual({ code, message: words, retryable });
    }
  });
});

describe('the text of a foreign journal', () => {
  const events = [
    token('ü "quoted"\n'),
    thought('hm'),
    tool('ls', { args: { seq: 1 } }),
    finished('ls'),
    token('\u{1F600}'),
    done,
  ];
  const lines = linesOf(events);
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const there = (records: unknown[], version: number | null = 1) => ({ kind: 'there', version, records });

  it('[JO4][JO5] cut at every byte it gives every whole line before the cut, and their rows', () => {
    const bytes = Buffer.from(text);
    // A line is whole without its newline: no part of a JSON object is one.
    const ends = lines.map((_, n) =>
      Buffer.byteLength(
        lines
          .slice(0, n + 1)
          .map((line) => JSON.stringify(line))
          .join('\n'),
      ),
    );
    for (let cut = 1; cut <= bytes.length; cut += 1) {
      const whole = ends.filter((end) => end <= cut).length;
      const cutText = parseForeign(bytes.toString('utf8', 0, cut));
      expect(cutText, `cut at ${cut}`).toEqual(there(lines.slice(0, whole), whole ? 1 : null));
      const run = foldForeign(cutText.kind === 'there' ? cutText.records : [], PLACE);
      expect(run, `cut at ${cut}`).toStrictEqual(read(...events.slice(0, whole)));
    }
  });

  it('[JO5] a broken line anywhere is passed over', () => {
    const broken = ['', '{"version":1,"ev', 'null', '7', '[]', '{}', '{"version":"1"}', '\0\0\0'];
    for (const line of broken) {
      for (let n = 0; n <= lines.length; n += 1) {
        const all = lines.map((one) => JSON.stringify(one));
        all.splice(n, 0, line);
        expect(parseForeign(`${all.join('\n')}\n`), `${line} as line ${n}`).toEqual(there(lines));
      }
    }
  });

  it('[JO5] its first good line says of what version it is; none but version 1 is read', () => {
    expect(parseForeign(`broken\n{"version":2}\n${text}`)).toEqual(there([], 2));
    expect(parseForeign(`${text}{"version":2}\n`)).toEqual(there([...lines, { version: 2 }]));
    expect(parseForeign('{"version":3}\n')).toEqual(there([], 3));
    expect(parseForeign('\0\0\0')).toEqual(there([], null));
  });

  it('[JO5] one without a letter is empty', () => {
    for (const blank of ['', '\n', ' \r\n\t\n']) expect(parseForeign(blank)).toEqual({ kind: 'empty' });
  });
});

describe('any lines at all', () => {
  const seed = testSeed();
  const EVENTS = [
    'token',
    'reasoning',
    'interim_assistant',
    'tool',
    'tool_complete',
    'done',
    'cancel',
    'apperror',
    'error',
    'stream_end',
    'metering',
  ];
  const words = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 4 }),
    fc.constantFrom('', ' ', '\n', '\ud83d', '\ude00'),
  );
  const payload = fc.record(
    {
      text: words,
      already_streamed: fc.boolean(),
      name: fc.constantFrom('ls', 'cat'),
      tid: fc.constantFrom('', 'a', 'b'),
      args: fc.constantFrom<unknown>({}, { path: '.' }, null, 'x'),
      preview: words,
      duration: fc.constantFrom<unknown>(0.5, null, -1),
      is_error: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  const event: fc.Arbitrary<Event> = fc
    .tuple(
      fc.constantFrom(...EVENTS),
      payload,
      fc.constantFrom({}, {}, {}, { session_id: 'other' }, { created_at: null }),
    )
    .map(([name, value, line]) => [name, value, line]);
  const events = fc.array(event, { maxLength: 30, size: 'max' });
  /** The last assistant row and what stands behind it may still grow; what is before is closed. */
  const closed = (rows: readonly Message[]): readonly Message[] =>
    rows.slice(
      0,
      Math.max(
        0,
        rows.findLastIndex((row) => row.role === 'assistant'),
      ),
    );

  it(`[JO5][RE1] never throw, and never change a row that was closed (seed ${seed})`, () => {
    const property = fc.property(events, (list) => {
      const { rows } = read(...list);
      for (let n = 0; n < list.length; n += 1) {
        const before = closed(read(...list.slice(0, n)).rows);
        expect(rows.slice(0, before.length)).toStrictEqual(before);
      }
    });
    fc.assert(property, { numRuns: 300, seed });
  });

  it(`[JO5] give rows that can be stored: ids in order, results behind their calls, every visible sign once (seed ${seed})`, () => {
    const property = fc.property(events, (list) => {
      const { rows } = read(...list);
      expect(rows.map((row) => row.id)).toEqual(rows.map((_, n) => `${RUN}.${n + 1}`));
      const called: string[] = [];
      for (const row of rows) {
        expect(row.recovered).toBe(true);
        expect(`${row.content}${row.reasoning ?? ''}`.isWellFormed()).toBe(true);
        if (row.role === 'tool') expect(called).toContain(row.tool_call_id);
        for (const call of row.tool_calls ?? []) called.push(call.id);
        if (row.role === 'assistant') expect(row.content || row.reasoning || row.tool_calls).toBeTruthy();
      }
      expect(new Set(called).size).toBe(called.length);
      expect(JSON.parse(JSON.stringify(rows))).toStrictEqual(rows);

      const own = list.filter(([, , line]) => !(line && 'session_id' in line));
      const said = own.map(([name, value]) => {
        const { text = '', already_streamed } = value as { text?: string; already_streamed?: boolean };
        return name === 'token' || (name === 'interim_assistant' && !already_streamed) ? text : '';
      });
      // Halves of a pair that met are one sign, those that did not are replaced: neither is counted here.
      const visible = (text: string): string => text.replaceAll(/[\s\ud800-\udfff\uFFFD]/g, '');
      const replies = rows.filter((row) => row.role === 'assistant');
      expect(visible(replies.map((row) => row.content).join(''))).toBe(visible(said.join('')));
      expect(called.length).toBe(own.filter(([name]) => name === 'tool').length);
    });
    fc.assert(property, { numRuns: 300, seed });
  });

  it(`[JO5] of any JSON never throw (seed ${seed})`, () => {
    const any = fc.array(fc.tuple(fc.constantFrom(...EVENTS), fc.jsonValue(), fc.jsonValue()), { maxLength: 12 });
    const property = fc.property(any, (list) => {
      const lines = linesOf(list.map(([name, value, state]) => [name, {}, { payload: value, terminal_state: state }]));
      expect(foldForeign(lines, PLACE).rows).toEqual(foldForeign(JSON.parse(JSON.stringify(lines)), PLACE).rows);
    });
    fc.assert(property, { seed });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(['empty', 'there']).toContain(parseForeign(text).kind);
      }),
      { seed },
    );
  });
});
