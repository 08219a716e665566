/** What goes to a provider: from any transcript to a conversation that the pickiest provider takes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { summaryRow } from '../../server/core/compaction.ts';
import { markerRow } from '../../server/core/marker.ts';
import type { Message, ToolCall } from '../../server/core/terms.ts';
import { createChatModels, type ProviderPrompt } from '../../server/runners/model/chat-model.ts';
import { createConversation } from '../../server/runners/model/conversation.ts';
import {
  addInput,
  addStep,
  INTERRUPTED_RESULT,
  NO_ANSWER,
  NO_BEGINNING,
  toProviderPrompt,
} from '../../server/runners/model/history.ts';
import { type AnthropicBody, anthropicViolations } from '../support/fake-provider-anthropic.ts';
import { type ChatBody, violationsOf } from '../support/fake-provider-strict.ts';
import { providerAt } from './model-bench.ts';

const RUN = '0123456789abcdef0123456789abcdef';
let at = 0;
const row = (role: Message['role'], content: string, more: Partial<Message> = {}): Message => {
  at += 1;
  return { id: `${RUN}.${at}`, role, content, timestamp: at, ...more };
};
const user = (content: string) => row('user', content);
const said = (content: string, more: Partial<Message> = {}) => row('assistant', content, more);
const call = (id: string, args = '{}'): ToolCall => ({
  id,
  type: 'function',
  function: { name: 'read_file', arguments: args },
});
const result = (id: string, content: string, more: Partial<Message> = {}) =>
  row('tool', content, { tool_call_id: id, name: 'read_file', ...more });

/** The bytes that would go to the provider: the SDK's own conversion is part of what is tested. */
async function wireOf(prompt: ProviderPrompt): Promise<ChatBody> {
  let body = '';
  const model = await createChatModels(async (_url, init) => {
    body = String(init?.body);
    return new Response('', { headers: { 'content-type': 'text/event-stream' } });
  })(providerAt('http://provider/v1'), 'm');
  await model.chat.doStream({ prompt });
  return JSON.parse(body) as ChatBody;
}

/** The same for a provider of the messages protocol. */
async function anthropicWireOf(prompt: ProviderPrompt): Promise<[AnthropicBody, Record<string, unknown>]> {
  let sent: RequestInit | undefined;
  const provider = { ...providerAt('http://provider/v1'), kind: 'anthropic' as const, apiKey: 'key' };
  const model = await createChatModels(async (_url, init) => {
    sent = init;
    return new Response('', { headers: { 'content-type': 'text/event-stream' } });
  })(provider, 'm');
  await model.chat.doStream({ prompt, tools: [ANY_TOOL] });
  return [JSON.parse(String(sent?.body)), Object.fromEntries(new Headers(sent?.headers))];
}

const ANY_TOOL = { type: 'function' as const, name: 'read_file', inputSchema: { type: 'object' as const } };

const send = async (history: Message[], input = 'next') => {
  const body = await wireOf(toProviderPrompt('system', history, input));
  expect(violationsOf(body)).toEqual([]);
  expect(body.messages[0]).toEqual({ role: 'system', content: 'system' });
  return body.messages.slice(1);
};
/** `role: text` of each message, with the ids of calls and results. */
const brief = async (history: Message[], input = 'next') =>
  (await send(history, input)).map((message) => {
    const ids = message.tool_calls?.map(({ id }) => id) ?? (message.tool_call_id ? [message.tool_call_id] : []);
    return `${message.role}${ids.length ? `[${ids}]` : ''}: ${message.content ?? ''}`;
  });

const failed: Partial<Message> = {
  status: 'error',
  error: { code: 'provider_error', message: 'It could not answer.', retryable: true },
};

