/**
 * Looking again for the output of a dead turn whose journal could not be read: when a read tries, and when it gives up.
 * What is counted stands in the stored marker itself, beside what people see of it, so that it survives restarts.
 */
import { isMarkerId } from './ids.ts';
import { fieldOf, type RawRow } from './reconcile/row.ts';

/** Attempts, and seconds since the first, after which the output counts as lost. */
export const MAX_ATTEMPTS = 12;
export const GIVE_UP_S = 24 * 3600;

/** The field of a stored marker that arms the retry. */
export const RETRY_FIELD = '_journal_retry';

/** Where hermes-webui keeps run, attempts and first try. */
const FOREIGN_FIELDS = ['_journal_retry_stream_id', '_journal_retry_attempts', '_journal_retry_first_seen_ts'] as const;

export interface Retry {
  runId: string;
  /** Reads that found a journal without output. One that is not there yet costs nothing. */
  attempts: number;
  /** Epoch seconds of the first try. */
  firstSeen: number;
}

/** The retry that a stored row arms, by us or by hermes-webui; null when it arms none. */
export function retryOf(row: RawRow): Retry | null {
  const own = fieldOf(row, RETRY_FIELD);
  if (typeof own === 'object' && own !== null) {
    const { run_id, attempts, first_seen } = own as Record<string, unknown>;
    return toRetry(run_id, attempts, first_seen);
  }
  if (fieldOf(row, '_pending_journal_recovery') !== true) return retryOfMarker(row);
  const [runId, attempts, firstSeen] = FOREIGN_FIELDS.map((name) => fieldOf(row, name));
  return toRetry(runId, attempts, firstSeen);
}

/** A marker of ours says by itself that it waits, also when what was counted beside it is lost. */
function retryOfMarker(row: RawRow): Retry | null {
  const { id, error, timestamp } = row as RawRow & { error?: { recovery?: unknown } };
  if (typeof id !== 'string' || !isMarkerId(id) || error?.recovery !== 'pending') return null;
  return toRetry(id.slice(0, -2), 0, timestamp);
}

function toRetry(runId: unknown, attempts: unknown, firstSeen: unknown): Retry | null {
  if (typeof runId !== 'string') return null;
  const count = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
  return { runId, attempts: count(attempts), firstSeen: count(firstSeen) };
}

/** The field as it is stored. */
export const retryField = ({ runId, attempts, firstSeen }: Retry): Record<string, unknown> => ({
  [RETRY_FIELD]: { run_id: runId, attempts, first_seen: firstSeen },
});

/** Whether the output counts as lost. @param now epoch seconds */
export const isGivenUp = ({ attempts, firstSeen }: Retry, now: number): boolean =>
  attempts >= MAX_ATTEMPTS || now - firstSeen > GIVE_UP_S;

/** The stored row without what its retry needed. */
export function withoutRetry(row: RawRow): RawRow {
  const gone = new Set<string>([RETRY_FIELD, '_pending_journal_recovery', ...FOREIGN_FIELDS]);
  const rest = Object.fromEntries(Object.entries(row).filter(([key]) => !gone.has(key)));
  return { ...rest, role: row.role };
}
