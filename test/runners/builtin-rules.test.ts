/** The pure parts of the built-in agent: its rules, its calculator, its calendar, its notes and its summaries. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { calculate } from '../../server/runners/builtin/calculator.ts';
import { answerDate } from '../../server/runners/builtin/date-answers.ts';
import { parseDateQuestion } from '../../server/runners/builtin/date-questions.ts';
import { dayNumber, dayOf, shiftDay } from '../../server/runners/builtin/dates.ts';
import { EXAMPLES } from '../../server/runners/builtin/examples.ts';
import { helpText } from '../../server/runners/builtin/help.ts';
import { type Intent, recognise } from '../../server/runners/builtin/intents.ts';
import { foldNotes } from '../../server/runners/builtin/notes.ts';
import { summariseChat, summariseText } from '../../server/runners/builtin/summarise.ts';
import { NOW } from '../support/builtin-services.ts';

describe('the rules', () => {
  it('[RU2] there are 12 examples, and the help shows each', () => {
    expect(EXAMPLES).toHaveLength(12);
    for (const { prompt } of EXAMPLES) expect(helpText()).toContain(`\`${prompt}\``);
  });

  it.each(EXAMPLES)('[RU2] the example "$prompt" is understood as $kind', ({ prompt, kind }) => {
    expect(recognise(prompt).kind).toBe(kind);
  });

  it.each<[string, Partial<Intent>]>([
    ['Hello!', { kind: 'greeting' }],
    ['thank you very much', { kind: 'thanks' }],
    ['Who are you?', { kind: 'identity' }],
    ['are you a language model?', { kind: 'identity' }],
    ['/HELP', { kind: 'command', name: 'help', rest: '' }],
    ['/demo  text ', { kind: 'command', name: 'demo', rest: 'text' }],
    ['Could you please calculate 2 + 2?', { kind: 'calculate', expression: '2 + 2' }],
    ['2+2=', { kind: 'calculate', expression: '2+2' }],
    ['calculate love', { kind: 'calculate', expression: 'love' }],
    ['what is love', { kind: 'unknown' }],
    ['1, 2, 3', { kind: 'unknown' }],
    ['remember to call Bob', { kind: 'note_add', text: 'call Bob' }],
    ['Note: first\nsecond', { kind: 'note_add', text: 'first\nsecond' }],
    ['forget note #3', { kind: 'note_remove', number: 3 }],
    ['delete all my notes', { kind: 'note_remove', number: 'all' }],
    ['find "tax return" in my chats', { kind: 'search_chats', query: 'tax return' }],
    ['search for tax 2025', { kind: 'search_chats', query: 'tax 2025' }],
    ['find TODO in files', { kind: 'search_files', query: 'TODO' }],
    ['which files contain "a b"?', { kind: 'search_files', query: 'a b' }],
    ['ls src/core', { kind: 'list_files', path: 'src/core' }],
    ['list files in src', { kind: 'list_files', path: 'src' }],
    ['cat LICENSE', { kind: 'read_file', path: 'LICENSE', offset: 1 }],
    ['show me src/a.ts from line 200', { kind: 'read_file', path: 'src/a.ts', offset: 200 }],
    ['read "my file.txt"', { kind: 'read_file', path: 'my file.txt', offset: 1 }],
    ['read me a story', { kind: 'unknown' }],
    ['open the pod bay doors', { kind: 'unknown' }],
    ['can you summarise this conversation please?', { kind: 'summarise_chat', chat: null }],
    ['summarize the chat called "Holiday plans"', { kind: 'summarise_chat', chat: 'Holiday plans' }],
    ['summarise: One. Two.', { kind: 'summarise_text', text: 'One. Two.' }],
    ['which models are there?', { kind: 'list_models' }],
    ['how to use ollama', { kind: 'help_model' }],
    ['about this server', { kind: 'server' }],
    ['what can you do?', { kind: 'help' }],
    ['write me a poem about Rome', { kind: 'unknown' }],
    ['', { kind: 'unknown' }],
  ])('[RU2] %j means %j', (prompt, intent) => {
    expect(recognise(prompt)).toMatchObject(intent);
  });

  // What takes the square of their length for texts of this size does not end within the time of a test.
  it('[RU2] any prompt is understood as something, and soon', () => {
    const long = ['please ', 'find ', 'days from ', 'in ', '(', '-', 'note ', ' ', 'a.', '\n'].map((part) =>
      part.repeat(Math.floor(1_000_000 / part.length)),
    );
    for (const prompt of [...long, ...long.map((text) => text.slice(0, 999))]) {
      expect(recognise(prompt).kind).toBeTypeOf('string');
    }
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => typeof recognise(text).kind === 'string'));
  });
});

describe('the calculator', () => {
  it.each([
    ['1 + 2 * 3', '7'],
    ['(1 + 2) * 3', '9'],
    ['-2 ^ 2', '-4'],
    ['2 ^ 3 ^ 2', '512'],
    ['2 ^ -1', '0.5'],
    ['10 % 3', '1'],
    ['15% of 80', '12'],
    ['200 + 10%', '220'],
    ['200 - 10%', '180'],
    ['5%', '0.05'],
    ['0.1 + 0.2', '0.3'],
    ['.5 * 4', '2'],
    ['1,234.5 * 2', '2469'],
    ['max(1, 2, 3) - min(4, 5)', '-1'],
    ['max(1,000)', '1'],
    ['sqrt(2) ^ 2', '2'],
    ['square root of 16', '4'],
    ['round(1.005, 2)', '1.01'],
    ['round(-2.5)', '-3'],
    ['round(0.0000001)', '0'],
    ['abs(-3)', '3'],
    ['12 divided by 4 plus 1', '4'],
    ['3 × 4 − 2', '10'],
    ['2 ^ 60', 'about 1152921504610000000'],
    ['0 * -1', '0'],
  ])('[RU2] %s is %s', (expression, text) => {
    expect(calculate(expression)).toMatchObject({ ok: true, text });
  });

  it.each([
    ['1 / 0', /zero/],
    ['1 % 0', /zero/],
    ['0 ^ -1', /zero/],
    ['sqrt(-1)', /negative/],
    ['(-8) ^ 0.5', /negative/],
    ['2 ^ 99999', /too large/],
    ['1 +', /ends too early/],
    ['(1 + 2', /`\)` is missing/],
    ['1 2', /did not expect/],
    ['1..2', /malformed/],
    ['', /nothing/],
    ['process.exit(1)', /do not know "process"/],
    ['constructor(1)', /do not know "constructor"/],
    ['3 of 4', /percentage/],
    ['min', /parentheses/],
    ['sqrt(1, 2)', /at most 1/],
    ['round(1, 99)', /decimal places/],
    ['1 & 2', /not arithmetic/],
  ])('[RU2] %s is a clear error', (expression, problem) => {
    const calculation = calculate(expression);
    expect(calculation.ok ? calculation.text : calculation.problem).toMatch(problem);
  });

  it('[RU2] an expression that is too deep or too long is a clear error', () => {
    expect(calculate(`${'('.repeat(500)}1${')'.repeat(400)}`)).toMatchObject({
      problem: expect.stringContaining('too many parentheses'),
    });
    expect(calculate(`1${'^1'.repeat(200)}`)).toMatchObject({ problem: expect.stringContaining('too many powers') });
    expect(calculate(`1${'+1'.repeat(600)}`)).toMatchObject({ problem: expect.stringContaining('too long') });
  });

  it('[RU2] agrees with the machine on sums and products of whole numbers, and never throws', () => {
    const small = fc.integer({ min: -1000, max: 1000 });
    fc.assert(
      fc.property(small, small, small, (a, b, c) => {
        expect(calculate(`(${a}) + (${b}) * (${c})`)).toMatchObject({ ok: true, value: a + b * c });
      }),
    );
    const pieces = fc.constantFrom('1', '20', '.5', '+', '-', '*', '/', '%', '^', '(', ')', ',', 'sqrt', 'max', ' of ');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        const calculation = calculate(parts.join(''));
        expect(calculation.ok ? Number.isFinite(calculation.value) : calculation.problem.length > 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the calendar', () => {
  const ask = (text: string, zone = 'Europe/Berlin', now = NOW) => {
    const question = parseDateQuestion(text);
    if (!question) return 'not understood';
    const answer = answerDate(question, now, zone);
    return answer.ok ? answer.text : answer.problem;
  };

  it.each([
    ['what time is it now', /\*\*14:00:02\*\* on Tuesday, 3 March 2026 \(Europe\/Berlin\), which is 13:00:02 UTC/],
    ["what's the date today", /Tuesday, 3 March 2026/],
    ['what day is 2026-12-24', /Thursday, 24 December 2026.*in 296 days/],
    ['2000-02-29', /Tuesday, 29 February 2000/],
    ['what weekday was 14 July 1789', /Tuesday, 14 July 1789/],
    ['days until 2027-01-01', /\*\*304 days\*\*.*43 weeks and 3 days/],
    ['how many days until december 24', /296 days/],
    ['days since 2026-03-01', /2 days\*\* ago/],
    ['days between 2024-02-28 and 2024-03-01', /\*\*2 days\*\*/],
    ['in 3 weeks', /Tuesday, 24 March 2026/],
    ['what date is in a month', /Friday, 3 April 2026/],
    ['3 days ago', /Saturday, 28 February 2026/],
    ['in two hours', /\*\*16:00:02\*\*/],
    ['when is friday', /Friday, 6 March 2026.*in 3 days/],
    ['when is tuesday', /Tuesday, 10 March 2026/],
    ['what is tomorrow', /Wednesday, 4 March 2026.*tomorrow/],
    ['what day is 2026-02-30', /There is no 30 February 2026/],
    ['days until 30 february', /There is no 30 February/],
    ['2026-13-01', /no month 13/],
    ['in 999999999 years', /years 1 to 9999/],
    ['in 999999999 hours', /years 1 to 9999|it will be/],
    ['how long to cook eggs', /not understood/],
    ['tomorrow never dies', /not understood/],
  ])('[RU2] %s', (text, answer) => {
    expect(ask(text)).toMatch(answer);
  });

  it('[RU2] today is the day in the zone of the server', () => {
    const lateEvening = Date.UTC(2026, 2, 3, 23, 30) / 1000;
    expect(ask('what day is it', 'Asia/Tokyo', lateEvening)).toContain('Wednesday, 4 March 2026');
    expect(ask('what day is it', 'UTC', lateEvening)).toContain('Tuesday, 3 March 2026');
    expect(ask('what time is it', 'UTC', lateEvening)).toBe('It is **23:30:00** on Tuesday, 3 March 2026 (UTC).');
  });

  it('[RU2] a month that is too short ends on its last day; days are numbered without a gap', () => {
    expect(shiftDay({ year: 2026, month: 1, day: 31 }, 1, 'month')).toEqual({ year: 2026, month: 2, day: 28 });
    expect(shiftDay({ year: 2024, month: 2, day: 29 }, 1, 'year')).toEqual({ year: 2025, month: 2, day: 28 });
    expect(shiftDay({ year: 2026, month: 1, day: 15 }, -13, 'month')).toEqual({ year: 2024, month: 12, day: 15 });
    expect(dayNumber({ year: 99, month: 1, day: 1 })).toBeLessThan(dayNumber({ year: 1900, month: 1, day: 1 })!);
    fc.assert(
      fc.property(fc.integer({ min: -719_162, max: 2_932_896 }), (number) => {
        expect(dayNumber(dayOf(number)!)).toBe(number);
      }),
    );
  });
});

