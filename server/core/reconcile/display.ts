/**
 * A row of any program as a browser may see it (RC9): a `Message`, made of an explicit list of fields. What only a provider
 * or a program needs stays behind.
 *
 * Formats read: the sidecars of Hermes web interfaces (leading underscores are display metadata) and messages of
 * OpenAI-compatible providers.
 */
import type { MarkerCause, Message, MessageRole, MessageStatus, ToolCall, TurnError, TurnErrorCode } from '../terms.ts';
import { wellFormed } from '../text.ts';
import { isPrivateField } from './private-fields.ts';
import { contentText, fieldOf, isMarkerRow, isOurId, type RawRow, secondsOf } from './row.ts';
import { isTodos, isWellTyped } from './well-typed.ts';

const ROLES: readonly string[] = ['user', 'assistant', 'tool', 'system'] satisfies MessageRole[];
const STATUSES: readonly unknown[] = ['complete', 'partial', 'interrupted', 'error'] satisfies MessageStatus[];
const CODES: readonly unknown[] = [
  'rate_limited',
  'quota',
  'context_too_long',
  'auth',
  'model_not_found',
  'content_filter',
  'empty_reply',
  'stalled',
  'network',
  'provider_error',
  'agent_crashed',
  'interrupted',
] satisfies TurnErrorCode[];
const CAUSES: Readonly<Record<string, MarkerCause>> = {
  process_restart: 'process_restart',
  stream_run_split_brain: 'split_brain',
  lost_worker_bookkeeping: 'lost_bookkeeping',
};
/** How a cancelled turn is labelled by the program that wrote it; there is no other sign of one. */
const CANCELLED_LABEL = 'Cancellation details';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

/**
 * What a browser may see of a row. A row of ours is returned as it is, without private fields.
 * @param id the id under which the row is shown
 */
export function toDisplay(raw: RawRow, id: string): Message {
  if (isOurId(id) && isWellTyped(raw)) return withoutPrivate(raw, id);
  const role = (ROLES.includes(raw.role) ? raw.role : raw.role === 'function' ? 'tool' : 'system') as MessageRole;
  const attachments = attachmentNames(raw.attachments);
  // A list with names needs no second sign of its images.
  const content = wellFormed(contentText(raw.content, attachments.length > 0 ? null : '[image]'));
  const message: Message = { id, role, content, timestamp: secondsOf(raw.timestamp) ?? 0 };
  const runId = textOf(raw.run_id);
  if (runId !== undefined) message.run_id = runId;
  const error = errorOf(raw, content);
  const status = statusOf(raw, role, error);
  if (status !== undefined) message.status = status;
  if (role === 'assistant') {
    const calls = toolCalls(raw.tool_calls);
    if (calls.length > 0) message.tool_calls = calls;
    const reasoning = textOf(fieldOf(raw, 'reasoning')) ?? textOf(fieldOf(raw, 'reasoning_content'));
    if (reasoning !== undefined) message.reasoning = wellFormed(reasoning);
    const model = textOf(fieldOf(raw, 'model')) ?? textOf(fieldOf(raw, '_usedModel'));
    if (model !== undefined) message.model = model;
    const todos = fieldOf(raw, 'todos');
    if (isTodos(todos)) message.todos = todos;
  }
  if (role === 'tool') {
    const callId = textOf(raw.tool_call_id);
    if (callId !== undefined) message.tool_call_id = callId;
    const name = textOf(raw.name) ?? textOf(raw.tool_name);
    if (name !== undefined) message.name = name;
    if (fieldOf(raw, 'is_error') === true) message.is_error = true;
    const duration = numberOf(fieldOf(raw, 'duration_s'));
    if (duration !== undefined) message.duration_s = duration;
    const diff = textOf(fieldOf(raw, 'diff'));
    if (diff !== undefined) message.diff = wellFormed(diff);
    if (fieldOf(raw, 'denied') === true) message.denied = true;
  }
  if (attachments.length > 0) message.attachments = attachments;
  const usage = fieldOf(raw, 'usage');
  if (isObject(usage) && numberOf(usage.input_tokens) !== undefined && numberOf(usage.output_tokens) !== undefined) {
    message.usage = usage as unknown as NonNullable<Message['usage']>;
  }
  if (['recovered', '_recovered', '_recovered_from_run_journal'].some((name) => fieldOf(raw, name) === true)) {
    message.recovered = true;
  }
  if (error) message.error = error;
  return message;
}

function withoutPrivate(raw: RawRow, id: string): Message {
  if (raw.id === id && !Object.keys(raw).some(isPrivateField)) return raw as unknown as Message;
  const fields = Object.entries({ ...raw, id }).filter(([name]) => !isPrivateField(name));
  return Object.fromEntries(fields) as unknown as Message;
}

function statusOf(raw: RawRow, role: MessageRole, error: TurnError | undefined): MessageStatus | undefined {
  const status = fieldOf(raw, 'status');
  if (STATUSES.includes(status)) return status as MessageStatus;
  if (error) return 'error';
  if (fieldOf(raw, '_partial') === true) return 'partial';
  return role === 'assistant' || role === 'tool' ? 'complete' : undefined;
}

function errorOf(raw: RawRow, content: string): TurnError | undefined {
  const own = fieldOf(raw, 'error');
  if (isObject(own) && CODES.includes(own.code) && typeof own.message === 'string') return own as unknown as TurnError;
  if (fieldOf(raw, '_error') !== true) return undefined;
  const type = fieldOf(raw, 'type');
  if (isMarkerRow(raw)) {
    const error: TurnError = { code: 'interrupted', message: content, retryable: true };
    error.cause = CAUSES[String(fieldOf(raw, 'interruption_cause'))] ?? 'unknown';
    if (fieldOf(raw, '_pending_journal_recovery') === true) error.recovery = 'pending';
    return error;
  }
  const cancelled = fieldOf(raw, 'provider_details_label') === CANCELLED_LABEL || type === 'cancelled';
  const code = cancelled ? 'interrupted' : CODES.includes(type) ? (type as TurnErrorCode) : 'provider_error';
  return { code, message: content, retryable: true };
}

/** Names of attachments, which are texts or objects with a name; a folder of this machine is not shown. */
function attachmentNames(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const names = value.map((one: unknown) => {
    if (typeof one === 'string') return one;
    return isObject(one) ? (textOf(one.name) ?? textOf(one.filename) ?? textOf(one.path) ?? '') : '';
  });
  return names.map((name) => name.split(/[\\/]/).at(-1) ?? '').filter((name) => name !== '');
}

/** The tool calls that have the shape of OpenAI-compatible providers. */
function toolCalls(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((call: unknown): ToolCall[] => {
    if (!isObject(call) || !isObject(call.function)) return [];
    const [id, name] = [textOf(call.id), textOf(call.function.name)];
    if (id === undefined || name === undefined) return [];
    const args = call.function.arguments ?? {};
    return [
      { id, type: 'function', function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) } },
    ];
  });
}
