/** Sessions and rows of a transcript as gateway clients see them. */
import type { Message, Usage } from '../../server/core/terms.ts';
import type { GatewaySession } from '../../server/live/gateway-sessions.ts';
import type { Standing } from '../../server/live/gateway-standing.ts';
import type { SessionView } from '../../server/sessions/view.ts';

/** Longest preview of a session in a list. */
const PREVIEW = 160;

/** A row of the transcript. `row_id` is its message id. */
export function messageOf(row: Message): Record<string, unknown> {
  const { id, role, content, timestamp, tool_calls, reasoning, status, error, model, attachments } = row;
  const base = { id, row_id: id, role, text: content, timestamp };
  if (role === 'tool') {
    const { tool_call_id, name, is_error, duration_s, denied } = row;
    return { ...base, content, tool_call_id, name, ...given({ is_error, duration_s, denied }) };
  }
  return { ...base, ...given({ tool_calls, reasoning, status, error, model, attachments }) };
}

/** The fields that have a value. */
function given(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** @param rows JSON texts with commas between them */
export const messagesOf = (rows: string): Record<string, unknown>[] =>
  (JSON.parse(`[${rows}]`) as Message[]).map(messageOf);

/** How a live session is, in one word of the gateway. */
export function statusOf({ live }: GatewaySession): 'idle' | 'starting' | 'waiting' | 'working' | 'streaming' {
  if (!live.run) return 'idle';
  if (live.requests.size > 0) return 'waiting';
  if (!live.run.log) return 'starting';
  return live.run.log.fold.view().text === '' ? 'working' : 'streaming';
}

/** Counts of a session under the names of the gateway. */
export const usageOf = (usage: Usage | null, model: string | null): Record<string, unknown> => ({
  model,
  input: usage?.input_tokens ?? 0,
  output: usage?.output_tokens ?? 0,
  reasoning: usage?.reasoning_tokens ?? 0,
  total: (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
  ...given({
    cache_read: usage?.cached_tokens,
    cost_usd: usage?.cost_usd,
    context_used: usage?.context_used,
    context_max: usage?.context_length,
    context_estimated: usage?.context_estimated,
    context_percent:
      usage?.context_used !== undefined && usage.context_length
        ? Math.round((usage.context_used / usage.context_length) * 100)
        : undefined,
  }),
});

/** What a client shows around the transcript. @param stored null for a draft */
export function infoOf(session: GatewaySession, stored: SessionView | null, version: string): Record<string, unknown> {
  const { live, draft } = session;
  const model = stored?.model ?? draft?.model ?? null;
  return {
    stored_session_id: session.sessionId,
    title: stored?.title ?? draft?.title ?? null,
    model,
    cwd: stored?.workspace ?? draft?.workspace ?? null,
    running: live.run !== null,
    ...(live.run && { turn_started_at: live.run.startedAt }),
    queue_length: stored?.queue_length ?? 0,
    usage: usageOf(stored?.usage ?? null, model),
    version,
    ...(stored && { session: stored }),
  };
}

/** What resume and activate answer: where the session stands, after which its events follow. */
export function snapshotOf(
  session: GatewaySession,
  standing: Standing<SessionView>,
  { version, epoch, omit, resumed }: { version: string; epoch: string; omit: boolean; resumed: boolean },
): Record<string, unknown> {
  const { session: stored, rows, run, requests, latestSeq } = standing;
  const messages = omit ? null : messagesOf(rows);
  return {
    session_id: session.runtimeId,
    session_key: session.sessionId,
    stored_session_id: session.sessionId,
    resumed,
    message_count: stored?.message_count ?? 0,
    ...(messages ? { messages } : { messages: [], messages_omitted: true }),
    info: infoOf(session, stored, version),
    running: run !== null,
    status: statusOf(session),
    started_at: session.startedAt,
    ...(run && {
      turn_started_at: session.live.run?.startedAt,
      inflight: { user: run.input, assistant: run.text, streaming: true, run },
    }),
    open_requests: requests.map((request) => openRequestOf(session.runtimeId, request)),
    latest_seq: latestSeq,
    epoch,
  };
}

/** A question that waits for an answer. */
export const openRequestOf = (
  runtimeId: string,
  { id, kind, params }: Standing<unknown>['requests'][number],
): Record<string, unknown> => ({ id, method: kind, params: { session_id: runtimeId, request_id: id, ...params } });

/** A line in the list of live sessions. */
export const activeRowOf = (
  session: GatewaySession,
  stored: SessionView | null,
  current: string | undefined,
): Record<string, unknown> => ({
  current: session.runtimeId === current,
  id: session.runtimeId,
  session_key: session.sessionId,
  status: statusOf(session),
  last_active: session.lastActive,
  started_at: session.startedAt,
  message_count: stored?.message_count ?? 0,
  model: stored?.model ?? session.draft?.model ?? null,
  preview: (session.live.run?.input ?? '').slice(0, PREVIEW),
  title: stored?.title ?? session.draft?.title ?? null,
});