describe('notes', () => {
  const call = (id: string, name: string, args: unknown): Message => ({
    id,
    role: 'assistant',
    content: '',
    timestamp: NOW,
    tool_calls: [
      {
        id: 'c1',
        type: 'function',
        function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
      },
    ],
  });
  const result = (is_error = false): Message => ({
    id: 'r',
    role: 'tool',
    content: 'x',
    timestamp: NOW,
    tool_call_id: 'c1',
    ...(is_error ? { is_error } : {}),
  });
  const add = (text: string) => [call('a', 'notes_add', { text }), result()];
  const remove = (number: number) => [call('b', 'notes_remove', { number }), result()];
  const texts = (history: Message[]) => foldNotes(history).notes.map(({ number, text }) => `${number} ${text}`);

  it('[RU2] are the fold of the calls in the transcript; a number is not given again', () => {
    expect(texts([...add('a'), ...add('b'), ...remove(2), ...add('c')])).toEqual(['1 a', '3 c']);
    expect(texts([...add('a'), call('b', 'notes_remove', { all: true }), result(), ...add('b')])).toEqual(['2 b']);
  });

  it('[RU2] a call without a result, with a failed one, or with damaged arguments is no note', () => {
    expect(texts([call('a', 'notes_add', { text: 'lost' })])).toEqual([]);
    expect(texts([call('a', 'notes_add', { text: 'failed' }), result(true)])).toEqual([]);
    expect(texts([call('a', 'notes_add', '{"text'), result(), call('b', 'notes_add', 'null'), result()])).toEqual([]);
    expect(texts([call('a', 'notes_add', { text: 7 }), result(), ...add('good'), ...remove(9)])).toEqual(['1 good']);
  });

  it('[RU2] the result is looked for behind the call itself: tool ids repeat over the runs of a session', () => {
    expect(texts([call('a', 'notes_add', { text: 'lost' }), ...add('kept')])).toEqual(['1 kept']);
  });
});

