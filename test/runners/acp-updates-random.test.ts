/**
 * Whatever an agent sends in whatever order, its turn keeps the runner contract (rules 2 to 4), and its rows can be
 * stored: any sequence of updates, also broken and hostile ones, and any place where it ends.
 */
import { expect, it } from 'vitest';
import { createFold, type FoldEnd } from '../../server/core/fold.ts';
import { createTurnUpdates } from '../../server/runners/acp/updates.ts';
import type { RunnerEvent } from '../../server/runners/runner.ts';
import { seededRandom, testSeed } from '../support/random.ts';

const ROUNDS = 150;
const RUN = 'a000000000000000000000000000000a';

function generator(random: () => number) {
  const int = (most: number): number => Math.floor(random() * most);
  const of = <T>(list: readonly T[]): T => list[int(list.length)]!;
  const chance = (share: number): boolean => random() < share;

  const odd = (): unknown =>
    of([
      null,
      undefined,
      0,
      -1,
      1.5,
      1e308,
      true,
      '',
      [],
      {},
      [[]],
      { a: { b: [null] } },
      '\ud800',
      '\0',
      'x'.repeat(5000),
    ]);
  const words = (): string =>
    of(['a', 'so it is', '\n', ' ', '```\n', 'é😀', '\ud83d', '\ude00', '\0', '\u001b[1mb', 'z'.repeat(3000)]);
  const maybe = (value: () => unknown): unknown => (chance(0.15) ? odd() : value());
  const block = (): unknown =>
    maybe(() =>
      of([
        { type: 'text', text: maybe(words) },
        { type: 'image', data: maybe(words), mimeType: maybe(words) },
        { type: 'resource', resource: maybe(() => ({ uri: words(), text: maybe(words) })) },
        { type: 'resource_link', uri: maybe(words), name: maybe(words) },
        { text: words() },
      ]),
    );
  const item = (): unknown =>
    maybe(() =>
      of([
        { type: 'content', content: block() },
        { type: 'diff', path: maybe(words), oldText: maybe(words), newText: maybe(words) },
        { type: 'terminal', terminalId: maybe(() => of(['t1', 't2'])) },
        block(),
      ]),
    );
  const toolCallId = (): unknown => maybe(() => of(['1', '2', '3', '2_2', 'ä b', 'x'.repeat(300)]));
  const call = (): Record<string, unknown> => {
    const fields: Record<string, () => unknown> = {
      title: words,
      name: words,
      kind: () => of(['read', 'edit', 'execute', 'other', words()]),
      status: () => of(['pending', 'in_progress', 'completed', 'failed', 'cancelled', 'odd']),
      content: () => Array.from({ length: int(4) }, item),
      rawInput: () => of([{ command: words() }, { command: ['sh', '-c', words()] }, words()]),
      rawOutput: () => of([words(), { output: words() }, { error: { message: words() } }, [words()]]),
      locations: () => [{ path: words() }],
      _meta: () =>
        of([
          { terminal_output: { data: words() } },
          { terminal_exit: { exit_code: int(3) } },
          { x: { toolName: words() } },
        ]),
    };
    const chosen = Object.entries(fields).filter(() => chance(0.4));
    return { toolCallId: toolCallId(), ...Object.fromEntries(chosen.map(([name, value]) => [name, maybe(value)])) };
  };
  const chunk = () => ({ content: block(), messageId: maybe(() => of(['m1', 'm2', undefined])) });
  const kinds: Record<string, () => object> = {
    agent_message_chunk: chunk,
    agent_thought_chunk: chunk,
    tool_call: call,
    tool_call_update: call,
    plan: () => ({ entries: maybe(() => [{ content: maybe(words), status: maybe(() => 'completed') }]) }),
    usage_update: () => ({
      used: maybe(() => int(9)),
      size: maybe(() => int(9)),
      cost: maybe(() => ({ amount: random(), currency: 'USD' })),
    }),
    user_message_chunk: chunk,
    unheard_of: call,
  };
  const update = (): unknown => {
    if (chance(0.03)) return odd();
    const kind = of(Object.keys(kinds));
    return { sessionUpdate: maybe(() => kind), ...kinds[kind]!() };
  };
  const usage = (): unknown =>
    maybe(() => ({
      inputTokens: maybe(() => int(9)),
      outputTokens: maybe(() => int(9)),
      totalTokens: maybe(() => int(99)),
    }));
  return { int, of, chance, update, call, usage, words };
}

/** Plays a turn of a few prompts, and returns what was told. */
function play(random: () => number): RunnerEvent[] {
  const { int, of, chance, update, call, usage, words } = generator(random);
  let time = 1000;
  const updates = createTurnUpdates({
    now: () => {
      time += random() - 0.2; // a clock may also go back
      return time;
    },
    cwd: of([null, '/w']),
    ledger: { cost: of([null, 0, 5]) },
  });
  const events: RunnerEvent[] = [];
  for (let prompt = int(3); prompt >= 0; prompt -= 1) {
    for (let step = int(40); step > 0; step -= 1) {
      const like = random();
      // As it comes over the wire.
      const wire = <T>(value: T): T => (value === undefined ? value : JSON.parse(JSON.stringify(value)));
      if (like < 0.85) events.push(...updates.take(wire(update())));
      else if (like < 0.9) events.push(...updates.announce(wire(call())));
      else if (like < 0.95) events.push(...updates.terminalOutput(of(['t1', 't2', 't3']), words()));
      else updates.answered(wire(call()), of(['yes', 'no', 'nothing'] as const));
    }
    if (prompt > 0 || chance(0.7)) events.push(...updates.promptEnded(usage()));
    if (prompt > 0) expect(updates.busy()).toBe(false);
  }
  return events;
}

