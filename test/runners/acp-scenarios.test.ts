/** Turns with an agent of another make from end to end: what its updates become, and what it is sent. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sniffType } from '../../server/core/file-kinds.ts';
import type { RunnerEvent, Turn, TurnAttachment } from '../../server/runners/runner.ts';
import { type AcpBench, createAcpBench } from '../support/acp-bench.ts';
import { startConversation } from '../support/acp-conversation.ts';
import { type Ran, runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';
import { PNG } from '../support/uploads.ts';

let bench: AcpBench;

beforeEach(async () => {
  bench = await createAcpBench();
});
afterEach(() => bench.close());

const play = (script: string, turn: Partial<Turn> = {}, onEvent?: (event: RunnerEvent) => void): Promise<Ran> =>
  runTurn(bench.agent(), { workspace: bench.workspace, input: `acp: ${script}`, ...turn }, undefined, onEvent);

const shapeOf = ({ events }: Ran): string[] =>
  events.map((event) => {
    if (event.type === 'message.delta' || event.type === 'reasoning.delta')
      return `${event.type} ${event.payload.text}`;
    if (event.type === 'tool.start') return `tool.start ${event.payload.name}: ${event.payload.preview}`;
    if (event.type === 'tool.complete')
      return `tool.complete ${event.payload.is_error ? 'failed: ' : ''}${event.payload.result}`;
    return event.type;
  });

it('[AC2] a whole turn: thoughts, text, a plan, calls with updates, usage', async () => {
  const ran = await play(
    [
      ...[
        'think I should look.',
        'say Let me look.',
        'plan now:look, then:answer',
        'usage 10 100',
        'commands',
        'mode x',
      ],
      ...['open c1 read notes.txt', 'text c1 one', 'text c1 one\\ntwo', 'open c2 search stone'],
      ...[
        'done c2 found',
        'broken c1 no such file',
        'info A title',
        'user not mine',
        'say There it is.',
        'usage 20 100',
      ],
    ].join('; '),
  );
  expect(ran.end).toEqual({ kind: 'completed' });
  expect(shapeOf(ran)).toEqual([
    ...['message.start', 'reasoning.delta I should look.', 'message.delta Let me look.', 'todo.updated'],
    ...['tool.start read: notes.txt', 'tool.output', 'tool.output', 'tool.start search: stone'],
    ...['tool.complete found', 'tool.complete failed: no such file'],
    ...['message.start', 'message.delta There it is.', 'usage'],
  ]);
  expect(ran.events.at(-1)).toMatchObject({ payload: { context_used: 20, context_length: 100 } });
});

it('[AC2] what the agent tells for another session, or in kinds that nobody knows, changes nothing', async () => {
  const ran = await play(
    [
      'say one',
      'update {"sessionUpdate":"dreams","content":{"type":"text","text":"x"}}',
      'notify session/update {"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"text":"x"}}}',
      'notify session/update {"update":null}',
      'notify _vendor/news {"a":1}',
      'update {"sessionUpdate":"tool_call_update","toolCallId":"never","status":"completed"}',
      'say two',
    ].join('; '),
  );
  expect(shapeOf(ran)).toEqual(['message.start', 'message.delta one', 'message.delta two']);
  expect(ran.end).toEqual({ kind: 'completed' });
});

it('[AC2] what comes after the end of a turn belongs to none: not to that one, and not to the next', async () => {
  const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
  const said = path.join(bench.workspace, 'said');
  const first = await conversation.say(
    'acp: open c1 read a; say over; late 20 done c1 too late; late 20 say too late; late 40 touch said',
  );
  expect(first.text).toBe('over');
  expect(shapeOf(first).at(-1)).toBe('tool.complete failed: The agent did not say how this ended.');
  await until('it has said everything', () => existsSync(said));
  const second = await conversation.say('acp: done c1 too late; say second');
  expect(shapeOf(second)).toEqual(['message.start', 'message.delta second']);
});

it('[AC2] after a cancel nothing of that turn is told any more, and the next turn is whole', async () => {
  const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
  const abort = new AbortController();
  const events: RunnerEvent[] = [];
  const stopped = runTurn(
    bench.agent(),
    { workspace: bench.workspace, input: 'acp: say one; oncancel say late; hang' },
    abort.signal,
    (event) => {
      events.push(event);
      if (event.type === 'message.delta') abort.abort();
    },
  );
  expect((await stopped).text).toBe('one');
  expect((await conversation.say('acp: say two')).text).toBe('two');
  expect(events).toHaveLength(2);
});

it('[AC2] [ST1] what is said meanwhile is a further prompt of the same turn, in a message of its own', async () => {
  const words = [[{ text: 'acp: say And this.', attachments: [] }], []];
  const ran = await play('say First.; call read x => y', { steer: async () => words.shift() ?? [] });
  expect(shapeOf(ran)).toEqual([
    ...['message.start', 'message.delta First.', 'tool.start read: x', 'tool.complete y'],
    ...['message.start', 'message.delta And this.'],
  ]);
  expect(await bench.sent('session/prompt')).toHaveLength(2);
  expect(await bench.sent('session/new')).toHaveLength(1);
});

const files: Record<string, Buffer> = {
  'dot.png': PNG,
  'notes.txt': Buffer.from('remember the milk'),
  'huge.png': Buffer.concat([PNG, Buffer.alloc(6_000_000)]),
};
const attachment = async (id: string): Promise<TurnAttachment | null> => {
  const bytes = files[id];
  if (!bytes) return null;
  return {
    name: id,
    mime: sniffType(bytes.subarray(0, 4096)),
    size: bytes.length,
    read: async (n) => bytes.subarray(0, n),
  };
};

it('[AC9] files of a prompt: an image goes to an agent that takes images, text to every one, the rest by name', async () => {
  const attachments = ['dot.png', 'notes.txt', 'huge.png'];
  const sees = async (...flags: string[]): Promise<string> => {
    const turn = { workspace: bench.workspace, input: 'acp: blocks', attachments, attachment };
    const { text } = await runTurn(bench.agent(...flags), {
      ...turn,
      sessionId: `20260303_130002_aaaaa${flags.length}`,
    });
    return text;
  };
  const seeing = JSON.parse(await sees('--capabilities', 'image'));
  expect(seeing[0]).toEqual({ type: 'image', mimeType: 'image/png', data: PNG.length });
  expect(seeing[1].text).toContain('remember the milk');
  expect(seeing[2].text).toMatch(/huge\.png.*larger/);
  expect(seeing.at(-1).text).toBe('acp: blocks');
  const blind = JSON.parse(await sees());
  expect(blind[0].text).toMatch(/dot\.png.*does not take it/);
  expect(blind[1].text).toContain('remember the milk');
});

it('[AC9] files that come with what is said meanwhile are sent too', async () => {
  const words = [[{ text: 'acp: blocks', attachments: ['notes.txt'] }], []];
  const { text } = await play('say one', { attachment, steer: async () => words.shift() ?? [] });
  expect(text).toContain('remember the milk');
});

it('[AC3] an agent that has lost its session is given the transcript, and answers from it', async () => {
  const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
  await conversation.say('My name is Ann.');
  await conversation.say('acp: call read notes.txt => remember the milk; say I have read it.');
  // A server that starts anew, with a home that knows nothing of it.
  await bench.close();
  bench = await createAcpBench();
  const again = startConversation(bench.agent(), { workspace: bench.workspace });
  again.rows.push(...conversation.rows);
  const { text } = await again.say('acp: memory');
  expect(text).toContain('acp: memory');
  const [prompt] = await bench.sent('session/prompt');
  const [transcript, last] = prompt.params.prompt;
  expect(last.text).toBe('acp: memory');
  for (const said of ['My name is Ann.', 'You said: My name is Ann.', 'remember the milk', 'I have read it.']) {
    expect(transcript.text).toContain(said);
  }
});

it('[AC2] a terminal shows what it puts out while it runs, in its call', async () => {
  const outputs: string[] = [];
  const go = path.join(bench.workspace, 'go');
  const asked = { ask: async () => ({ kind: 'choice' as const, choice: 'once' as const }) };
  const running = play('term echo one;while [ ! -e go ];do sleep 0.05;done;echo two; say done', asked, (event) => {
    if (event.type === 'tool.output') outputs.push(event.payload.text);
  });
  await until('the first line is told', () => outputs.join('').includes('one'));
  await writeFile(go, '');
  const ran = await running;
  expect(outputs.join('')).toBe('one\ntwo\n');
  expect(shapeOf(ran)).toContain('tool.complete one\ntwo\n');
});
