/**
 * The contract suite of runners: the six points of server/runners/runner.ts, held against any runner. It knows no
 * runner; each gives the turns that make it show a text, tools, a slow answer and a failure.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import type { Answer, Question, Runner, RunnerEvent, Turn } from '../../server/runners/runner.ts';
import { makeTurn, type Ran, runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';

export interface RunnerUnderTest {
  runner: Runner;
  turns: {
    /** Answers with at least two chunks of text. */
    text: Partial<Turn>;
    /** Makes at least one tool call, and answers after it. */
    tools: Partial<Turn>;
    /** Gives its first delta soon and would go on for at least five seconds. */
    slow: Partial<Turn>;
    /** Ends as failed. */
    fails: Partial<Turn>;
    /** Makes one call that has to be allowed, which does what `wasDone` sees, and answers after it. */
    asks: Partial<Turn>;
    /** Makes two such calls side by side; not asked of a runner that makes one at a time. */
    asksTwice?: Partial<Turn>;
    /** Makes one call that puts something out while it runs, and has to be allowed. */
    output: Partial<Turn>;
    /** The same, but it would go on for at least five seconds after its first output. */
    longTool: Partial<Turn>;
    /** Asks the person a question, and answers after it; not asked of a runner that has no way to. */
    clarifies?: Partial<Turn>;
  };
  /** How many of the calls of `asks` and `asksTwice` were really made. */
  done(): Promise<number>;
  /** How many requests or processes of the runner are still going on; none once a turn has ended. */
  running?(): number | Promise<number>;
  close(): Promise<void>;
}

const TYPES: ReadonlySet<RunnerEvent['type']> = new Set<RunnerEvent['type']>([
  'message.start',
  'message.delta',
  'reasoning.delta',
  'tool.start',
  'tool.output',
  'tool.complete',
  'todo.updated',
  'usage',
  'status',
]);

const CODES = new Set([
  'rate_limited',
  'quota',
  'context_too_long',
  'auth',
  'model_not_found',
  'content_filter',
  'empty_reply',
  'stalled',
  'network',
  'provider_error',
  'agent_crashed',
  'interrupted',
]);

/** When to give up waiting for a runner that was stopped, in milliseconds: before its turn would end by itself. */
const SOON_MS = 4_500;

export interface RunnerTraits {
  /** It makes several calls at once. Default: true. */
  sideBySide?: boolean;
  /** It can ask the person questions of its own. Default: true. */
  clarifies?: boolean;
}

