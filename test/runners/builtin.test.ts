/** The built-in agent as a whole: what it answers, with which tools, and its demonstrations. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { EXAMPLES } from '../../server/runners/builtin/examples.ts';
import { createBuiltinRunner } from '../../server/runners/builtin/runner.ts';
import type { BuiltinServices, ChatHit } from '../../server/runners/builtin/services.ts';
import { wordsOf } from '../../server/runners/builtin/speech.ts';
import type { Answer, RunnerEvent, Turn } from '../../server/runners/runner.ts';
import { builtinServices, NOW, realSleep } from '../support/builtin-services.ts';
import { RUN_ID, rowsOf, runTurn } from '../support/turns.ts';

const run = (turn: Partial<Turn>, services: Partial<BuiltinServices> = {}, signal?: AbortSignal) =>
  runTurn(createBuiltinRunner(builtinServices(services)), turn, signal);

const ask = async (input: string, services: Partial<BuiltinServices> = {}) => (await run({ input }, services)).text;

type Ended = { name: string; args: unknown; result: string; is_error: boolean };

/** The tool calls of a run with their results. */
function toolsOf(events: RunnerEvent[]): Ended[] {
  return events.flatMap((event) => {
    if (event.type !== 'tool.complete') return [];
    const { tool_id, name, result, is_error } = event.payload;
    const start = events.find((each) => each.type === 'tool.start' && each.payload.tool_id === tool_id);
    return [{ name, args: start?.type === 'tool.start' ? start.payload.args : null, result, is_error }];
  });
}

const hit = (part: Partial<ChatHit>): ChatHit => ({
  session_id: '20260101_000000_aaaaaa',
  title: 'Tax return',
  message_id: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.0',
  role: 'user',
  snippet: 'the invoices are in the drawer',
  timestamp: NOW - 86_400,
  ...part,
});

