/**
 * The demonstrations: together they produce every event that a runner may yield (RU4), for people who look at the page
 * and for tests. Owns the order of their events; the words are demo-texts.ts.
 */
import type { Todo } from '../../core/terms.ts';
import type { Answer, Question, RunnerEnd, RunnerEvent } from '../runner.ts';
import type { Call, Scene } from './call.ts';
import { makeCalls, succeeded } from './call.ts';
import { parseDateQuestion } from './date-questions.ts';
import * as texts from './demo-texts.ts';
import { calculateCall, clockCall } from './reckon-calls.ts';
import { say, sayMessage } from './speech.ts';

const SLOW_MS = 300;
const COMPLETED: RunnerEnd = { kind: 'completed' };

type Demonstration = (scene: Scene) => AsyncGenerator<RunnerEvent, RunnerEnd, void>;

/** Shows a demonstration by its name; lists them when there is none of that name. */
export function demo(name: string, scene: Scene): AsyncGenerator<RunnerEvent, RunnerEnd, void> {
  switch (name.toLowerCase()) {
    case 'text':
      return speak(texts.DEMO_TEXT)(scene);
    case 'tools':
      return showTools(scene);
    case 'reasoning':
      return showReasoning(scene);
    case 'approval':
      return showApproval(scene);
    case 'error':
      return showError(scene);
    case 'slow':
      return speak(texts.DEMO_SLOW, SLOW_MS)(scene);
    case 'long':
      return speak(texts.longText(), 0)(scene);
    default:
      return speak(texts.DEMO_LIST)(scene);
  }
}

const speak = (text: string, delayMs?: number): Demonstration =>
  async function* (scene) {
    yield* sayMessage(text, scene, { delayMs });
    return COMPLETED;
  };

const TODOS = ['Say the time and do a sum, side by side', 'Try what cannot work', 'Report'];

/** The to-do list when `done` points are done and the next is being worked on. */
function todos(done: number): RunnerEvent {
  const statusOf = (index: number): Todo['status'] =>
    index < done ? 'completed' : index === done ? 'in_progress' : 'pending';
  return {
    type: 'todo.updated',
    payload: { todos: TODOS.map((content, index) => ({ content, status: statusOf(index) })) },
  };
}

const showTools: Demonstration = async function* (scene) {
  const { services } = scene;
  yield { type: 'status', payload: { kind: 'progress', text: 'Demonstration: planning' } };
  yield { type: 'message.start', payload: {} };
  yield* say('I will use three tools: two side by side, then one that fails.', scene);
  yield todos(0);
  // Before the first tool completes, because it is stored with the message's row. The counts are made up.
  yield { type: 'usage', payload: { input_tokens: 120, output_tokens: 30, context_used: 150, context_length: 8192 } };
  const question = parseDateQuestion('what time is it')!;
  const both = [
    slowed(clockCall('what time is it', question, services), 600, scene),
    slowed(calculateCall('6 * 7'), 200, scene),
  ];
  const outcomes = yield* makeCalls(both, scene);
  if (!outcomes) return COMPLETED;
  yield todos(1);
  yield { type: 'message.start', payload: {} };
  const failed = yield* makeCalls([calculateCall('1 / 0')], scene);
  if (!failed) return COMPLETED;
  yield todos(2);
  const said = [...outcomes, ...failed].map((outcome) => `- ${outcome.say}`).join('\n');
  yield* sayMessage(`The tools said:\n\n${said}\n\nThe last one failed, as it should.`, scene);
  if (!scene.signal.aborted) yield todos(3);
  return COMPLETED;
};

/** Takes longer than the tool itself, so that calls side by side can be seen to be. */
function slowed(call: Call, ms: number, { services }: Scene): Call {
  return {
    ...call,
    async run(signal, telling) {
      const { id, tell } = telling;
      tell({ type: 'tool.output', payload: { tool_id: id, text: `Taking ${ms} ms on purpose…\n` } });
      await services.sleep(ms, signal);
      tell({ type: 'tool.output', payload: { tool_id: id, text: 'Done.\n' } });
      return call.run(signal, telling);
    },
  };
}

const showReasoning: Demonstration = async function* (scene) {
  yield { type: 'message.start', payload: {} };
  yield* say(texts.DEMO_REASONING, scene, { as: 'reasoning.delta' });
  yield* say(texts.DEMO_REASONING_ANSWER, scene);
  return COMPLETED;
};

const QUESTION = {
  kind: 'approval',
  tool_name: 'demo_command',
  command: 'echo "nothing is really run"',
  description: 'A demonstration: whatever you choose, nothing is run.',
  choices: ['once', 'session', 'always', 'deny'],
} satisfies Question;

const showApproval: Demonstration = async function* (scene) {
  const { turn } = scene;
  yield { type: 'message.start', payload: {} };
  yield* say('I am going to ask whether a command may be run.', scene);
  let answer: Answer = { kind: 'withdrawn' };
  const call: Call = {
    name: QUESTION.tool_name,
    args: { command: QUESTION.command },
    preview: QUESTION.command,
    async run() {
      answer = await turn.ask(QUESTION);
      return succeeded(answer.kind === 'choice' ? `Answer: ${answer.choice}` : `No answer: ${answer.kind}`);
    },
  };
  const outcomes = yield* makeCalls([call], scene);
  if (outcomes) yield* sayMessage(chosen(answer), scene);
  return COMPLETED;
};

function chosen(answer: Answer): string {
  switch (answer.kind) {
    case 'choice':
      return answer.choice === 'deny'
        ? 'You chose **deny**, so it would not be run.'
        : `You chose **${answer.choice}**, so it would be run now. As this is a demonstration, nothing was.`;
    case 'timeout':
      return 'Nobody answered in time (**timeout**), so it would not be run.';
    case 'withdrawn':
      return 'The question was **withdrawn**, so it would not be run.';
    case 'answers':
      return 'That was no answer to an approval, so it would not be run.';
  }
}

const showError: Demonstration = async function* (scene) {
  yield* sayMessage(texts.DEMO_ERROR_TEXT, scene);
  return {
    kind: 'failed',
    error: { code: 'provider_error', message: texts.DEMO_ERROR_MESSAGE, retryable: true },
  };
};
