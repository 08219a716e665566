/**
 * How an answer is written on the wire: as chunks of OpenAI's chat completions, or as the events of Anthropic's messages.
 * Both say the same things. (OpenAI's responses are in fake-provider-responses.)
 */
import type { ScriptedCall } from './fake-provider-steps.ts';
import type { ChatBody } from './fake-provider-strict.ts';

export interface Dialect {
  text(content: string): string;
  reasoning(text: string): string;
  /** A call in a head and `pieces` pieces of its arguments each, as packets. */
  calls(calls: readonly ScriptedCall[], pieces: number): string[];
  emptyCalls(): string;
  error(error: unknown): string;
  frame(value: unknown): string;
  broken: string;
  /** The end of an answer, as packets. */
  end(end: { finish: string | null; called: boolean; usage: Record<string, unknown> | null }): string[];
  done: string;
}

export const piecesOf = (text: string, pieces: number): string[] =>
  text.match(new RegExp(`[^]{1,${Math.max(1, Math.ceil(text.length / pieces))}}`, 'g')) ?? [];

export const argumentsOf = ({ args }: ScriptedCall): string =>
  typeof args === 'string' ? args : JSON.stringify(args ?? {});

/** Chunks of chat completions. */
export function openAiDialect(body: ChatBody): Dialect {
  const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
  const head = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 1, model: body.model };
  const chunk = (delta: unknown, finish_reason: string | null = null): string =>
    frame({ ...head, choices: [{ index: 0, delta, finish_reason }] });
  return {
    text: (content) => chunk({ content }),
    reasoning: (reasoning_content) => chunk({ reasoning_content }),
    calls: (calls, pieces) =>
      calls
        .flatMap((call, index) => {
          const { id, name } = call;
          const first = { index, id: id ?? `call_${index}`, type: 'function', function: { name, arguments: '' } };
          const rest = piecesOf(argumentsOf(call), pieces);
          return [first, ...rest.map((piece) => ({ index, function: { arguments: piece } }))];
        })
        .map((delta) => chunk({ tool_calls: [delta] })),
    emptyCalls: () => chunk({ tool_calls: [] }),
    error: (error) => frame({ error }),
    frame,
    broken: 'data: {"id":"chatcmpl-fake","choices":[{"delta":{"cont\n\n',
    end({ finish, called, usage }) {
      const packets = [chunk({}, finish ?? (called ? 'tool_calls' : 'stop'))];
      const counts = usage ?? { prompt_tokens: 10 * body.messages.length, completion_tokens: 7, total_tokens: 0 };
      if (usage || body.stream_options?.include_usage) packets.push(frame({ ...head, choices: [], usage: counts }));
      return [...packets, this.done];
    },
    done: 'data: [DONE]\n\n',
  };
}

/** Events of the messages protocol. One answer, so it counts its blocks; clients join answers that have the same id. */
export function anthropicDialect(model: string, id: string): Dialect {
  const event = (value: { type: string } & Record<string, unknown>): string =>
    `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  let begun = false;
  let index = -1;
  let open: string | null = null;

  const begin = (): string => {
    if (begun) return '';
    begun = true;
    const usage = { input_tokens: 10, output_tokens: 1 };
    const message = {
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      usage,
    };
    return event({ type: 'message_start', message }) + event({ type: 'ping' });
  };
  const close = (): string => {
    if (open === null) return '';
    const signed =
      open === 'thinking'
        ? event({
            type: 'content_block_delta',
            index,
            delta: { type: 'signature_delta', signature: `signed-${index}` },
          })
        : '';
    open = null;
    return signed + event({ type: 'content_block_stop', index });
  };
  const block = (type: string, content: Record<string, unknown>): string => {
    const before = begin() + close();
    index += 1;
    open = type;
    return before + event({ type: 'content_block_start', index, content_block: { type, ...content } });
  };
  const within = (type: 'text' | 'thinking', content: Record<string, unknown>): string =>
    open === type ? '' : block(type, content);
  const delta = (content: Record<string, unknown>): string =>
    event({ type: 'content_block_delta', index, delta: content });

  return {
    text: (text) => within('text', { text: '' }) + delta({ type: 'text_delta', text }),
    reasoning: (thinking) =>
      within('thinking', { thinking: '', signature: '' }) + delta({ type: 'thinking_delta', thinking }),
    calls: (calls, pieces) =>
      calls.flatMap((call, at) => [
        block('tool_use', { id: call.id ?? `toolu_${at}`, name: call.name, input: {} }),
        ...piecesOf(argumentsOf(call), pieces).map((piece) => delta({ type: 'input_json_delta', partial_json: piece })),
      ]),
    emptyCalls: () => begin(),
    error: (error) => event({ type: 'error', error }),
    frame: (value) => begin() + event(value as { type: string }),
    broken: 'event: content_block_delta\ndata: {"type":"content_block_delta","ind\n\n',
    end({ finish, called, usage }) {
      const stop_reason = finish ?? (called ? 'tool_use' : 'end_turn');
      const counts = usage ?? { output_tokens: 7 };
      return [
        begin() + close(),
        event({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: counts }),
        this.done,
      ];
    },
    done: event({ type: 'message_stop' }),
  };
}