/** Defines the suite for one runner. */
export function runnerContract(
  name: string,
  makeRunner: () => Promise<RunnerUnderTest>,
  { sideBySide = true, clarifies = true }: RunnerTraits = {},
): void {
  describe(`the runner contract: ${name}`, () => {
    let made: RunnerUnderTest;
    const open: AbortController[] = [];

    const controller = () => {
      const made = new AbortController();
      open.push(made);
      return made;
    };

    beforeEach(async () => {
      made = await makeRunner();
    });
    afterEach(async () => {
      // A test that failed half way leaves a turn behind.
      for (const controller of open.splice(0)) controller.abort();
      await made.close();
    });

    it('[RU1] has a short stable name', () => {
      expect(made.runner.kind).toMatch(/^[a-z][a-z0-9_-]{0,30}$/);
    });

    it('[RU1] a turn yields events of the known types, as plain JSON, and returns completed', async () => {
      for (const turn of [made.turns.text, made.turns.tools]) {
        const { events, end, text } = await runTurn(made.runner, turn, controller().signal);
        expect(end).toEqual({ kind: 'completed' });
        expect(text.trim()).not.toBe('');
        for (const event of events) {
          expect(TYPES).toContain(event.type);
          expect(JSON.parse(JSON.stringify(event))).toEqual(event);
        }
      }
    });

    it('[RU1] a failure is returned with a code of the catalogue, not thrown', async () => {
      const { end } = await runTurn(made.runner, made.turns.fails, controller().signal);
      if (end.kind !== 'failed') throw new Error(`the turn ended as ${end.kind}`);
      expect(CODES).toContain(end.error.code);
      expect(end.error.message.trim()).not.toBe('');
      expect(end.error.message).not.toMatch(/\n\s+at /);
      expect(end.error.retryable).toBeTypeOf('boolean');
    });

    it('[RU1] it works on after a failure', async () => {
      await runTurn(made.runner, made.turns.fails, controller().signal);
      const { end } = await runTurn(made.runner, made.turns.text, controller().signal);
      expect(end).toEqual({ kind: 'completed' });
    });

    it('[RU1] each message begins with message.start before its text, reasoning and tools', async () => {
      for (const turn of [made.turns.text, made.turns.tools, made.turns.fails]) {
        const { events } = await runTurn(made.runner, turn, controller().signal);
        expect(outsideMessages(events)).toEqual([]);
      }
    });

    it('[RU1] text comes in the chunks that the agent gave, none empty', async () => {
      const { events } = await runTurn(made.runner, made.turns.text, controller().signal);
      const deltas = events.filter((event) => event.type === 'message.delta');
      expect(deltas.length).toBeGreaterThan(1);
      expect(deltas.filter(({ payload }) => payload.text === '')).toEqual([]);
    });

    it('[RU1] tools are announced before the first of their message completes, and complete at most once', async () => {
      const { events } = await runTurn(made.runner, made.turns.tools, controller().signal);
      const started = new Map<string, string>();
      const completed = new Set<string>();
      let completing = false;
      for (const event of events) {
        if (event.type === 'message.start') completing = false;
        if (event.type === 'tool.start') {
          expect(completing, 'a tool.start after a tool.complete of the same message').toBe(false);
          expect(started.has(event.payload.tool_id), 'a tool id is given twice').toBe(false);
          expect(event.payload.tool_id).not.toBe('');
          started.set(event.payload.tool_id, event.payload.name);
        }
        if (event.type === 'tool.complete') {
          completing = true;
          expect(started.get(event.payload.tool_id)).toBe(event.payload.name);
          expect(completed.has(event.payload.tool_id), 'a tool completes twice').toBe(false);
          expect(event.payload.duration_s).toBeGreaterThanOrEqual(0);
          completed.add(event.payload.tool_id);
        }
      }
      expect(completed.size).toBeGreaterThan(0);
      expect([...completed].sort()).toEqual([...started.keys()].sort());
    });

    it('[RU1] the usage of a message comes before its first tool.complete', async () => {
      const { events } = await runTurn(made.runner, made.turns.tools, controller().signal);
      let completing = false;
      for (const { type } of events) {
        if (type === 'message.start') completing = false;
        if (type === 'tool.complete') completing = true;
        if (type === 'usage') expect(completing, 'usage after a tool.complete of its message').toBe(false);
      }
    });

    it('[RU1] it returns soon when the signal aborts, and leaves nothing running', async () => {
      const abort = controller();
      const ran = runTurn(made.runner, made.turns.slow, abort.signal, (event) => {
        // Not at once: when the runner was asked for its next event and waits for the next chunk.
        if (event.type.endsWith('.delta')) setImmediate(() => abort.abort());
      });
      await endsSoon(ran);
      await nothingRuns(made);
    });

    it('[RU1] a signal that is aborted already ends the turn at once', async () => {
      await endsSoon(runTurn(made.runner, made.turns.slow, AbortSignal.abort()));
      await nothingRuns(made);
    });

    it('[RU1] a reader that leaves in the middle ends the turn', async () => {
      const run = made.runner.run(makeTurn(made.turns.slow), controller().signal);
      await run.next();
      const left = run.return({ kind: 'completed' });
      open.at(-1)!.abort();
      await endsSoon(left);
      await nothingRuns(made);
    });

    it('[RU1] it keeps nothing of a turn: another turn before or beside it changes no answer', async () => {
      const alone = shape(await runTurn(made.runner, made.turns.tools, controller().signal));
      await runTurn(made.runner, made.turns.text, controller().signal);
      await runTurn(made.runner, made.turns.fails, controller().signal);
      const [again, beside] = await Promise.all([
        runTurn(made.runner, made.turns.tools, controller().signal),
        runTurn(made.runner, { ...made.turns.tools, sessionId: '20260303_130003_fedcba' }, controller().signal),
      ]);
      expect(shape(again)).toEqual(alone);
      expect(shape(beside)).toEqual(alone);
    });

    it('[AP1] a call that has to be allowed is made after a yes, and not before', async () => {
      const { question, answer, ran } = await asked(made, made.turns.asks, controller().signal);
      expect(question).toMatchObject({ kind: 'approval', choices: expect.arrayContaining(['once', 'deny']) });
      expect(question.kind === 'approval' && question.command).not.toBe('');
      expect(await made.done()).toBe(0);
      answer({ kind: 'choice', choice: 'once' });
      const { events, end, text } = await ran;
      expect(end).toEqual({ kind: 'completed' });
      expect(text.trim()).not.toBe('');
      expect(endsOf(events)).toEqual([false]);
      expect(await made.done()).toBe(1);
    });

    it.each<Answer>([{ kind: 'choice', choice: 'deny' }, { kind: 'timeout' }, { kind: 'withdrawn' }])(
      '[AP2] %j: nothing is done, the agent is told, and the turn goes on to its end',
      async (no) => {
        const ask = async () => no;
        const { events, end, text } = await runTurn(made.runner, { ...made.turns.asks, ask }, controller().signal);
        expect(end).toEqual({ kind: 'completed' });
        expect(text.trim()).not.toBe('');
        expect(endsOf(events)).toEqual([true]);
        expect(resultsOf(events)[0]).toContain('The person did not allow this');
        expect(denialsOf(events)).toEqual([no.kind === 'choice']);
        expect(await made.done()).toBe(0);
      },
    );

    if (sideBySide) {
      it('[AP7] two calls at once ask two questions, and each gets its own answer', async () => {
        const answers: ((answer: Answer) => void)[] = [];
        const ask = (): Promise<Answer> => new Promise((resolve) => answers.push(resolve));
        const ran = runTurn(made.runner, { ...made.turns.asksTwice, ask }, controller().signal);
        await until('both are asked', () => answers.length === 2);
        answers[1]!({ kind: 'choice', choice: 'deny' });
        answers[0]!({ kind: 'choice', choice: 'once' });
        const { events, end } = await ran;
        expect(end).toEqual({ kind: 'completed' });
        expect(endsOf(events).sort()).toEqual([false, true]);
        expect(await made.done()).toBe(1);
      });
    }

    it('[AP2] an abort while it waits for an answer ends the turn soon, and nothing is done', async () => {
      const abort = controller();
      const { ran } = await asked(made, made.turns.asks, abort.signal);
      abort.abort();
      await endsSoon(ran);
      expect(await made.done()).toBe(0);
      await nothingRuns(made);
    });

    it('[RU1] what a tool puts out comes between its start and its end', async () => {
      const { events } = await runTurn(made.runner, { ...made.turns.output, ask: YES }, controller().signal);
      const output = events.findIndex(({ type }) => type === 'tool.output');
      expect(output).toBeGreaterThan(events.findIndex(({ type }) => type === 'tool.start'));
      expect(events.findLastIndex(({ type }) => type === 'tool.output')).toBeLessThan(
        events.findIndex(({ type }) => type === 'tool.complete'),
      );
      const [start] = events.flatMap((event) => (event.type === 'tool.start' ? [event.payload.tool_id] : []));
      for (const event of events) if (event.type === 'tool.output') expect(event.payload.tool_id).toBe(start);
    });

    it('[RU1] an abort in the middle of a tool ends the turn soon, and leaves nothing running', async () => {
      const abort = controller();
      const ran = runTurn(made.runner, { ...made.turns.longTool, ask: YES }, abort.signal, (event) => {
        if (event.type === 'tool.output') setImmediate(() => abort.abort());
      });
      await endsSoon(ran);
      expect((await ran).events.some(({ type }) => type === 'tool.complete')).toBe(false);
      await nothingRuns(made);
    });

    if (clarifies) {
      it('[AP6] a question to the person is asked with its words, and the answer reaches the agent', async () => {
        const { question, answer, ran } = await asked(made, made.turns.clarifies!, controller().signal);
        if (question.kind !== 'clarify') throw new Error(`it asked for an ${question.kind}`);
        expect(question.questions[0]?.question).not.toBe('');
        answer({ kind: 'answers', answers: { [question.questions[0]!.qid]: 'the blue one' } });
        const { events, end } = await ran;
        expect(end).toEqual({ kind: 'completed' });
        expect(resultsOf(events)[0]).toContain('the blue one');
      });

      it.each<Answer>([{ kind: 'timeout' }, { kind: 'answers', answers: {} }, { kind: 'withdrawn' }])(
        '[AP6] a question that is not answered is told as that, and the turn goes on: %j',
        async (silence) => {
          const ask = async () => silence;
          const { events, end } = await runTurn(made.runner, { ...made.turns.clarifies, ask }, controller().signal);
          expect(end).toEqual({ kind: 'completed' });
          expect(resultsOf(events)[0]).toMatch(/nobody answered|did not want to answer|withdrawn/i);
        },
      );
    }

    it('[ST1] it heeds what is said meanwhile, hears it while no tool runs, and ends only when nothing more is said', async () => {
      for (const turn of [made.turns.text, { ...made.turns.output, ask: YES }]) {
        const alone = await runTurn(made.runner, turn, controller().signal);
        const words = [[{ text: made.turns.text.input!, attachments: [] }]];
        const running = new Set<string>();
        const heard: { words: number; running: number }[] = [];
        const steer = async () => {
          const said = words.shift() ?? [];
          heard.push({ words: said.length, running: running.size });
          return said;
        };
        const ran = await runTurn(made.runner, { ...turn, steer }, controller().signal, (event) => {
          if (event.type === 'tool.start') running.add(event.payload.tool_id);
          if (event.type === 'tool.complete') running.delete(event.payload.tool_id);
        });
        expect(ran.end).toEqual({ kind: 'completed' });
        expect(heard[0]).toEqual({ words: 1, running: 0 });
        expect(heard.at(-1)).toEqual({ words: 0, running: 0 });
        expect(ran.text).not.toBe(alone.text);
      }
    });

    it('[RU1] it only reads the history, whatever rows there are', async () => {
      const history = frozenHistory();
      const before = JSON.stringify(history);
      for (const turn of [made.turns.text, made.turns.tools]) {
        const { end } = await runTurn(made.runner, { history, ...turn }, controller().signal);
        expect(end).toEqual({ kind: 'completed' });
      }
      expect(JSON.stringify(history)).toBe(before);
    });
  });
}

