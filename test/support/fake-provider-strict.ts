/**
 * What the pickiest of providers refuse in a conversation, as one function: roles that do not alternate, calls without
 * exactly one result, results without a call, empty lists, empty messages, arguments that are not JSON objects, empty parts,
 * parts that only a person may send, text that is not well formed.
 */
import { toolFaults } from './fake-provider-tools.ts';

export interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: { id: string; type?: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
  reasoning_content?: string;
}

export interface ChatBody {
  model: string;
  messages: ChatMessage[];
  tools?: { type: string; function: { name: string; description?: string; parameters?: unknown } }[];
  tool_choice?: unknown;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
}

/** The faults of a request, in words; empty when the pickiest provider would take it. */
export function violationsOf(body: ChatBody): string[] {
  const faults: string[] = [];
  const messages = Array.isArray(body.messages) ? body.messages : [];
  if (messages.length === 0) faults.push('messages: empty');
  if (body.tools && body.tools.length === 0) faults.push('tools: empty list');
  faults.push(...toolFaults(body.tools ?? []));
  const ids = new Set<string>();
  let open = new Set<string>();
  let previous = '';
  messages.forEach((message, at) => {
    const fault = (text: string): void => void faults.push(`messages[${at}] (${message.role}): ${text}`);
    const { role } = message;
    for (const problem of contentFaults(message)) fault(problem);
    if (role === 'tool') {
      if (!message.tool_call_id || !open.delete(message.tool_call_id)) fault('a result without an open call');
    } else {
      if (open.size > 0) fault(`calls without a result before it: ${[...open].join(', ')}`);
      open = new Set();
    }
    if (role === 'system' && at > 0) fault('not at the beginning');
    if (role === 'user' && !['', 'system', 'assistant'].includes(previous)) fault(`after ${previous}`);
    if (role === 'assistant' && !['user', 'tool'].includes(previous)) fault(`after ${previous || 'nothing'}`);
    if (!['system', 'user', 'assistant', 'tool'].includes(role)) fault('unknown role');
    const hasText =
      typeof message.content === 'string' ? message.content.trim() !== '' : Array.isArray(message.content);
    if (!hasText && !message.tool_calls) fault('empty');
    if (message.tool_calls) {
      if (message.tool_calls.length === 0) fault('empty tool_calls');
      for (const { id, function: called } of message.tool_calls) {
        if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) fault(`bad call id: ${id}`);
        if (!id || ids.has(id)) fault(`call id missing or used before: ${id}`);
        ids.add(id);
        open.add(id);
        if (!/^[A-Za-z0-9_-]{1,64}$/.test(called.name)) fault(`bad tool name: ${called.name}`);
        if (!isJsonObject(called.arguments)) fault(`arguments are not a JSON object: ${called.arguments}`);
      }
    }
    previous = role;
  });
  if (open.size > 0) faults.push(`calls without a result at the end: ${[...open].join(', ')}`);
  if (previous !== 'user' && previous !== 'tool') faults.push(`ends with ${previous || 'nothing'}`);
  return faults;
}

const MALFORMED = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\0/;

function contentFaults(message: ChatMessage): string[] {
  const { role, content } = message;
  const faults: string[] = [];
  if (MALFORMED.test(jsonTexts(message))) faults.push('text that is not well formed');
  if (role === 'tool' && typeof content === 'string' && content.trim() === '') faults.push('empty result');
  if (role === 'system' && (typeof content !== 'string' || content.trim() === '')) faults.push('no text');
  if (!Array.isArray(content)) return faults;
  if (content.length === 0) faults.push('empty list of parts');
  for (const part of content as { type?: string; text?: string }[]) {
    if (part.type === 'text' && !part.text?.trim()) faults.push('empty text part');
    if (part.type !== 'text' && role !== 'user') faults.push(`a part of type ${part.type}`);
  }
  return faults;
}

/** All texts of a message. */
function jsonTexts(value: unknown): string {
  if (typeof value === 'string') return value;
  return value !== null && typeof value === 'object' ? Object.values(value).map(jsonTexts).join(' ') : '';
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