describe('summaries', () => {
  const row = (role: 'user' | 'assistant', content: string, part: Partial<Message> = {}): Message => ({
    id: content.slice(0, 8),
    role,
    content,
    timestamp: NOW,
    ...part,
  });

  it('[RU2] take whole sentences of the text, those with the words that it repeats, in their order', () => {
    const text =
      'The ferry to the island was late. I had a coffee. The ferry company said the island harbour was closed by the storm. ' +
      'My coffee was cold. A second ferry reached the island harbour after the storm. Blue is a colour.';
    const { lines, weighed } = summariseText(text, 3);
    expect(weighed).toBe(6);
    expect(lines.map(({ sentence }) => sentence)).toEqual([
      'The ferry to the island was late.',
      'The ferry company said the island harbour was closed by the storm.',
      'A second ferry reached the island harbour after the storm.',
    ]);
  });

  it('[RU2] leave out code, tables, repetitions, failed turns, commands and earlier summaries', () => {
    const call = { id: 'c', type: 'function' as const, function: { name: 'summarise', arguments: '{}' } };
    const { lines } = summariseChat(
      [
        row('user', 'We plan the garden fence this spring.'),
        row(
          'assistant',
          'The garden fence needs wood.\n\n```\ngarden fence code garden fence\n```\n| garden | fence |',
        ),
        row('user', 'We plan the garden fence this spring!'),
        row('assistant', 'The garden fence failed.', { status: 'error' }),
        row('user', '/demo garden fence'),
        row('assistant', '', { run_id: 's', tool_calls: [call] }),
        row('assistant', 'The garden fence in summary.', { run_id: 's' }),
      ],
      5,
    );
    expect(lines).toEqual([
      { who: 'user', sentence: 'We plan the garden fence this spring.' },
      { who: 'assistant', sentence: 'The garden fence needs wood.' },
    ]);
  });

  it('[RU2] are bounded: a huge chat is weighed in part, and soon, and it is said', () => {
    for (const part of ['Some words about nothing much. ', '\n', '| ', 'x', '. ']) {
      const { cut } = summariseChat([row('user', part.repeat(Math.floor(2_000_000 / part.length)))], 5);
      expect(cut).toBe(true);
    }
    expect(summariseChat([], 5)).toEqual({ lines: [], weighed: 0, cut: false });
  });
});
