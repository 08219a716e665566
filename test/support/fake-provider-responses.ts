/**
 * OpenAI's responses protocol in the fake provider: what it refuses, its conversations in the shape that the rest of the fake
 * reads, and its events. Only what agents use of it.
 */
import { argumentsOf, type Dialect, piecesOf } from './fake-provider-dialects.ts';
import type { ChatBody, ChatMessage } from './fake-provider-strict.ts';

interface Item {
  type: string;
  role?: string;
  content?: string | { text?: string }[];
  call_id?: string;
  name?: string;
  arguments?: string;
  output?: unknown;
}

export interface ResponsesBody {
  model: string;
  input: string | Item[];
  tools?: { type: string; name?: string; parameters?: unknown }[];
  stream?: boolean;
}

const itemsOf = ({ input }: ResponsesBody): Item[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;

/** The faults of a request, in words; empty when it would be taken. */
export function responsesViolations(body: ResponsesBody): string[] {
  const faults: string[] = [];
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const { type, call_id = '' } of itemsOf(body)) {
    if (type === 'function_call') {
      if (seen.has(call_id)) faults.push(`call id used before: ${call_id}`);
      seen.add(call_id);
      open.add(call_id);
    }
    if (type === 'function_call_output' && !open.delete(call_id)) faults.push(`an output without its call: ${call_id}`);
  }
  if (open.size > 0) faults.push(`calls without an output: ${[...open].join(', ')}`);
  return faults;
}

/** The conversation as chat completions would have it. */
export function chatBodyOfResponses(body: ResponsesBody): ChatBody {
  const messages: ChatMessage[] = [];
  for (const { type, role, content, call_id = '', name = '', arguments: args = '', output } of itemsOf(body)) {
    if (type === 'message') messages.push({ role: role ?? 'user', content: textOf(content) });
    if (type === 'function_call') {
      messages.push({ role: 'assistant', tool_calls: [{ id: call_id, function: { name, arguments: args } }] });
    }
    if (type === 'function_call_output')
      messages.push({ role: 'tool', content: textOf(output), tool_call_id: call_id });
  }
  const tools = body.tools?.map(({ name = '', parameters }) => ({ type: 'function', function: { name, parameters } }));
  return { model: body.model, messages, ...(tools ? { tools } : {}), stream: body.stream === true };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: string }) => part.text ?? '').join('');
}

/** Events of one answer, which has that id. */
export function responsesDialect(id: string): Dialect {
  const event = (value: { type: string } & Record<string, unknown>): string =>
    `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  let begun = false;
  let output_index = -1;
  let open: { kind: 'message' | 'reasoning'; text: string } | null = null;

  const begin = (): string => {
    if (begun) return '';
    begun = true;
    return event({ type: 'response.created', response: { id } });
  };
  const itemId = (): string => `${id}_${output_index}`;
  const itemOf = (kind: 'message' | 'reasoning', text: string): Record<string, unknown> =>
    kind === 'message'
      ? { type: kind, id: itemId(), role: 'assistant', content: text ? [{ type: 'output_text', text }] : [] }
      : { type: kind, id: itemId(), summary: text ? [{ type: 'summary_text', text }] : [], encrypted_content: null };
  const close = (): string => {
    if (!open) return '';
    const item = itemOf(open.kind, open.text);
    open = null;
    return event({ type: 'response.output_item.done', output_index, item });
  };
  const within = (kind: 'message' | 'reasoning', delta: string): string => {
    let before = '';
    if (open?.kind !== kind) {
      before = begin() + close();
      output_index += 1;
      open = { kind, text: '' };
      before += event({ type: 'response.output_item.added', output_index, item: itemOf(kind, '') });
      if (kind === 'reasoning') before += event({ type: 'response.reasoning_summary_part.added', summary_index: 0 });
    }
    open = { kind, text: (open?.text ?? '') + delta };
    const place = { item_id: itemId(), output_index, delta };
    return kind === 'message'
      ? before + event({ type: 'response.output_text.delta', content_index: 0, ...place })
      : before + event({ type: 'response.reasoning_summary_text.delta', summary_index: 0, ...place });
  };

  return {
    text: (text) => within('message', text),
    reasoning: (text) => within('reasoning', text),
    calls: (calls, pieces) =>
      calls.flatMap((call, at) => {
        const before = begin() + close();
        output_index += 1;
        const args = argumentsOf(call);
        const head = { type: 'function_call', id: itemId(), call_id: call.id ?? `call_${at}`, name: call.name };
        const place = { item_id: itemId(), output_index };
        return [
          before + event({ type: 'response.output_item.added', output_index, item: { ...head, arguments: '' } }),
          ...piecesOf(args, pieces).map((delta) =>
            event({ type: 'response.function_call_arguments.delta', ...place, delta }),
          ),
          event({ type: 'response.output_item.done', output_index, item: { ...head, arguments: args } }),
        ];
      }),
    emptyCalls: () => begin(),
    error: (error) => event({ type: 'response.failed', response: { id, error } }),
    frame: (value) => begin() + event(value as { type: string }),
    broken: 'event: response.output_text.delta\ndata: {"type":"response.output_te\n\n',
    end({ usage }) {
      const counts = usage ?? { input_tokens: 10, output_tokens: 7, total_tokens: 17 };
      return [begin() + close(), event({ type: 'response.completed', response: { id, usage: counts } })];
    },
    done: '',
  };
}
