/**
 * Anthropic's side of the fake provider: what its messages endpoint refuses, and its conversations in the shape that the
 * rest of the fake reads.
 */
import type { ChatBody, ChatMessage } from './fake-provider-strict.ts';

type Block = { type: string; text?: string; thinking?: string; signature?: string; data?: string } & {
  id?: string;
  name?: string;
  input?: unknown;
  tool_use_id?: string;
  content?: unknown;
};

export interface AnthropicBody {
  model: string;
  max_tokens: number;
  system?: unknown;
  messages: { role: string; content: string | Block[] }[];
  tools?: { name: string; description?: string; input_schema?: unknown }[];
  tool_choice?: { type: string };
  stream?: boolean;
}

const blocksOf = (content: string | Block[]): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** The faults of a request, in words; empty when it would be taken. */
export function anthropicViolations(body: AnthropicBody, headers: Record<string, unknown>): string[] {
  const faults: string[] = [];
  if (!headers['anthropic-version']) faults.push('header anthropic-version: missing');
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) faults.push('max_tokens: required');
  if (body.tools?.length === 0) faults.push('tools: empty list');
  if (Array.isArray(body.system) && body.system.length === 0) faults.push('system: empty list');
  if (!body.messages?.length) faults.push('messages: empty');
  const ids = new Set<string>();
  let open = new Set<string>();
  body.messages?.forEach(({ role, content }, at) => {
    const fault = (text: string): void => void faults.push(`messages[${at}] (${role}): ${text}`);
    if (role !== (at % 2 === 0 ? 'user' : 'assistant')) fault('roles must alternate, the user first');
    const blocks = blocksOf(content);
    if (blocks.length === 0) fault('empty content');
    let results = true;
    for (const block of blocks) {
      if (block.type === 'tool_result') {
        if (role !== 'user' || !results) fault('tool_result not at the beginning of a user message');
        if (!open.delete(block.tool_use_id ?? '')) fault(`tool_result without its tool_use: ${block.tool_use_id}`);
        if (block.content === '' || (Array.isArray(block.content) && block.content.length === 0)) fault('empty result');
        continue;
      }
      results = false;
      if (open.size > 0) fault(`tool_use without its tool_result: ${[...open].join(', ')}`);
      open = new Set();
      if (block.type === 'text' && !block.text?.trim()) fault('text content blocks must be non-empty');
      if (block.type === 'thinking' && !block.signature) fault('thinking without its signature');
    }
    for (const { id = '', name = '', input } of blocks.filter((block) => block.type === 'tool_use')) {
      if (!/^[A-Za-z0-9_-]+$/.test(id) || ids.has(id)) fault(`bad or repeated tool_use id: ${id}`);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) fault(`bad tool name: ${name}`);
      if (typeof input !== 'object' || input === null || Array.isArray(input)) fault('tool_use.input: not an object');
      if (!body.tools) fault('tool_use without tools');
      ids.add(id);
      open.add(id);
    }
  });
  if (open.size > 0) faults.push(`tool_use without its tool_result at the end: ${[...open].join(', ')}`);
  if (body.messages?.at(-1)?.role !== 'user') faults.push('ends with the assistant');
  return faults;
}

/** The conversation as chat completions would have it. */
export function chatBodyOf(body: AnthropicBody): ChatBody {
  const messages: ChatMessage[] = [];
  for (const { role, content } of body.messages) {
    const blocks = blocksOf(content);
    for (const block of blocks.filter(({ type }) => type === 'tool_result')) {
      messages.push({ role: 'tool', content: textOf(block.content), tool_call_id: block.tool_use_id ?? '' });
    }
    const text = blocks.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('');
    const calls = blocks.filter(({ type }) => type === 'tool_use');
    const tool_calls = calls.map(({ id = '', name = '', input }) => ({
      id,
      function: { name, arguments: JSON.stringify(input) },
    }));
    if (text !== '' || calls.length > 0) {
      messages.push({ role, content: text, ...(calls.length > 0 ? { tool_calls } : {}) });
    }
  }
  const tools = body.tools?.map(({ name, input_schema }) => ({
    type: 'function',
    function: { name, parameters: input_schema },
  }));
  return { model: body.model, messages, ...(tools ? { tools } : {}), stream: body.stream === true };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: Block) => part.text ?? '').join('');
}
