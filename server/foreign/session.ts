/**
 * A session of another program as one of ours would be described: put together from its row in a state.db and the header
 * of its sidecar. Where both speak, the sidecar is what its person sees, and the row is newer only where it has more.
 */
import { isHiddenSource, type SidecarSummary, type StateSummary } from '../../db/files/foreign/summary.ts';
import type { SessionRow } from '../../db/stores.ts';

/** What a session of another program is called in `flags`. */
export const FOREIGN_FLAG = 'foreign';

export interface ForeignSession {
  row: SessionRow;
  /** Newest activity, epoch seconds: what the list is ordered by. */
  activity: number;
  /** The session whose conversation goes on in this one; null for none. */
  continues: string | null;
  /** Whether its own program lists it. */
  listed: boolean;
  sidecar: SidecarSummary | null;
  state: StateSummary | null;
}

/** @returns null where neither store has it, or what is there does not count */
export function toForeignSession(sidecar: SidecarSummary | null, state: StateSummary | null): ForeignSession | null {
  // A backup without its live file is no session by itself: that may be what a deletion left.
  const file = sidecar?.orphan && !state ? null : sidecar;
  const base = file ?? state;
  if (!base) return null;
  const source = state?.source ?? base.source;
  const isAhead =
    state !== null && file !== null && state.message_count > file.message_count && state.activity > file.activity;
  const counted = file?.from === 'damaged' && state ? state : isAhead && !file.fenced ? state : base;
  const activity = Math.max(file?.activity ?? 0, file?.fenced ? 0 : (state?.activity ?? 0));
  const created = Math.min(file?.created_at ?? Number.MAX_VALUE, state?.created_at ?? Number.MAX_VALUE);
  const { usage } = counted;
  const flags = file?.from === 'damaged' ? [FOREIGN_FLAG, 'damaged_sidecar'] : [FOREIGN_FLAG];
  return {
    row: {
      session_id: base.session_id,
      title: file?.title ?? state?.title ?? null,
      title_source: null,
      source,
      model: file?.model ?? state?.model ?? null,
      workspace: file?.workspace ?? state?.workspace ?? null,
      project_id: null,
      created_at: created,
      updated_at: activity,
      last_message_at: counted.message_count > 0 ? counted.activity : null,
      last_activity_at: activity,
      message_count: counted.message_count,
      pinned: file ? file.pinned : base.pinned,
      archived: file ? file.archived : base.archived,
      draft: '',
      // Grows with what is said there, and needs nobody to keep it.
      revision: Math.max(1, Math.floor(activity * 1000)),
      generation: 0,
      edit_number: 0,
      edit_fence: null,
      input_tokens: usage.input_tokens,
      output_tokens: usage.output_tokens,
      cached_tokens: usage.cached_tokens ?? 0,
      reasoning_tokens: usage.reasoning_tokens ?? 0,
      cost_usd: usage.cost_usd ?? null,
      context_used: usage.context_used ?? null,
      context_length: usage.context_length ?? null,
      context_estimated: usage.context_estimated ?? false,
      flags,
      open: [],
    },
    activity,
    continues: state?.kind === 'continuation' ? state.parent_session_id : null,
    listed: isListed(source, file, state),
    sidecar: file,
    state,
  };
}

function isListed(source: string, file: SidecarSummary | null, state: StateSummary | null): boolean {
  if (isHiddenSource(source)) return false;
  // A child that has a file of its own is one that somebody opened: a fork, say.
  if (state?.hidden && !(file && state.kind === 'child')) return false;
  return true;
}
