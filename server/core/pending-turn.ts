/** The turn that a sidecar calls pending: what its fields say, whoever wrote them. Pure. */
import type { PendingPrompt } from './dead-turn.ts';
import { isRunId } from './ids.ts';
import type { MarkerCause } from './terms.ts';

/** Seconds in which a turn of another program may be running without having shown a sign of it (RE2). */
export const GRACE_S = 30;

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** A time in epoch seconds. */
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0;

/** Whether a sign of life is so young that the turn may still run. One that is far ahead says as little as none. */
export const isYoung = (sign: unknown, now: number): boolean => isTime(sign) && Math.abs(now - sign) < GRACE_S;

/** Who lost what is known only as far as the file names a stream. */
export const causeOf = (stream: unknown): MarkerCause => (isText(stream) ? 'lost_bookkeeping' : 'unknown');

/**
 * The run of a turn, and when it began.
 * @param written what its writer kept as the prompt
 * @param runIdFor a stable id of 32 hexadecimal digits for a turn that has none
 */
export function runOf(
  stream: unknown,
  written: unknown,
  time: unknown,
  runIdFor: (text: string) => string,
): Pick<PendingPrompt, 'runId' | 'startedAt'> {
  const runId = isText(stream) && isRunId(stream) ? stream : runIdFor(JSON.stringify([stream, written, time]));
  return { runId, startedAt: isTime(time) ? time : null };
}