describe('answers', () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'turnkeep-builtin-'));
    mkdirSync(join(root, 'src'));
    writeFileSync(join(root, 'README.md'), '# Read me\n\n```sh\nTODO\n```\n');
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  /** The tool that each of the 12 examples uses and what its answer has; null: words alone. */
  const EXPECTED: [tool: string, answer: RegExp][] = [
    ['calculate', /= \*\*12\*\*/],
    ['clock', /14:00:02.*13:00:02 UTC/],
    ['clock', /Thursday, 24 December 2026/],
    ['clock', /304 days/],
    ['notes_add', /number \*\*1\*\*: buy milk/],
    ['notes_list', /no notes/],
    ['search_chats', /Found 1 message:\n\n- \*\*Tax return\*\* \(2026-03-02, you\): the invoices/],
    ['summarise', /main sentences/],
    ['list_files', /README\.md {2}\d+ B\nsrc\//],
    ['read_file', /````\n# Read me/],
    ['search_files', /README\.md:4: TODO/],
    ['list_models', /no model is connected[\s\S]*config\.yaml[\s\S]*provider: custom/],
  ];

  it.each(EXAMPLES.map(({ prompt }, index) => [prompt, ...EXPECTED[index]!] as const))(
    '[RU2] the example "%s" is answered by the tool %s',
    async (input, tool, answer) => {
      const history: Message[] = [
        { id: 'x.0', role: 'user', content: 'We should paint the fence green.', timestamp: NOW - 60 },
      ];
      const ran = await run({ input, history, workspace: root }, { searchChats: async () => [hit({})] });
      expect(ran.end).toEqual({ kind: 'completed' });
      expect(toolsOf(ran.events)).toMatchObject([{ name: tool, is_error: false }]);
      expect(ran.text).toMatch(answer);
    },
  );

  it('[RU2] says that it is no language model: asked who it is, greeted, asked for help, and when it knows no rule', async () => {
    for (const input of ['who are you?', 'hello', '/help', 'write me a poem', '']) {
      expect(await ask(input)).toMatch(/(?:no|not a) ?\**language model/);
    }
    expect(await ask('thanks')).toBe("You're welcome!");
    expect(await ask('/nope x')).toMatch(/do not know the command `\/nope`.*`\/help`/);
    expect(await ask('about this server')).toMatch(/Turnkeep 1\.2\.3.*8787[\s\S]*\/home\/me\/\.turnkeep/);
  });

  it('[RU2] what it cannot calculate is a tool call with an error, and is said', async () => {
    const { events, text } = await run({ input: 'what is 5 / 0' });
    expect(toolsOf(events)).toEqual([
      { name: 'calculate', args: { expression: '5 / 0' }, result: 'Division by zero has no result.', is_error: true },
    ]);
    expect(text).toBe('I cannot calculate `5 / 0`: Division by zero has no result.');
  });

  it('[RU2] notes live in the transcript alone: added, listed, forgotten, whatever process answers', async () => {
    let history: Message[] = [];
    const say = async (input: string, n: number) => {
      const runId = String(n).repeat(32);
      const ran = await run({ input, history, runId });
      history = [...history, ...rowsOf(input, ran, runId, NOW)];
      return ran.text;
    };
    expect(await say('note: buy milk', 1)).toContain('**1**: buy milk');
    expect(await say('note: *call* Bob', 2)).toContain('**2**: \\*call\\* Bob');
    expect(await say('my notes', 3)).toBe('2 notes in this chat:\n\n- **1**: buy milk\n- **2**: \\*call\\* Bob');
    expect(await say('forget note 1', 4)).toContain('Forgot note **1**: buy milk');
    expect(await say('forget note 1', 5)).toContain('There is no note 1');
    expect(await say('note: third', 6)).toContain('**3**: third');
    expect(await say('my notes', 7)).toBe('2 notes in this chat:\n\n- **2**: \\*call\\* Bob\n- **3**: third');
    expect(await say('forget all notes', 8)).toBe('Forgot 2 notes.');
    expect(await say('my notes', 9)).toContain('no notes');
    expect(await say(`note: ${'x'.repeat(3000)}`, 0)).toContain('longer than 2000');
  });

  it('[RU2] a search finds other messages, not the prompt that asks', async () => {
    const own = hit({ message_id: `${RUN_ID}.0`, snippet: 'search my chats for invoices' });
    const asked: string[] = [];
    const searchChats = async (q: string) => {
      asked.push(q);
      return [own, hit({ title: '<b>*x*</b>', snippet: 'two\nlines' })];
    };
    const { text } = await run({ input: 'search my chats for invoices' }, { searchChats });
    expect(asked).toEqual(['invoices']);
    expect(text).toBe('Found 1 message:\n\n- **\\<b\\>\\*x\\*\\</b\\>** (2026-03-02, you): two lines');
    expect(await ask('search my chats for x', { searchChats: async () => [own] })).toMatch(/nothing about `x`/);
  });

  it('[RU2] a prompt without a rule offers earlier chats with its words, none of this session', async () => {
    const here = hit({ session_id: '20260303_130002_abcdef', message_id: 'h.0', title: 'Here' });
    const chats: Record<string, ChatHit[]> = {
      painting: [here, hit({ message_id: 'a.1', title: 'Fence' })],
      garden: [here, hit({ message_id: 'a.1', title: 'Fence' }), hit({ message_id: 'b.1', title: 'Tulips' })],
      fence: [here, hit({ message_id: 'a.1', title: 'Fence' })],
    };
    const searchChats = async (q: string) => chats[q] ?? [];
    const { events, text } = await run({ input: 'Which colour for painting the garden fence?' }, { searchChats });
    expect(toolsOf(events)).toMatchObject([
      { name: 'search_chats', args: { any_of: ['painting', 'colour', 'garden', 'fence'] } },
    ]);
    expect(text).toMatch(/no language model[\s\S]*some of your words:\n\n- \*\*Fence\*\*/);
    expect(text).not.toMatch(/Tulips|Here/);
    expect(await ask('Which colour for painting the garden fence?')).not.toMatch(/earlier messages/);
  });

  it('[RU2] summarises this chat, one by id, one by title, or says that there is none', async () => {
    const messages: Message[] = [
      { id: 'a.0', role: 'user', content: 'The roof leaks above the kitchen.', timestamp: 1 },
      { id: 'a.1', role: 'assistant', content: 'Call a roofer.', timestamp: 2 },
    ];
    const services: Partial<BuiltinServices> = {
      transcript: async (id) => (id === '20260101_000000_aaaaaa' ? messages : null),
      findSessionByTitle: async (title) =>
        title.toLowerCase() === 'the roof' ? { session_id: '20260101_000000_aaaaaa', title: 'The Roof' } : null,
    };
    expect(await ask('summarise', services)).toBe('There is nothing to summarise yet.');
    expect(await ask('summarise 20260101_000000_aaaaaa', services)).toMatch(
      /2 messages[\s\S]*\*\*You\*\*: The roof leaks/,
    );
    expect(await ask('summarise "the roof"', services)).toMatch(/^"The Roof" has 2 messages/);
    expect(await ask('summarise the chat called nothing', services)).toMatch(/no chat called `nothing`/);
    expect(await ask('summarise: The sea is blue. The sea is deep. I sleep.', services)).toMatch(/of 3, word for word/);
  });

  it('[RU2] a file outside the workspace, and a chat without one, are refused in words', async () => {
    const outside = await run({ input: 'read ../../etc/passwd', workspace: root });
    expect(toolsOf(outside.events)).toMatchObject([{ name: 'read_file', is_error: true }]);
    expect(outside.text).toMatch(/outside the workspace/);
    expect(await ask('list files')).toMatch(/no workspace/);
  });

  it('[RU2] a service that fails is a failed tool, without the inside of its error; the turn goes on', async () => {
    const broken = async () => {
      throw new Error('SQLITE_BUSY at /home/me');
    };
    for (const input of ['search my chats for x', 'tell me something nice']) {
      const { events, end, text } = await run({ input }, { searchChats: broken });
      expect(end).toEqual({ kind: 'completed' });
      expect(toolsOf(events)).toMatchObject([{ result: 'The tool failed.', is_error: true }]);
      expect(JSON.stringify(events)).not.toMatch(/SQLITE|home/);
      expect(text).toMatch(/did not work/);
    }
  });

  it('[RU1] whatever breaks inside, it returns a failure and does not throw', async () => {
    const newToolId = () => {
      throw new Error('no more ids');
    };
    const { end } = await run({ input: '1 + 1' }, { newToolId });
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'agent_crashed', retryable: true } });
    expect(JSON.stringify(end)).not.toContain('no more ids');
  });

  it('[RU2] a tool card has the real duration in seconds', async () => {
    let time = NOW;
    const searchChats = async () => {
      time += 0.25;
      return [];
    };
    const { events } = await run({ input: 'find x' }, { now: () => time, searchChats });
    expect(events.find(({ type }) => type === 'tool.complete')).toMatchObject({ payload: { duration_s: 0.25 } });
  });

  it('[RU2] each word is one delta, with a short wait between two, and the deltas are the text', async () => {
    const waits: number[] = [];
    const { events, text } = await run({ input: 'who are you' }, { sleep: async (ms) => void waits.push(ms) });
    const deltas = events.flatMap((event) => (event.type === 'message.delta' ? [event.payload.text] : []));
    expect(deltas).toEqual(wordsOf(text));
    for (const delta of deltas) expect(delta.trim()).toMatch(/^\S+$/);
    expect(waits).toEqual(Array(deltas.length - 1).fill(12));
    expect(wordsOf('  a\n\n  b c ')).toEqual(['  ', 'a\n\n  ', 'b ', 'c ']);
    expect(wordsOf('')).toEqual([]);
  });

  it('[RU2] a long answer is said faster: nobody waits longer than about three seconds', async () => {
    const waits: number[] = [];
    writeFileSync(join(root, 'words.txt'), 'word '.repeat(700));
    await run({ input: 'read words.txt', workspace: root }, { sleep: async (ms) => void waits.push(ms) });
    const waited = waits.reduce((sum, ms) => sum + ms, 0);
    expect(waited).toBeGreaterThan(2500);
    expect(waited).toBeLessThanOrEqual(3000);
  });

  it('[RU2] it stops in the middle of its words', async () => {
    const abort = new AbortController();
    let words = 0;
    const runner = createBuiltinRunner(builtinServices());
    const { end } = await runTurn(runner, { input: '/help' }, abort.signal, ({ type }) => {
      if (type === 'message.delta' && ++words === 5) abort.abort();
    });
    expect(words).toBe(5);
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'interrupted' } });
  });

  it('[RU2] it does not wait for a tool when it is stopped', async () => {
    const abort = new AbortController();
    const never = new Promise<never>(() => {});
    const searchChats = (): Promise<never> => {
      // When everybody waits for it: behind all that this call sets going.
      setImmediate(() => abort.abort());
      return never;
    };
    const runner = createBuiltinRunner(builtinServices({ searchChats }));
    const { events } = await runTurn(runner, { input: 'find x' }, abort.signal);
    expect(events.map(({ type }) => type)).toEqual(['message.start', 'tool.start']);
  });
});

