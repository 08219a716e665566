/** Between rows of the state DB and the words of the project: one mapping for each table, both ways. */
import { isMarker } from '../server/core/marker.ts';
import type { RawRow } from '../server/core/reconcile/row.ts';
import type { Admission, Message, MessageRole, Mode, Outcome } from '../server/core/terms.ts';
import type { messages, sessionAdmissions, sessions } from './schema.ts';
import type { OpenRow, SessionRow } from './stores.ts';
import { columnText, contentOf, parsedOr } from './structured-content.ts';

type AdmissionRecord = typeof sessionAdmissions.$inferSelect;
type MessageRecord = typeof messages.$inferSelect;
type SessionRecord = typeof sessions.$inferSelect;

/** The prompt as `payload_json` holds it, and as its digest covers it. */
export interface Payload {
  text: string;
  attachments: string[];
  mode: Mode;
}

/** What a damaged column still says. A value that is none costs its field, and never the row or the list that it is in (RE6). */
const objectOf = (text: string): Record<string, unknown> | null => {
  const value = parsedOr(text);
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null;
};

/** The words of a session's flags. */
export function flagsOf(text: string): string[] {
  const value = parsedOr(text);
  return Array.isArray(value) ? value.filter((flag) => typeof flag === 'string') : [];
}

function payloadOf(column: string): Payload {
  const { text, attachments, mode } = objectOf(column) ?? {};
  return {
    text: typeof text === 'string' ? text : '',
    attachments: Array.isArray(attachments) ? attachments.filter((one) => typeof one === 'string') : [],
    mode: typeof mode === 'string' ? (mode as Mode) : 'queue',
  };
}

export function toAdmission(row: AdmissionRecord): Admission {
  const payload = payloadOf(row.payloadJson);
  return {
    admission_id: row.admissionId,
    request_id: row.requestId,
    principal_id: row.principalId,
    session_id: row.targetSessionId,
    run_id: row.runId,
    sequence: row.seq,
    text: payload.text,
    attachments: payload.attachments,
    mode: payload.mode,
    digest: row.payloadDigest,
    status: row.status as Admission['status'],
    outcome: row.outcome as Outcome | null,
    epoch: row.ownerEpoch,
    generation: row.generation,
    created_at: row.createdAt,
    started_at: row.startedAt,
    ended_at: row.endedAt,
    last_seq: row.lastSeq,
    message_id: row.messageId,
    error: row.error === null ? null : (objectOf(row.error) as Admission['error']),
    journal_pruned: row.journalPruned,
  };
}

export function toOpenRow(row: AdmissionRecord): OpenRow {
  return {
    admission_id: row.admissionId,
    run_id: row.runId,
    sequence: row.seq,
    status: row.status as OpenRow['status'],
    started_at: row.startedAt,
    epoch: row.ownerEpoch,
  };
}

export function toSessionRow(row: SessionRecord, open: OpenRow[]): SessionRow {
  return {
    session_id: row.id,
    title: row.title,
    title_source: row.titleSource as SessionRow['title_source'],
    source: row.source,
    model: row.model,
    workspace: row.cwd,
    project_id: row.projectId,
    created_at: row.startedAt,
    updated_at: row.updatedAt,
    last_message_at: row.lastMessageAt,
    last_activity_at: row.lastActivityAt ?? 0,
    message_count: row.messageCount,
    pinned: row.pinned,
    archived: row.archived,
    draft: row.draft,
    revision: row.runtimeRevision,
    generation: row.runtimeGeneration,
    edit_number: row.editNumber,
    edit_fence: row.editFence,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    cached_tokens: row.cacheReadTokens,
    reasoning_tokens: row.reasoningTokens,
    cost_usd: row.estimatedCostUsd,
    context_used: row.contextUsed,
    context_length: row.contextLength,
    context_estimated: row.contextEstimated,
    flags: flagsOf(row.flags),
    open,
  };
}

/** A transcript row as a record of `messages`. */
export function toMessageRecord(sessionId: string, message: Message): typeof messages.$inferInsert {
  const { id, role, content, timestamp, run_id, tool_calls, tool_call_id, name, reasoning, ...extra } = message;
  return {
    sessionId,
    role,
    content,
    toolCallId: tool_call_id ?? null,
    toolCalls: tool_calls ? JSON.stringify(tool_calls) : null,
    toolName: name ?? null,
    timestamp,
    tokenCount: message.usage?.output_tokens ?? null,
    finishReason: role === 'assistant' ? finishReason(message) : null,
    reasoning: reasoning ?? null,
    displayKind: isMarker(message) ? 'marker' : null,
    messageId: id,
    runId: run_id ?? null,
    extra: Object.keys(extra).length ? JSON.stringify(extra) : null,
  };
}

function finishReason(message: Message): string {
  if (message.status === 'error') return 'error';
  if (message.status === 'interrupted' || message.status === 'partial') return 'interrupted';
  return message.tool_calls ? 'tool_calls' : 'stop';
}

/** A record of `messages` as a transcript row. Rows of other programs get the id of their place. */
export function toMessage(row: MessageRecord): Message {
  const calls = row.toolCalls === null ? null : parsedOr(row.toolCalls);
  const extra = row.extra === null ? null : parsedOr(row.extra);
  const message: Message = {
    id: row.messageId ?? `row.${row.id}`,
    role: row.role as MessageRole,
    content: columnText(row.content),
    timestamp: row.timestamp,
    ...(row.runId === null ? {} : { run_id: row.runId }),
    ...(Array.isArray(calls) ? { tool_calls: calls } : {}),
    ...(row.toolCallId === null ? {} : { tool_call_id: row.toolCallId }),
    ...(row.toolName === null ? {} : { name: row.toolName }),
    ...(row.reasoning === null ? {} : { reasoning: row.reasoning }),
    ...(typeof extra === 'object' && extra !== null ? extra : {}),
  };
  return message;
}

/** A record of `messages` as it is, for reconciling: with its row number, and an id only where it has one of ours. */
export function toRawRow(row: MessageRecord): RawRow {
  const content = contentOf(row.content);
  const place = { _state_db_row_id: row.id };
  if (row.messageId !== null) return { ...toMessage(row), content, ...place };
  return {
    ...place,
    role: row.role,
    content,
    timestamp: row.timestamp,
    ...(row.toolCalls ? { tool_calls: parsedOr(row.toolCalls) } : {}),
    ...(row.toolCallId ? { tool_call_id: row.toolCallId } : {}),
    ...(row.toolName ? { name: row.toolName } : {}),
    ...(row.reasoning ? { reasoning: row.reasoning } : {}),
  };
}
