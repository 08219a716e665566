/**
 * The marker: the row that says a turn ended before it finished, and whether more can still be recovered (RE4).
 * It claims only what is known; it is never sent to a model as assistant text.
 */
import { isMarkerId } from './ids.ts';
import type { MarkerCause, MarkerRecovery, Message, TurnError } from './terms.ts';

const CAUSE: Record<MarkerCause, string> = {
  process_restart: 'the server stopped before this turn finished.',
  lost_bookkeeping: 'the record of its end was lost before this turn finished.',
  split_brain: 'another process took this session over before this turn finished.',
  unknown: 'it ended before this turn finished, and the reason is not known.',
};

const RECOVERY: Record<MarkerRecovery, string> = {
  recovered: 'What had been received until then is shown above.',
  pending: 'Its output may still be recovered.',
  none: 'Nothing had been received.',
  given_up: 'Its output could not be recovered.',
};

/** Id of the marker row of a run. */
export const markerId = (runId: string): string => `${runId}.m`;

/** Whether a transcript row is a marker. */
export const isMarker = (row: Pick<Message, 'id' | 'error'>): boolean =>
  isMarkerId(row.id) && row.error?.code === 'interrupted';

/** The error that a marker carries. */
export function markerError(cause: MarkerCause, recovery: MarkerRecovery): TurnError {
  return {
    code: 'interrupted',
    message: `Response interrupted: ${CAUSE[cause]} ${RECOVERY[recovery]}`,
    retryable: true,
    cause,
    recovery,
  };
}

/** A marker where nobody looks for its output any more, in a copy for example; any other row as it is. */
export function givenUp(row: Message): Message {
  if (row.error?.recovery !== 'pending') return row;
  const error = markerError(row.error.cause ?? 'unknown', 'given_up');
  return { ...row, content: error.message, error };
}

/**
 * The marker row of a run.
 * @param timestamp epoch seconds
 */
export function markerRow(runId: string, timestamp: number, cause: MarkerCause, recovery: MarkerRecovery): Message {
  const error = markerError(cause, recovery);
  return {
    id: markerId(runId),
    role: 'assistant',
    content: error.message,
    timestamp,
    run_id: runId,
    status: 'error',
    recovered: true,
    error,
  };
}