describe('demonstrations', () => {
  const NAMES = ['text', 'tools', 'reasoning', 'approval', 'error', 'slow', 'long'];

  it('[RU4] together they produce every event that a runner may yield', async () => {
    // A new event type does not compile until it is named here, and then has to be shown.
    const every: Record<RunnerEvent['type'], true> = {
      'message.start': true,
      'message.delta': true,
      'reasoning.delta': true,
      'tool.start': true,
      'tool.output': true,
      'tool.complete': true,
      'todo.updated': true,
      usage: true,
      status: true,
    };
    const seen = new Set<string>();
    for (const name of NAMES) {
      for (const { type } of (await run({ input: `/demo ${name}` })).events) seen.add(type);
    }
    expect([...seen].sort()).toEqual(Object.keys(every).sort());
  });

  it('[RU4] /demo alone or with an unknown name lists them', async () => {
    for (const input of ['/demo', '/demo nope']) {
      const text = await ask(input);
      for (const name of NAMES) expect(text).toContain(`\`/demo ${name}\``);
    }
  });

  it('[RU4] /demo text is Markdown with a heading, a list, a table and code', async () => {
    expect(await ask('/demo TEXT')).toMatch(
      /^# .*\n[\s\S]*\n- .*[\s\S]*\n\|[\s\S]*\|---[\s\S]*\n```ts\n[\s\S]*\n```\n/,
    );
  });

  it('[RU4] /demo tools runs two side by side, one that fails, and a to-do list to its end', async () => {
    const { events } = await run({ input: '/demo tools' }, { sleep: realSleep, wordDelayMs: 0 });
    const told = events.flatMap((event) => {
      if (event.type === 'tool.start') return [`start ${event.payload.name}`];
      if (event.type === 'tool.complete') return [`end ${event.payload.name} ${event.payload.is_error}`];
      return event.type === 'usage' ? ['usage'] : [];
    });
    expect(told).toEqual([
      'usage',
      'start clock',
      'start calculate',
      'end calculate false',
      'end clock false',
      'start calculate',
      'end calculate true',
    ]);
    const lists = events.flatMap((event) => (event.type === 'todo.updated' ? [event.payload.todos] : []));
    expect(lists.map((todos) => todos.filter(({ status }) => status === 'completed').length)).toEqual([0, 1, 2, 3]);
  });

  it('[RU4] /demo reasoning thinks before it speaks', async () => {
    const { events } = await run({ input: '/demo reasoning' });
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual(['message.start', 'reasoning.delta', 'message.delta']);
  });

  it.each<[Answer, RegExp]>([
    [{ kind: 'choice', choice: 'once' }, /chose \*\*once\*\*.*nothing was/],
    [{ kind: 'choice', choice: 'session' }, /chose \*\*session\*\*/],
    [{ kind: 'choice', choice: 'always' }, /chose \*\*always\*\*/],
    [{ kind: 'choice', choice: 'deny' }, /chose \*\*deny\*\*.*not be run/],
    [{ kind: 'timeout' }, /timeout/],
    [{ kind: 'withdrawn' }, /withdrawn/],
  ])('[RU4] /demo approval asks and says what was chosen: %j', async (answer, said) => {
    const asked: unknown[] = [];
    const { text } = await run({
      input: '/demo approval',
      ask: async (question) => {
        asked.push(question);
        return answer;
      },
    });
    expect(asked).toMatchObject([{ kind: 'approval', choices: ['once', 'session', 'always', 'deny'] }]);
    expect(text).toMatch(said);
  });

  it('[RU4] /demo error says something and then fails, retryable', async () => {
    const { text, end } = await run({ input: '/demo error' });
    expect(text).not.toBe('');
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'provider_error', retryable: true } });
  });

  it('[RU4] /demo slow takes about ten seconds, a word every 300 ms', async () => {
    const waits: number[] = [];
    await run({ input: '/demo slow' }, { sleep: async (ms) => void waits.push(ms) });
    expect(new Set(waits)).toEqual(new Set([300]));
    expect(waits.length * 0.3).toBeGreaterThan(9);
    expect(waits.length * 0.3).toBeLessThan(12);
  });

  it('[RU4] /demo long is about 2,000 words, without a wait', async () => {
    const waits: number[] = [];
    const { text } = await run({ input: '/demo long' }, { sleep: async (ms) => void waits.push(ms) });
    const words = text.split(/\s+/).length;
    expect(words).toBeGreaterThan(1950);
    expect(words).toBeLessThan(2100);
    expect(waits.filter((ms) => ms > 0)).toEqual([]);
  });
});
