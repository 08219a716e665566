/** A session as a client sees it: its row, overlaid with what this process knows of the running turn. */
import type { OpenRow, SessionRow } from '../../db/stores.ts';
import type { SessionStatus, Usage } from '../core/terms.ts';
import type { LiveSession } from '../live/live-session.ts';

export interface SessionView {
  session_id: string;
  title: string | null;
  source: string;
  model: string | null;
  workspace: string | null;
  project_id: string | null;
  created_at: number;
  updated_at: number;
  last_message_at: number | null;
  last_activity_at: number;
  message_count: number;
  pinned: boolean;
  archived: boolean;
  draft: string;
  revision: number;
  status: SessionStatus;
  run: { run_id: string; admission_id: string; started_at: number } | null;
  queue_length: number;
  usage: Usage;
  flags: string[];
  paused?: { reason: string };
}

/** @param live the session's runtime in this process, if it has one */
export function toSessionView(row: SessionRow, live: LiveSession | null): SessionView {
  const started = row.open.find((open) => open.status === 'started');
  const run = live?.run
    ? { run_id: live.run.runId, admission_id: live.run.admissionId, started_at: live.run.startedAt }
    : started
      ? { run_id: started.run_id, admission_id: started.admission_id, started_at: started.started_at ?? row.updated_at }
      : null;
  const queued = row.open.filter((open) => open.status === 'queued');
  const view: SessionView = {
    session_id: row.session_id,
    title: row.title,
    source: row.source,
    model: row.model,
    workspace: row.workspace,
    project_id: row.project_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    last_message_at: row.last_message_at,
    last_activity_at: row.last_activity_at,
    message_count: row.message_count,
    pinned: row.pinned,
    archived: row.archived,
    draft: row.draft,
    revision: row.revision,
    status: statusOf(row.open, live, run !== null, queued.length),
    run,
    queue_length: queued.length,
    usage: usageOf(row),
    flags: row.flags,
  };
  if (live?.paused && queued.length) view.paused = { reason: live.paused };
  return view;
}

function statusOf(open: readonly OpenRow[], live: LiveSession | null, running: boolean, queued: number): SessionStatus {
  if (running) return live?.run && live.requests.size > 0 ? 'waiting' : 'running';
  if (open.some((row) => row.status === 'unknown')) return 'unknown';
  return queued > 0 ? 'queued' : 'idle';
}

export function usageOf(row: SessionRow): Usage {
  const usage: Usage = { input_tokens: row.input_tokens, output_tokens: row.output_tokens };
  // Left out where the provider never told of any.
  if (row.cached_tokens > 0) usage.cached_tokens = row.cached_tokens;
  if (row.reasoning_tokens > 0) usage.reasoning_tokens = row.reasoning_tokens;
  if (row.cost_usd !== null) usage.cost_usd = row.cost_usd;
  if (row.context_used !== null) usage.context_used = row.context_used;
  if (row.context_length !== null) usage.context_length = row.context_length;
  if (row.context_used !== null && row.context_estimated) usage.context_estimated = true;
  return usage;
}
