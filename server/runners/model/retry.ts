/** Whether a failed step is asked again, and when (RU11). Pure: the clock, the dice and the sleep are the caller's. */
import type { TurnError, TurnErrorCode } from '../../core/terms.ts';

/** The pause before the first repetition, in seconds; it doubles. */
const FIRST_PAUSE_S = 0.5;

/**
 * Failures that pass by themselves. Not `stalled`: it has cost the person the whole time-out already, and a slow model
 * would begin from the start. Not `empty_reply`: the provider did answer.
 */
const PASSING: ReadonlySet<TurnErrorCode> = new Set(['rate_limited', 'network', 'provider_error']);

export interface RetryPolicy {
  /** `agent.api_max_retries`. */
  maxRetries: number;
  /** The longest time that a provider may ask to be left alone, in seconds. */
  longestWaitS: number;
}

export interface RetryPlan {
  /** Seconds. */
  waitS: number;
  status: { kind: 'rate_limited' | 'retrying'; text: string };
}

/**
 * The next try of a step that failed before anything of it was shown; null when it is over.
 * @param error how it failed
 * @param retries how often it was asked again already
 * @param random from 0 to 1
 */
export function planRetry(error: TurnError, retries: number, policy: RetryPolicy, random: number): RetryPlan | null {
  if (!error.retryable || !PASSING.has(error.code) || retries >= policy.maxRetries) return null;
  const asked = error.retry_after ?? 0;
  if (asked > policy.longestWaitS) return null;
  // A quarter more or less, so that many sessions do not come back at the same moment.
  const pause = FIRST_PAUSE_S * 2 ** retries * (0.75 + random / 2);
  const waitS = Math.max(asked, pause);
  const limited = error.code === 'rate_limited';
  const what = limited ? 'The provider limits how often it can be asked' : WHAT[error.code];
  const text = `${what ?? 'The provider failed'}. Asking again in ${roughly(waitS)} (try ${retries + 2} of ${policy.maxRetries + 1}).`;
  return { waitS, status: { kind: limited ? 'rate_limited' : 'retrying', text } };
}

const WHAT: Partial<Record<TurnErrorCode, string>> = {
  network: 'The provider could not be reached',
  provider_error: 'The provider could not answer',
};

const roughly = (seconds: number): string => (seconds < 1 ? 'a moment' : `${Math.ceil(seconds)} s`);
