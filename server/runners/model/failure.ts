/**
 * What a provider's failure means for the turn: its code, whether trying again can help, and a sentence that says what
 * was wrong and what to do. Decided by the kind of exception here, by the provider's words and status in failure-words.
 */
import type { TurnError, TurnErrorCode } from '../../core/terms.ts';
import type { ProviderConfig } from '../provider.ts';
import { answerCodeOf } from './failure-words.ts';
import type { Problem } from './problem.ts';
import { oneLine, redactKey } from './redact.ts';

/** Whose failure it is. */
export interface FailureContext {
  provider: ProviderConfig;
  model: string;
  /** Seconds without an event after which a request is given up. */
  stallTimeoutS: number;
}

/** The error of a turn for what went wrong at the provider (RU8). */
export function classifyProblem(problem: Problem, context: FailureContext): TurnError {
  const { name } = context.provider;
  switch (problem.kind) {
    case 'unreachable':
      return {
        code: 'network',
        message: `${name} cannot be reached at ${hostOf(context.provider)}${problem.exception ? ` (${problem.exception})` : ''}. Check that it runs and that its base_url is right.`,
        retryable: true,
      };
    case 'cut':
      return {
        code: 'network',
        message: `The connection to ${name} broke before the answer was complete. Try again.`,
        retryable: true,
      };
    case 'timeout':
      return stalled(context);
    case 'malformed':
      return {
        code: 'provider_error',
        message: `${name} sent something in its answer that cannot be read. Try again; if it stays, check the provider.`,
        retryable: true,
      };
    case 'not_a_stream':
      return notAStream(context);
    case 'answered':
      return ofAnswer(problem, context);
  }
}

/** Nothing came for too long. */
export function stalled({ provider, stallTimeoutS }: FailureContext): TurnError {
  return {
    code: 'stalled',
    message: `${provider.name} sent nothing for ${Number(stallTimeoutS.toFixed(1))} s and was given up. Try again; for a slow model raise agent.stall_timeout_s.`,
    retryable: true,
  };
}

/** The model ended without text and without a tool call. */
export function emptyReply(context: FailureContext, cutByLength: boolean): TurnError {
  return {
    code: 'empty_reply',
    message: cutByLength
      ? `${context.model} reached its output limit before it began to answer. Try again, or ask for less.`
      : `${context.model} ended without an answer. Try again.`,
    retryable: true,
  };
}

/** The provider stopped the answer for its content. */
export function contentFiltered({ provider }: FailureContext): TurnError {
  return {
    code: 'content_filter',
    message: `The content filter of ${provider.name} stopped the answer. Word the prompt differently.`,
    retryable: false,
  };
}

/** The model still wanted tools at the last permitted step. */
export function outOfSteps(context: FailureContext, maxSteps: number): TurnError {
  return {
    code: 'provider_error',
    message: `${context.model} still wanted to use tools after ${maxSteps} steps, so the turn was stopped. Send another prompt to go on, or raise agent.max_steps.`,
    retryable: false,
  };
}

/** The answer was a page or noise: as a rule the address is of something else. */
function notAStream(context: FailureContext): TurnError {
  return {
    code: 'provider_error',
    message: `What answers at ${hostOf(context.provider)} does not speak the ${protocolOf(context.provider)} protocol. Check the base_url of ${context.provider.name}.`,
    retryable: false,
  };
}

function ofAnswer(problem: Problem, context: FailureContext): TurnError {
  const { provider, model } = context;
  const { name } = provider;
  const code = answerCodeOf(problem);
  const status = problem.status ? ` (HTTP ${problem.status})` : '';
  const words = problem.text ? oneLine(redactKey(problem.text, provider.apiKey)) : '';
  const said = words ? ` It said: "${words}".` : '';
  switch (code) {
    case 'rate_limited': {
      const wait = problem.retryAfter;
      const when = wait === null ? 'in a while' : `in ${Math.ceil(wait)} s`;
      const error: TurnError = {
        code,
        message: `${name} limits how often it can be asked${status}. Try again ${when}.${said}`,
        retryable: true,
      };
      if (wait !== null) error.retry_after = wait;
      return error;
    }
    case 'quota':
      return fail(code, `The account at ${name} has no credit or quota left${status}. Check its billing.${said}`);
    case 'context_too_long':
      return fail(code, `The conversation is too long for ${model}${status}. Rewind it or start a new session.${said}`);
    case 'auth':
      return fail(
        code,
        provider.apiKey
          ? `${name} refused the API key${status}. Check the variable that api_key_env names.${said}`
          : `${name} wants an API key and none is set${status}. Set the variable that api_key_env names.${said}`,
      );
    case 'model_not_found':
      return fail(code, `${name} has no model "${model}"${status}. Choose another model for this session.${said}`);
    case 'content_filter':
      return { ...contentFiltered(context), message: `${contentFiltered(context).message}${said}` };
    case 'wrong_address':
      return fail(
        'provider_error',
        `${name} has no ${protocolOf(provider)} at ${hostOf(provider)}${status}. Check its base_url.${said}`,
      );
    case 'provider_error': {
      const transient = isTransient(problem);
      const advice = transient ? 'Try again.' : 'Trying again will not help before this is mended.';
      const error: TurnError = {
        code,
        message: `${name} could not answer${status}. ${advice}${said}`,
        retryable: transient,
      };
      if (transient && problem.retryAfter !== null) error.retry_after = problem.retryAfter;
      return error;
    }
  }
}

const fail = (code: TurnErrorCode, message: string): TurnError => ({ code, message, retryable: false });

/** An error within a stream has no status: it happened to a request that was accepted, so it may well pass. */
function isTransient({ status, codes }: Problem): boolean {
  if (status === null) return !codes.includes('invalid_request_error');
  return status === 408 || status === 409 || status === 425 || (status >= 500 && status !== 501);
}

const protocolOf = ({ kind }: ProviderConfig): string => (kind === 'anthropic' ? 'messages' : 'chat completions');

/** The failure after the last of several tries. */
export function afterTries(error: TurnError, tries: number): TurnError {
  return tries < 2 ? error : { ...error, message: `${error.message} It was asked ${tries} times.` };
}

function hostOf(provider: ProviderConfig): string {
  return URL.canParse(provider.baseUrl) ? new URL(provider.baseUrl).host : 'its address';
}
