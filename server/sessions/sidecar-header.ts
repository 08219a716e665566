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
    ...lastEdit(row, old),
    message_count: 0,
  };
}

/** The last edit that a file has seen; one that another program wrote has seen none. */
export const editOf = ({ edit_number }: Partial<SidecarHeader>): number =>
  typeof edit_number === 'number' ? edit_number : 0;

/** The newer of the two edits that a session's row and its file know: a row that is put back to an older state has lost one. */
function lastEdit(row: SessionRow, old: SidecarHeader | null): Pick<SidecarHeader, 'edit_number' | 'edit_fence'> {
  const number = old ? editOf(old) : 0;
  if (number <= row.edit_number) return { edit_number: row.edit_number, edit_fence: row.edit_fence };
  return { edit_number: number, ...(old?.edit_fence === undefined ? {} : { edit_fence: old.edit_fence }) };
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
