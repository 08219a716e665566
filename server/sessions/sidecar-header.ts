/** The fields of a sidecar beside its rows: copies of the session's row, the running turn, and what another program wrote. */
import type { SidecarHeader } from '../../db/files/sidecar-store.ts';
import type { SessionRow } from '../../db/stores.ts';

/** The running turn as a sidecar names it. */
export interface PendingTurn {
  runId: string;
  text: string;
  attachments: string[];
  /** Epoch seconds. */
  startedAt: number;
}

/**
 * The scalar fields of a sidecar that is saved now.
 * @param pending the running turn; `keep` leaves what stands there, whosesoever it is
 */
export function headerOf(
  row: SessionRow,
  old: SidecarHeader | null,
  pending: PendingTurn | null | 'keep',
): SidecarHeader {
  const turn = pending === 'keep' ? turnOf(old) : turnFields(pending);
  return {
    ...old,
    session_id: row.session_id,
    title: row.title ?? 'Untitled',
    workspace: row.workspace,
    model: row.model,
    project_id: row.project_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    pinned: row.pinned,
    archived: row.archived,
    manual_title: row.title_source === 'user',
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    estimated_cost: row.cost_usd,
    context_length: row.context_length,
    ...turn,
    edit_number: row.edit_number,
    message_count: 0,
  };
}

const TURN_FIELDS = [
  'active_stream_id',
  'pending_user_message',
  'pending_attachments',
  'pending_started_at',
  'pending_user_source',
] as const;

type TurnFields = Pick<SidecarHeader, (typeof TURN_FIELDS)[number]>;

/** The fields of the running turn. */
const turnFields = (pending: PendingTurn | null): TurnFields => ({
  active_stream_id: pending?.runId ?? null,
  pending_user_message: pending?.text ?? null,
  pending_attachments: pending?.attachments ?? [],
  pending_started_at: pending?.startedAt ?? null,
  pending_user_source: null,
});

/** The same as they stand: whether that turn still lives is not for a save to judge. */
const turnOf = (old: SidecarHeader | null): TurnFields =>
  old ? (Object.fromEntries(TURN_FIELDS.map((field) => [field, old[field] ?? null])) as TurnFields) : turnFields(null);