/** Rules 2 to 4 of the contract, and what everything needs that is stored and sent. */
function keepsContract(events: readonly RunnerEvent[]): void {
  const started = new Map<string, string>();
  const completed = new Set<string>();
  let begun = false;
  let completing = false;
  for (const event of events) {
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
    expect(JSON.stringify(event)).not.toMatch(/\\ud[89a-f]|\\u0000/);
    expect(JSON.stringify(event).length).toBeLessThan(200_000);
    switch (event.type) {
      case 'message.start':
        begun = true;
        completing = false;
        break;
      case 'message.delta':
      case 'reasoning.delta':
        expect(begun && !completing, 'a delta outside a message').toBe(true);
        expect(event.payload.text).not.toBe('');
        break;
      case 'tool.start':
        expect(begun && !completing, 'a call outside a message').toBe(true);
        expect(started.has(event.payload.tool_id), 'an id twice').toBe(false);
        expect(event.payload.tool_id).toMatch(/^[\w.:-]{1,80}$/);
        expect(event.payload.name.trim()).not.toBe('');
        expect(event.payload.preview).not.toContain('\n');
        started.set(event.payload.tool_id, event.payload.name);
        break;
      case 'tool.output':
        expect(started.has(event.payload.tool_id) && !completed.has(event.payload.tool_id)).toBe(true);
        expect(event.payload.text).not.toBe('');
        break;
      case 'tool.complete':
        completing = true;
        expect(started.get(event.payload.tool_id)).toBe(event.payload.name);
        expect(completed.has(event.payload.tool_id), 'an end twice').toBe(false);
        expect(event.payload.duration_s).toBeGreaterThanOrEqual(0);
        completed.add(event.payload.tool_id);
        break;
      case 'usage':
        expect(begun && !completing, 'usage outside a message').toBe(true);
        break;
      default:
        expect(event.type).toBe('todo.updated');
    }
  }
}

/** Every result stands behind its call, and no row says nothing. */
function foldsWell(events: readonly RunnerEvent[], end: FoldEnd): void {
  const fold = createFold(RUN);
  fold.apply(
    { type: 'run.start', payload: { admission_id: 'a', input: 'Go.', generation: 1, timestamp: 1, model: 'x/y' } },
    1,
  );
  for (const event of events) fold.apply(event, 2);
  fold.end(end, 3);
  const called = new Set<string>();
  for (const row of fold.rows()) {
    const isEmpty = row.role === 'assistant' && row.content === '' && !row.reasoning && !row.tool_calls;
    expect(isEmpty && row !== fold.rows().at(-1), 'an empty row').toBe(false);
    for (const { id } of row.tool_calls ?? []) called.add(id);
    if (row.role !== 'tool') continue;
    expect(called.has(row.tool_call_id!), `a result before its call: ${row.tool_call_id}`).toBe(true);
  }
  expect(new Set(fold.rows().map(({ id }) => id)).size).toBe(fold.rows().length);
}

const seed = testSeed();

it(`[AC2] any sequence of updates keeps the contract, and folds to rows with each result behind its call (seed ${seed})`, () => {
  const random = seededRandom(seed);
  let calls = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const events = play(random);
    calls += events.filter(({ type }) => type === 'tool.complete').length;
    keepsContract(events);
    foldsWell(events, { kind: 'complete' });
    // A crash or a stop may come behind any event.
    foldsWell(events.slice(0, Math.floor(random() * events.length)), { kind: 'interrupted' });
  }
  expect(calls).toBeGreaterThan(ROUNDS);
});

it('[AC2] ten thousand calls that are open at once, and ten thousand updates of one, are all told and end', () => {
  const updates = createTurnUpdates({ now: () => 1, cwd: null, ledger: { cost: 0 } });
  const count = (events: RunnerEvent[], type: string): number => events.filter((event) => event.type === type).length;
  const all = Array.from({ length: 10_000 }, (_, n) => n);
  const tell = (update: (n: number) => object): RunnerEvent[] => all.flatMap((n) => updates.take(update(n)));
  const begun = tell((n) => ({ sessionUpdate: 'tool_call', toolCallId: n, title: 'x', status: 'in_progress' }));
  expect(count(begun, 'tool.start')).toBe(10_000);
  const content = (n: number) => [{ type: 'content', content: { type: 'text', text: 'x'.repeat(n) } }];
  const grown = tell((n) => ({ sessionUpdate: 'tool_call_update', toolCallId: 0, content: content(n) }));
  expect(count(grown, 'tool.output')).toBe(9999);
  expect(count(updates.promptEnded(null), 'tool.complete')).toBe(10_000);
  expect(updates.busy()).toBe(false);
});