const TABLE: [title: string, history: () => Message[], expected: string[]][] = [
  ['an empty transcript', () => [], ['user: next']],
  ['a plain exchange', () => [user('a'), said('b')], ['user: a', 'assistant: b', 'user: next']],
  ['a failed turn without text is not an answer', () => [user('a'), said('', failed)], ['user: a\n\nnext']],
  [
    'a failed turn keeps the text it had',
    () => [user('a'), said('half', failed)],
    ['user: a', 'assistant: half', 'user: next'],
  ],
  [
    'the sentence of a failure is not the model’s',
    () => [user('a'), said('It could not answer.', failed)],
    ['user: a\n\nnext'],
  ],
  [
    'interrupted and recovered text is sent',
    () => [user('a'), said('b', { status: 'interrupted' }), user('c'), said('d', { status: 'partial' })],
    ['user: a', 'assistant: b', 'user: c', 'assistant: d', 'user: next'],
  ],
  [
    'a marker is not sent',
    () => [user('a'), said('part', { status: 'partial' }), markerRow(RUN, 9, 'process_restart', 'recovered')],
    ['user: a', 'assistant: part', 'user: next'],
  ],
  [
    'a marker of another program is not sent',
    () => [
      user('a'),
      said('Response interrupted', { status: 'error', error: { code: 'interrupted', message: 'x', retryable: true } }),
    ],
    ['user: a\n\nnext'],
  ],
  [
    'calls with their results, in the order of the calls',
    () => [user('a'), said('', { tool_calls: [call('x'), call('y')] }), result('y', 'Y'), result('x', 'X'), said('b')],
    ['user: a', 'assistant[x,y]: ', 'tool[x]: X', 'tool[y]: Y', 'assistant: b', 'user: next'],
  ],
  [
    'a call without a result gets one',
    () => [user('a'), said('t', { tool_calls: [call('x'), call('y')] }), result('x', 'X')],
    [
      'user: a',
      'assistant[x,y]: t',
      'tool[x]: X',
      `tool[y]: ${INTERRUPTED_RESULT}`,
      `assistant: ${NO_ANSWER}`,
      'user: next',
    ],
  ],
  [
    'a result without a call is dropped',
    () => [user('a'), result('z', 'Z'), said('b')],
    ['user: a', 'assistant: b', 'user: next'],
  ],
  [
    'a second result of a call is dropped',
    () => [user('a'), said('', { tool_calls: [call('x')] }), result('x', '1'), result('x', '2'), said('b')],
    ['user: a', 'assistant[x]: ', 'tool[x]: 1', 'assistant: b', 'user: next'],
  ],
  [
    'a result behind the next prompt belongs to nothing',
    () => [user('a'), said('', { tool_calls: [call('x')] }), user('b'), result('x', 'late')],
    ['user: a', 'assistant[x]: ', `tool[x]: ${INTERRUPTED_RESULT}`, `assistant: ${NO_ANSWER}`, 'user: b\n\nnext'],
  ],
  [
    'the same id in two turns',
    () => [
      user('a'),
      said('', { tool_calls: [call('x')] }),
      result('x', '1'),
      said('b'),
      user('c'),
      said('', { tool_calls: [call('x')] }),
      result('x', '2'),
      said('d'),
    ],
    [
      'user: a',
      'assistant[x]: ',
      'tool[x]: 1',
      'assistant: b',
      'user: c',
      'assistant[x_2]: ',
      'tool[x_2]: 2',
      'assistant: d',
      'user: next',
    ],
  ],
  [
    'an empty list of calls and an empty message',
    () => [user('a'), said('b', { tool_calls: [] }), user('c'), said('', { tool_calls: [] })],
    ['user: a', 'assistant: b', 'user: c\n\nnext'],
  ],
  ['prompts in a row are one', () => [user('a'), user('b')], ['user: a\n\nb\n\nnext']],
  ['answers in a row are one', () => [user('a'), said('b'), said('c')], ['user: a', 'assistant: b\n\nc', 'user: next']],
  [
    'an answer before the first prompt',
    () => [said('hello')],
    [`user: ${NO_BEGINNING}`, 'assistant: hello', 'user: next'],
  ],
  [
    'notices of other programs are not sent',
    () => [row('system', 'notice'), user('a'), said('b')],
    ['user: a', 'assistant: b', 'user: next'],
  ],
  [
    'an empty result is said to be empty',
    () => [user('a'), said('', { tool_calls: [call('x')] }), result('x', ''), said('b')],
    ['user: a', 'assistant[x]: ', 'tool[x]: (no output)', 'assistant: b', 'user: next'],
  ],
  [
    'an id that no other provider takes',
    () => [user('a'), said('', { tool_calls: [call('i'.repeat(99))] }), result('i'.repeat(99), 'X'), said('b')],
    ['user: a', 'assistant[call]: ', 'tool[call]: X', 'assistant: b', 'user: next'],
  ],
  [
    'text that is not well formed',
    () => [user('a\ud83d'), said('b\0')],
    ['user: a\ufffd', 'assistant: b\ufffd', 'user: next'],
  ],
];

