/**
 * What the words and statuses of providers mean, as tables. Machine words (`code`, `type`, `status`, `reason`) decide
 * first, then the status; the wording only where a provider offers nothing else, in the one table at the end.
 */
import type { Problem } from './problem.ts';

/** What an answer may mean; a wrong address is told to a person as `provider_error`. */
export type AnswerCode =
  | 'rate_limited'
  | 'quota'
  | 'context_too_long'
  | 'auth'
  | 'model_not_found'
  | 'content_filter'
  | 'wrong_address'
  | 'provider_error';

/** Words that providers use in `code`, `type`, `status` and `reason`. */
const BY_WORD: Record<string, AnswerCode> = {
  insufficient_quota: 'quota',
  quota_exceeded: 'quota',
  billing_hard_limit_reached: 'quota',
  billing_not_active: 'quota',
  billing_error: 'quota',
  insufficient_balance: 'quota',
  payment_required: 'quota',
  rate_limit_exceeded: 'rate_limited',
  rate_limit_error: 'rate_limited',
  too_many_requests: 'rate_limited',
  resource_exhausted: 'rate_limited',
  context_length_exceeded: 'context_too_long',
  exceed_context_size_error: 'context_too_long',
  string_above_max_length: 'context_too_long',
  request_too_large: 'context_too_long',
  invalid_api_key: 'auth',
  api_key_invalid: 'auth',
  authentication_error: 'auth',
  invalid_authentication_error: 'auth',
  permission_error: 'auth',
  permission_denied: 'auth',
  unauthenticated: 'auth',
  account_deactivated: 'auth',
  model_not_found: 'model_not_found',
  model_not_available: 'model_not_found',
  model_decommissioned: 'model_not_found',
  deploymentnotfound: 'model_not_found',
  content_filter: 'content_filter',
  content_policy_violation: 'content_filter',
  responsibleaipolicyviolation: 'content_filter',
  data_inspection_failed: 'content_filter',
  overloaded_error: 'provider_error',
  server_error: 'provider_error',
  unavailable_error: 'provider_error',
};

/** Statuses that mean one thing at every provider. */
const BY_STATUS: Record<number, AnswerCode> = {
  401: 'auth',
  402: 'quota',
  403: 'auth',
  405: 'wrong_address',
  413: 'context_too_long',
  429: 'rate_limited',
};

/** What an answer means. */
export function answerCodeOf(problem: Problem): AnswerCode {
  // A request that is too large for the account's rate is too large for ever: the status knows better than the word.
  if (problem.status === 413) return 'context_too_long';
  const word = problem.codes.find((candidate) => Object.hasOwn(BY_WORD, candidate));
  const meaning = word === undefined ? null : BY_WORD[word]!;
  // A word that says no more than that something failed gives way to a status that says what.
  const vague = meaning === 'provider_error' && problem.status !== null && problem.status in BY_STATUS;
  if (meaning !== null && !vague) return meaning;
  const worded = BY_WORDING.find(
    ({ statuses, pattern }) => statuses.includes(problem.status) && pattern.test(problem.text ?? ''),
  );
  if (worded) return worded.code;
  if (problem.status === 404) return problem.text === null ? 'wrong_address' : 'model_not_found';
  return (problem.status !== null && BY_STATUS[problem.status]) || 'provider_error';
}

/**
 * Whether a request may have been refused for its images: the answer names them, or leaves open what was wrong. Nothing is
 * taken for sure by this: whether it was so shows when it is asked again without them (AT8).
 */
export function mayMeanImages(problem: Problem): boolean {
  if (problem.kind !== 'answered') return false;
  if (problem.status === 413) return true;
  const code = answerCodeOf(problem);
  if (code === 'content_filter' || IMAGE_WORDS.test(problem.text ?? '')) return true;
  const isOpen = code === 'provider_error' || code === 'model_not_found';
  return isOpen && problem.status !== null && [400, 404, 415, 422].includes(problem.status);
}

const IMAGE_WORDS = /image|vision|multi-?modal|media.?type|mmproj/i;

/**
 * Wordings of providers that say no more than a sentence (vLLM, LM Studio, llama.cpp, Anthropic's and Google's
 * compatible endpoints, gateways), each only where the status leaves it open. `null` is an error inside a stream.
 */
const BY_WORDING: { code: AnswerCode; statuses: (number | null)[]; pattern: RegExp }[] = [
  {
    code: 'context_too_long',
    statuses: [null, 400, 422, 500],
    pattern: /context (length|window|size)|maximum context|prompt is too long|context the overflows|too many tokens/i,
  },
  {
    code: 'quota',
    statuses: [null, 400, 403, 429],
    pattern: /insufficient (quota|balance|credit|funds)|exceeded your current quota|credit balance is too low/i,
  },
  {
    code: 'auth',
    statuses: [null, 400],
    pattern: /(invalid|incorrect|expired) api key|api key (is |has )?(not valid|invalid|expired)/i,
  },
  {
    code: 'content_filter',
    statuses: [400, 403],
    pattern: /content (filter|policy|management policy)|flagged|moderation/i,
  },
  { code: 'wrong_address', statuses: [404], pattern: /^(file |page )?not found\.?$|no route|unknown (request )?url/i },
  {
    code: 'model_not_found',
    statuses: [null, 400],
    pattern: /\bmodel\b.{0,120}(not found|does(n't| not) exist|no longer available)|no such model/i,
  },
];
