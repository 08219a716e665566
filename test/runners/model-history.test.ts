/** What goes to a provider: from any transcript to a conversation that the pickiest provider takes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { markerRow } from '../../server/core/marker.ts';
import type { Message, ToolCall } from '../../server/core/terms.ts';
import { createChatModels, type ProviderPrompt } from '../../server/runners/model/chat-model.ts';
import { INTERRUPTED_RESULT, NO_ANSWER, NO_BEGINNING, toProviderPrompt } from '../../server/runners/model/history.ts';
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

  it('[RU7] the transcript is not changed', () => {
    const history = [user('a'), user('b'), said('c', { tool_calls: [call('x')] })];
    const before = structuredClone(history);
    toProviderPrompt('system', history, 'next');
    expect(history).toEqual(before);
  });

  it('[RU7] any transcript at all becomes a conversation that a strict provider takes', async () => {
    const ids = fc.constantFrom('x', 'y', '', 'z'.repeat(60));
    const text = fc.constantFrom('', ' ', 'some text', 'half \ud83d');
    const anyRow: fc.Arbitrary<Message> = fc
      .record({
        role: fc.constantFrom(
          'user' as const,
          'assistant' as const,
          'assistant' as const,
          'tool' as const,
          'system' as const,
        ),
        content: text,
        calls: fc.array(fc.tuple(ids, fc.constantFrom('{}', '{"a":', '[]'), fc.constantFrom('read_file', 'no such!'))),
        id: ids,
        isMarker: fc.boolean(),
      })
      .map(({ role, content, calls, id, isMarker }) => {
        if (role === 'tool') return row(role, content, { tool_call_id: id });
        if (role !== 'assistant') return row(role, content);
        if (isMarker) return markerRow(RUN, 1, 'unknown', 'none');
        const tool_calls = calls.map(([callId, args, name]) => ({
          ...call(callId, args),
          function: { name, arguments: args },
        }));
        return row(role, content, { tool_calls });
      });
    await fc.assert(
      fc.asyncProperty(fc.array(anyRow, { maxLength: 12 }), async (history) => {
        const body = await wireOf(toProviderPrompt('system', history, 'next'));
        expect(violationsOf(body)).toEqual([]);
        expect(JSON.stringify(body)).not.toContain('Response interrupted');
      }),
      { numRuns: 300 },
    );
  });
});