const YES = async (): Promise<Answer> => ({ kind: 'choice', choice: 'once' });

/** A turn that has asked its person something, and waits. */
async function asked({ runner }: RunnerUnderTest, turn: Partial<Turn>, signal: AbortSignal) {
  const questions: Question[] = [];
  let answer: (answer: Answer) => void = () => {};
  const ask = (question: Question): Promise<Answer> => {
    questions.push(question);
    return new Promise((resolve) => {
      answer = resolve;
      signal.addEventListener('abort', () => resolve({ kind: 'withdrawn' }));
    });
  };
  const ran = runTurn(runner, { ...turn, ask }, signal);
  const question = await until('it asks', () => questions[0]);
  return { question, answer: (given: Answer) => answer(given), ran };
}

/** Whether each call that ended did so with an error. */
const endsOf = (events: RunnerEvent[]): boolean[] =>
  events.flatMap((event) => (event.type === 'tool.complete' ? [event.payload.is_error] : []));

/** Whether each call that ended was denied by the person. */
const denialsOf = (events: RunnerEvent[]): boolean[] =>
  events.flatMap((event) => (event.type === 'tool.complete' ? [event.payload.denied ?? false] : []));

const resultsOf = (events: RunnerEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'tool.complete' ? [event.payload.result] : []));

