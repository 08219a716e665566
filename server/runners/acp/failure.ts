/** What is said of an agent that does not do its part: codes of the catalogue, and words that say what to do (AC4). */
import type { TurnError, TurnErrorCode } from '../../core/terms.ts';
import type { ProgramEnd } from '../../workspace/programs.ts';
import { oneLine } from '../model/redact.ts';
import type { RunnerEnd } from '../runner.ts';

export type Failed = Extract<RunnerEnd, { kind: 'failed' }>;

/** An answer of the agent that is an error: JSON-RPC's `code`, `message` and `data`. */
export interface Refused {
  kind: 'refused';
  code: number;
  message: string;
  data: unknown;
}

/** Codes of JSON-RPC errors that the protocol gives a meaning. Source: agentclientprotocol.com/protocol, ErrorCode. */
const AUTH_REQUIRED = -32000;
export const NOT_FOUND = -32002;

const failed = (code: TurnErrorCode, message: string, retryable: boolean): Failed => ({
  kind: 'failed',
  error: { code, message, retryable } satisfies TurnError,
});

/** The caller decides the outcome of an aborted turn; this only has to be some end. */
export const INTERRUPTED = failed('interrupted', 'The turn was interrupted.', true);

/** @param code the system's word for why a program did not start */
export function notStarted(agent: string, program: string, code: string): Failed {
  const name = program.slice(program.lastIndexOf('/') + 1);
  const why =
    code === 'ENOENT'
      ? `There is no program "${name}" here. Install it, or correct the command of ${agent} in config.yaml.`
      : code === 'EACCES' || code === 'ENOEXEC'
        ? `"${name}" is no program that may be run here. Correct the command of ${agent} in config.yaml.`
        : `The system refused it (${code}). Try again.`;
  return failed('agent_crashed', `${agent} could not be started. ${why}`, code !== 'ENOENT' && code !== 'EACCES');
}

/** @param noise how many lines it wrote that are no message */
export function crashed(agent: string, when: 'start' | 'turn', end: ProgramEnd, noise: number): Failed {
  const how =
    end.kind === 'exit'
      ? `ended with exit code ${end.code}`
      : end.kind === 'signal'
        ? `was ended by ${end.signal}`
        : 'closed its output';
  return when === 'start'
    ? failed('agent_crashed', `${agent} ${how} instead of answering. ${checkCommand(agent, noise)}`, true)
    : failed(
        'agent_crashed',
        `${agent} ${how} in the middle of the turn. Send the prompt again: it is started anew.`,
        true,
      );
}

export const tooLong = (agent: string, megabytes: number): Failed =>
  failed(
    'agent_crashed',
    `${agent} wrote a line of more than ${megabytes} MB, which is no message that could be read; it was ended. ` +
      'Send the prompt again: it is started anew.',
    true,
  );

export const wrongVersion = (agent: string, theirs: unknown, ours: number): Failed =>
  failed(
    'agent_crashed',
    `${agent} speaks version ${oneLine(String(theirs), 20)} of the Agent Client Protocol, and this server version ${ours}. ` +
      'Install a version of it that speaks the same.',
    false,
  );

/** What an agent answered is not what the protocol has there. */
export const nonsense = (agent: string, method: string): Failed =>
  failed('agent_crashed', `${agent} gave no usable answer to ${method}. Install another version of it.`, false);

export const startStalled = (agent: string, seconds: number, noise: number): Failed =>
  failed(
    'stalled',
    `${agent} did not answer within ${seconds} seconds after it was started. ${checkCommand(agent, noise)} ` +
      'If it is only slow, give it longer with runner.start_timeout_s.',
    true,
  );

export const stalled = (agent: string, seconds: number): Failed =>
  failed('stalled', `${agent} has said nothing for ${seconds} seconds; the turn was stopped. Try again.`, true);

export const noWorkspace = (agent: string): Failed =>
  failed(
    'agent_crashed',
    `The workspace of this session cannot be opened any more, so ${agent} was not started. Choose another workspace.`,
    false,
  );

/** @param what it was asked for */
export const notOffered = (agent: string, what: 'model' | 'mode', id: string): Failed =>
  failed('model_not_found', `${agent} does not take the ${what} "${oneLine(id, 80)}". Choose another model.`, false);

export const emptyReply = (agent: string): Failed =>
  failed(
    'empty_reply',
    `${agent} ended the turn without an answer. Try again, or look at its own settings and log.`,
    true,
  );

export const refusal = (agent: string): Failed =>
  failed('content_filter', `${agent} refused to go on with this. Say it in another way.`, false);

export const stoppedItself = (agent: string): Failed =>
  failed(
    'interrupted',
    `${agent} stopped the turn by itself. Send the prompt again, or say what it shall do instead.`,
    true,
  );

/** What the agent itself says went wrong. @param hide takes what is secret out of a text */
export function refused(agent: string, answer: Refused, hide: (text: string) => string): Failed {
  const words = oneLine(hide(saidIn(answer)), 300) || `code ${answer.code}`;
  return answer.code === AUTH_REQUIRED
    ? failed(
        'auth',
        `${agent} needs to be logged in (${words}). Log in with its own program on the server, then try again.`,
        false,
      )
    : failed('provider_error', `${agent} answered with an error: ${words}`, true);
}

/** Many say only "Internal error" where the words belong, and those beside it. */
function saidIn({ message, data }: Refused): string {
  if (typeof data === 'string' && data !== '') return data;
  const { details, message: inner } = { ...(data as { details?: unknown; message?: unknown } | null) };
  return [inner, details].find((text): text is string => typeof text === 'string' && text !== '') ?? message;
}

const checkCommand = (agent: string, noise: number): string =>
  noise > 0
    ? `It wrote ${noise} ${noise === 1 ? 'line' : 'lines'} that are no message of the Agent Client Protocol: ` +
      `check that the command of ${agent} in config.yaml starts it as an agent (for example with "acp").`
    : `Check that the command of ${agent} in config.yaml starts it as an agent of the Agent Client Protocol; the log says more.`;
