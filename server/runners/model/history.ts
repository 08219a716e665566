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
import { addPart, type UserPart } from './attached.ts';
import { argumentsObject, readCallArguments } from './call-arguments.ts';
import type { ProviderMessage, ProviderPrompt, ReasoningPart } from './chat-model.ts';

/** Stands for the result of a call that never got one. */
export const INTERRUPTED_RESULT = 'The tool call was interrupted before it finished; there is no result.';
/** Stands between a tool result and the next prompt when the turn ended without an answer. */
export const NO_ANSWER = '(This turn ended without an answer.)';
/** Stands between a tool result and what the person says in the middle of the turn. */
export const SAID_MEANWHILE = '(The user says something while this is being done.)';
/** Stands before a conversation whose first row is the assistant's. */
export const NO_BEGINNING = '(The beginning of the conversation is not available.)';
/** Some providers refuse an empty result. */
const EMPTY_RESULT = '(no output)';

type UserMessage = Extract<ProviderMessage, { role: 'user' }>;

/** The files of a conversation. */
export interface PromptFiles {
  /** Ids of those of the prompt. */
  given: readonly string[];
  /** What a model is told of these. */
  partsOf(ids: readonly string[] | undefined): UserPart[];
}

const NO_FILES: PromptFiles = { given: [], partsOf: () => [] };

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
 * @param files what stands for the files of the prompt and of the rows
 */
export function toProviderPrompt(
  system: string,
  history: readonly Message[],
  input: string,
  files: PromptFiles = NO_FILES,
): ProviderPrompt {
  const prompt: ProviderPrompt = [{ role: 'system', content: system }];
  const ids = new Set<string>();
  const last = lastPlaces(history, files.given);
  for (const [index, row] of history.entries()) {
    const within = row.run_id !== undefined && history[index - 1]?.run_id === row.run_id;
    if (row.role === 'user') {
      const here = row.attachments?.filter((one) => last.get(one) === index);
      addUser(prompt, row.content, within ? SAID_MEANWHILE : NO_ANSWER, files.partsOf(here));
    }
    // Tool rows are fetched by their calls; those without one, and notices of other programs, are not sent.
    if (row.role === 'assistant') addAssistant(prompt, textOf(row), callsOf(history, index, ids));
  }
  addUser(prompt, input, NO_ANSWER, files.partsOf(files.given));
  return prompt;
}

/** Where each file was named last, where it is sent: nothing is sent twice. The prompt is behind the last row. */
function lastPlaces(history: readonly Message[], given: readonly string[]): Map<string, number> {
  const places = new Map<string, number>();
  for (const [index, row] of history.entries()) for (const id of row.attachments ?? []) places.set(id, index);
  for (const id of given) places.set(id, history.length);
  return places;
}

/** Adds a step of the running turn: what the model said and called, and what came of it. */
export function addStep(prompt: ProviderPrompt, text: string, reasoning: ReasoningPart[], calls: SettledCall[]): void {
  const ids = new Set(prompt.flatMap(callIdsOf));
  // One that was made different in the history may be the very one that the model has made now.
  const fresh = calls.map((call) => ({ ...call, id: freshId(call.id, ids) }));
  addAssistant(prompt, text, fresh, reasoning);
}

const callIdsOf = (message: ProviderMessage): string[] =>
  message.role === 'assistant' ? message.content.flatMap((p) => (p.type === 'tool-call' ? [p.toolCallId] : [])) : [];

/** Adds what the person said in the middle of the turn. It may stand behind the results of a step. */
export function addInput(prompt: ProviderPrompt, text: string, files: UserPart[] = []): void {
  addUser(prompt, text, SAID_MEANWHILE, files);
}

/**
 * @param filler what stands between the results of a step and this: a provider wants the assistant's word there
 * @param files what stands for the files that came with it
 */
function addUser(prompt: ProviderPrompt, content: string, filler = NO_ANSWER, files: readonly UserPart[] = []): void {
  const text = wellFormed(content);
  const parts = text.trim() === '' ? files : [...files, { type: 'text' as const, text }];
  if (parts.length === 0) return;
  const last = prompt.at(-1);
  if (last?.role === 'tool') prompt.push({ role: 'assistant', content: [{ type: 'text', text: filler }] });
  const message: UserMessage = last?.role === 'user' ? last : { role: 'user', content: [] };
  if (message !== last) prompt.push(message);
  for (const part of parts) addPart(message.content, part);
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
export function textOf(row: Message): string {
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
      args: argumentsObject(readCallArguments(call.function.arguments)),
      result: result ? result.content : INTERRUPTED_RESULT,
      is_error: result ? result.is_error === true : true,
    });
  }
  return calls;
}

/** The first row with the result of a call, before the next prompt and before the id is called again. */
function resultOf(rows: readonly Message[], from: number, call: ToolCall, taken: Set<Message>): Message | null {
  for (let at = from + 1; at < rows.length; at += 1) {
    const row = rows[at]!;
    if (row.role === 'user' || row.tool_calls?.some((other) => other?.id === call.id)) return null;
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
