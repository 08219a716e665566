/**
 * From the transcript to what a provider is sent (RU7). Pure.
 *
 * Providers refuse a whole conversation for one row that is out of place, so whatever a transcript looks like after
 * interrupts, crashes, edits and other programs, what comes out here is well formed: the system prompt, then user and
 * assistant in turn, each tool call followed by exactly one result, no empty message and no empty list.
 */
import { isMarker } from '../../core/marker.ts';
import type { Message, ToolCall } from '../../core/terms.ts';
import { wellFormed, wellFormedJson } from '../../core/text.ts';
import type { ProviderMessage, ProviderPrompt, ReasoningPart } from './chat-model.ts';

/** Stands for the result of a call that never got one. */
export const INTERRUPTED_RESULT = 'The tool call was interrupted before it finished; there is no result.';
/** Stands between a tool result and the next prompt when the turn ended without an answer. */
export const NO_ANSWER = '(This turn ended without an answer.)';
/** Stands before a conversation whose first row is the assistant's. */
export const NO_BEGINNING = '(The beginning of the conversation is not available.)';
/** Some providers refuse an empty result. */
const EMPTY_RESULT = '(no output)';

/** One call with its result, ready to be sent. */
export interface SettledCall {
  id: string;
  name: string;
  /** An object; use `argumentsObject` for anything a model wrote. */
  args: Record<string, unknown>;
  result: string;
  is_error: boolean;
}

/**
 * The conversation for a provider.
 * @param system the system prompt
 * @param history the transcript before the prompt, oldest first
 * @param input the prompt
 */
export function toProviderPrompt(system: string, history: readonly Message[], input: string): ProviderPrompt {
  const prompt: ProviderPrompt = [{ role: 'system', content: system }];
  const ids = new Set<string>();
  for (const [index, row] of history.entries()) {
    if (row.role === 'user') addUser(prompt, row.content);
    // Tool rows are fetched by their calls; those without one, and notices of other programs, are not sent.
    if (row.role === 'assistant') addAssistant(prompt, textOf(row), callsOf(history, index, ids));
  }
  addUser(prompt, input);
  return prompt;
}

/** Adds a step of the running turn: what the model said and called, and what came of it. */
export function addStep(prompt: ProviderPrompt, text: string, reasoning: ReasoningPart[], calls: SettledCall[]): void {
  addAssistant(prompt, text, calls, reasoning);
}

/**
 * What a model wrote as arguments, as the object that providers insist on; anything else is kept under a name that
 * tells the model what it did.
 */
export function argumentsObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  return { invalid_arguments: value ?? null };
}

function addUser(prompt: ProviderPrompt, content: string): void {
  const text = wellFormed(content);
  if (text.trim() === '') return;
  const last = prompt.at(-1);
  if (last?.role === 'user') {
    const part = last.content[0];
    if (part?.type === 'text') part.text += `\n\n${text}`;
    return;
  }
  if (last?.role === 'tool') prompt.push({ role: 'assistant', content: [{ type: 'text', text: NO_ANSWER }] });
  prompt.push({ role: 'user', content: [{ type: 'text', text }] });
}

function addAssistant(
  prompt: ProviderPrompt,
  content: string,
  calls: SettledCall[],
  reasoning: readonly ReasoningPart[] = [],
): void {
  const text = wellFormed(content);
  if (text.trim() === '' && calls.length === 0) return;
  if (prompt.at(-1)?.role === 'system') addUser(prompt, NO_BEGINNING);
  const previous = prompt.at(-1);
  const message: Extract<ProviderMessage, { role: 'assistant' }> =
    previous?.role === 'assistant' ? previous : { role: 'assistant', content: [] };
  if (message !== previous) prompt.push(message);

  // Sent back within a turn only: models that reason between tool calls need it, and no other sends any.
  // Signed thoughts go back letter by letter, or their provider refuses them.
  for (const thought of reasoning) {
    message.content.push(thought.providerOptions ? thought : { ...thought, text: wellFormed(thought.text) });
  }
  if (text.trim() !== '') {
    const said = message.content.at(-1);
    if (said?.type === 'text') said.text += `\n\n${text}`;
    else message.content.push({ type: 'text', text });
  }
  if (calls.length === 0) return;
  for (const { id, name, args } of calls) {
    message.content.push({ type: 'tool-call', toolCallId: id, toolName: toolName(name), input: wellFormedJson(args) });
  }
  prompt.push({
    role: 'tool',
    content: calls.map(({ id, name, result, is_error }) => ({
      type: 'tool-result',
      toolCallId: id,
      toolName: toolName(name),
      output: {
        type: is_error ? 'error-text' : 'text',
        value: result.trim() === '' ? EMPTY_RESULT : wellFormed(result),
      },
    })),
  });
}

/** What the model itself wrote: a marker and the sentence of a failure were written by us. */
function textOf(row: Message): string {
  if (isMarker(row) || (row.status === 'error' && row.error?.code === 'interrupted')) return '';
  return row.error && row.content === row.error.message ? '' : row.content;
}

/** The calls of an assistant row with their results, which stand before the next prompt. */
function callsOf(history: readonly Message[], index: number, ids: Set<string>): SettledCall[] {
  const calls: SettledCall[] = [];
  const taken = new Set<Message>();
  for (const call of history[index]?.tool_calls ?? []) {
    if (!call?.function?.name) continue; // a row of another program
    const result = resultOf(history, index, call, taken);
    if (result) taken.add(result);
    calls.push({
      id: freshId(call.id, ids),
      name: call.function.name,
      args: argumentsObject(parsed(call.function.arguments)),
      result: result ? result.content : INTERRUPTED_RESULT,
      is_error: result ? result.is_error === true : true,
    });
  }
  return calls;
}

/** The first row with the result of a call, before the next prompt and before the id is called again. */
function resultOf(rows: readonly Message[], from: number, call: ToolCall, taken: Set<Message>): Message | null {
  for (const row of rows.slice(from + 1)) {
    if (row.role === 'user' || row.tool_calls?.some((other) => other.id === call.id)) return null;
    if (row.role === 'tool' && row.tool_call_id === call.id && !taken.has(row)) return row;
  }
  return null;
}

/** A model may call tools that there are not, by names that its own provider then refuses to see again. */
const toolName = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);

/**
 * The id in letters that every provider takes, made different where another call of the conversation has it (some models count from 0 in each turn), and
 * replaced where it is longer than every provider takes (the session may have changed its provider).
 */
function freshId(id: unknown, ids: Set<string>): string {
  const wanted = typeof id === 'string' && id !== '' && id.length <= 40 ? id.replace(/[^A-Za-z0-9_-]/g, '_') : 'call';
  let fresh = wanted;
  for (let n = 2; ids.has(fresh); n += 1) fresh = `${wanted}_${n}`;
  ids.add(fresh);
  return fresh;
}

function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text; // not JSON: sent as what it was
  }
}
