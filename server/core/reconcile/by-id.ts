/**
 * Reconcile for rows that carry our ids: one transcript from what the sidecar and the state DB hold (RC1, RC2).
 *
 * The sidecar's rows stay, all of them and in their order. A row that only the state DB has is put after its nearest
 * predecessor of the state DB's order that the transcript has; a row that both have is the sidecar's (a row of ours is
 * written once, when it is closed, so neither store can have an older state of it).
 */
import type { Message } from '../terms.ts';

export interface ReconcileInput {
  sidecar: readonly Message[];
  /** Active rows of the state DB in their order. */
  state: readonly Message[];
  /** The run that is live right now: of it only the prompt is shown. */
  liveRunId: string | null;
}

export interface Reconciled {
  rows: Message[];
  /** Whether the sidecar lacks something of `rows`. */
  sidecarBehind: boolean;
}

/** Whether a row belongs to the output of the live run, which only its events show until it has settled. */
const isLiveOutput = (row: Message, liveRunId: string | null): boolean =>
  liveRunId !== null && row.run_id === liveRunId && row.role !== 'user';

/** Merges by id. Deterministic; a second call on its own result changes nothing. */
export function reconcileById(input: ReconcileInput): Reconciled {
  const known = new Set(input.sidecar.map((row) => row.id));
  const after = new Map<string | null, Message[]>();
  let anchor: string | null = null;
  let missing = 0;
  for (const row of input.state) {
    if (isLiveOutput(row, input.liveRunId)) continue;
    if (known.has(row.id)) {
      anchor = row.id;
      continue;
    }
    const group = after.get(anchor);
    if (group) group.push(row);
    else after.set(anchor, [row]);
    missing += 1;
  }
  const rows: Message[] = [...(after.get(null) ?? [])];
  for (const row of input.sidecar) {
    if (!isLiveOutput(row, input.liveRunId)) rows.push(row);
    rows.push(...(after.get(row.id) ?? []));
    after.delete(row.id); // Once, also behind a row that a damaged sidecar has twice.
  }
  return { rows, sidecarBehind: missing > 0 };
}