/** Text, reasoning and tool calls that come before a message has begun. */
function outsideMessages(events: RunnerEvent[]): string[] {
  const begun = events.findIndex(({ type }) => type === 'message.start');
  const inMessage = new Set(['message.delta', 'reasoning.delta', 'tool.start', 'tool.complete']);
  return events
    .filter(({ type }, index) => inMessage.has(type) && (begun < 0 || index < begun))
    .map(({ type }) => type);
}

/** A run without what may differ between two runs: chunk borders, ids, durations. */
function shape({ events, end, text }: Ran): unknown {
  const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
  const tools = events.flatMap((event) =>
    event.type === 'tool.start' ? [[event.payload.name, event.payload.args]] : [],
  );
  return { types, tools, end, text };
}

async function endsSoon(ran: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), SOON_MS);
  });
  const outcome = await Promise.race([ran.then(() => 'ended'), late]);
  clearTimeout(timer);
  expect(outcome).toBe('ended');
}

async function nothingRuns({ running }: RunnerUnderTest): Promise<void> {
  if (running) await expect.poll(running, { timeout: SOON_MS }).toBe(0);
}

/** Rows of all kinds, a failed turn and a marker included; any write to them throws. */
function frozenHistory(): readonly Message[] {
  const row = (n: number, part: Partial<Message>): Message => ({
    id: `f000000000000000000000000000000f.${n}`,
    run_id: 'f000000000000000000000000000000f',
    role: 'assistant',
    content: '',
    timestamp: 1_772_500_000 + n,
    ...part,
  });
  const call = { id: 'call_1', type: 'function' as const, function: { name: 'gone', arguments: '{"a":1}' } };
  const cause = { code: 'interrupted' as const, message: 'Response interrupted.', retryable: true };
  return deepFreeze([
    row(0, { role: 'user', content: 'An earlier prompt.' }),
    row(1, { content: 'I look.', tool_calls: [call] }),
    row(2, { role: 'tool', content: 'Found.', tool_call_id: 'call_1', name: 'gone' }),
    row(3, { content: 'An earlier answer.', reasoning: 'Earlier thoughts.' }),
    row(4, { role: 'user', content: 'Another prompt.' }),
    row(5, { content: 'Half an ans', status: 'interrupted' }),
    row(6, { role: 'user', content: 'And another.' }),
    row(7, { content: 'Response interrupted before this turn finished.', status: 'error', error: cause }),
  ]);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) deepFreeze(item);
    Object.freeze(value);
  }
  return value;
}