describe('[RU7] what goes to a provider is well paired and alternates', () => {
  it.each(TABLE)('[RU7] %s', async (_title, history, expected) => {
    expect(await brief(history())).toEqual(expected);
  });

  it('[RU7] arguments are always an object, and what was none says so', async () => {
    const calls = ['{"a":1}', '', '{"a": ', '[1]', '"{\\"a\\": "'].map((args, n) => call(`c${n}`, args));
    const messages = await send([user('a'), said('', { tool_calls: calls }), said('b')]);
    const sent = messages[1]?.tool_calls?.map((sentCall) => JSON.parse(sentCall.function.arguments) as unknown);
    expect(sent).toEqual([
      { a: 1 },
      {},
      { invalid_arguments: '{"a": ' },
      { invalid_arguments: [1] },
      { invalid_arguments: '{"a": ' },
    ]);
  });

  it('[RU7] arguments that are nested too deep to be sent are sent as text', async () => {
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    const messages = await send([user('a'), said('', { tool_calls: [call('c', deep)] }), said('b')]);
    expect(JSON.parse(messages[1]!.tool_calls![0]!.function.arguments)).toEqual({ invalid_arguments: deep });
  });

  it('[RU7] the transcript is not changed', () => {
    const history = [user('a'), user('b'), said('c', { tool_calls: [call('x')] })];
    const before = structuredClone(history);
    toProviderPrompt('system', history, 'next');
    expect(history).toEqual(before);
  });

  it('[RU7] any transcript at all, with any turn behind it, becomes a conversation that every strict provider takes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyRow, { maxLength: 14 }),
        fc.nat(14),
        fc.boolean(),
        fc.array(anyStep),
        async (rows, cut, hasSummary, steps) => {
          // As behind a summary whose place is anywhere, also in the middle of a tool block.
          const history = hasSummary
            ? [summaryRow({ text: 'What was before.', created_at: 1 }), ...rows.slice(cut)]
            : rows;
          const conversation = await createConversation(rows, (of) => toProviderPrompt('system', of, 'next'));
          for (const { text, calls, input } of steps) {
            conversation.add((prompt) => addStep(prompt, text, [], calls));
            if (input !== null) conversation.add((prompt) => addInput(prompt, input));
          }
          await conversation.rebase(history);
          const last = steps.at(-1);
          // A turn goes on behind results or a person's words; an answer without either is its end.
          if (last && last.calls.length === 0 && !last.input?.trim())
            conversation.add((prompt) => addInput(prompt, 'go on'));
          const body = await wireOf(conversation.prompt());
          expect(violationsOf(body)).toEqual([]);
          expect(JSON.stringify(body)).not.toContain('Response interrupted');
          const [anthropic, headers] = await anthropicWireOf(conversation.prompt());
          expect(anthropicViolations(anthropic, headers)).toEqual([]);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('[RU7] an id that the model makes anew within a turn is not one that the history was given', async () => {
    const history = [
      user('a'),
      said('', { tool_calls: [call('x')] }),
      result('x', '1'),
      said('b'),
      user('c'),
      said('', { tool_calls: [call('x')] }),
      result('x', '2'),
      said('d'),
    ];
    const prompt = toProviderPrompt('system', history, 'next');
    addStep(prompt, '', [], [{ id: 'x_2', name: 'read_file', args: {}, result: '3', is_error: false }]);
    const { messages } = await wireOf(prompt);
    expect(messages.flatMap(({ tool_calls }) => tool_calls?.map(({ id }) => id) ?? [])).toEqual(['x', 'x_2', 'x_2_2']);
  });
});

const ids = fc.constantFrom('x', 'y', '', 'x_2', 'z'.repeat(60), 'call:1');
const texts = fc.constantFrom('', ' ', 'some text', 'half \ud83d', '\0');
const names = fc.constantFrom('read_file', 'no such!', 'n'.repeat(90));
const anyRow: fc.Arbitrary<Message> = fc
  .record({
    role: fc.constantFrom<Message['role']>('user', 'assistant', 'assistant', 'assistant', 'tool', 'tool', 'system'),
    content: texts,
    calls: fc.array(
      fc.oneof(
        { weight: 6, arbitrary: fc.tuple(ids, fc.constantFrom('{}', '{"a":', '[]', '{"\ud83d":1}'), names) },
        // As another program may have left it.
        { weight: 1, arbitrary: fc.constantFrom(null, {}, { id: 7, function: { name: 'list', arguments: { a: 1 } } }) },
      ),
      { maxLength: 3 },
    ),
    id: ids,
    state: fc.constantFrom('complete', 'interrupted', 'partial', 'failed', 'marker'),
    run_id: fc.constantFrom('run1', 'run2', undefined),
  })
  .map(({ role, content, calls, id, state, run_id }) => {
    const of = run_id === undefined ? {} : { run_id };
    if (role === 'tool') return row(role, content, { ...of, tool_call_id: id });
    if (role !== 'assistant') return row(role, content, of);
    if (state === 'marker') return markerRow(RUN, 1, 'unknown', 'none');
    const tool_calls = calls.map((one) =>
      Array.isArray(one) ? { ...call(one[0], one[1]), function: { name: one[2], arguments: one[1] } } : one,
    ) as ToolCall[];
    const how = state === 'failed' ? failed : { status: state as NonNullable<Message['status']> };
    return row(role, content, { ...of, ...how, tool_calls });
  });
const anyStep = fc.record({
  text: texts,
  calls: fc.array(
    fc.record({ id: ids, name: names, args: fc.constant({ path: 'a' }), result: texts, is_error: fc.boolean() }),
    {
      maxLength: 2,
    },
  ),
  input: fc.option(texts),
});
