/**
 * Approvals: whether a call of a tool may be made, asking the person first where the configuration wants it. Owns when
 * it is asked and what each answer means; the questions themselves are server/live/requests.ts, what is remembered is
 * allow-list.ts.
 *
 * A call that writes or runs is made only after a yes (AP1): a no, silence and a question that was taken back are results
 * that the agent can read, and its turn goes on (AP2).
 */
import { type AllowableCall, exactPattern } from '../core/approval-rules.ts';
import { redactCommand } from '../core/redact-command.ts';
import { asksFirst, type ToolDefinition } from '../workspace/tool.ts';
import type { AllowList } from './allow-list.ts';
import { describeCall, MAX_COMMAND } from './approval-words.ts';
import type { Answer, ApprovalChoice, Question, Turn } from './runner.ts';

export type Decision =
  | { ok: true }
  | { ok: false /** For the agent. */; result: string /** By a person. */; denied?: true };

export interface Approvals {
  /** Decides on one call; waits for the person if it must. Never rejects. */
  allow(tool: Pick<ToolDefinition, 'name' | 'effect'>, args: unknown, context: ApprovalContext): Promise<Decision>;
}

/** Who is asked, and what is said of the call where the words for our own tools do not fit. */
export type ApprovalContext = Pick<Turn, 'sessionId' | 'ask'> & { description?: string };

export interface ApprovalsParts {
  mode: 'manual' | 'auto';
  allowed: AllowList;
  /** What is known to be secret, and is hidden in what is shown. */
  secrets: readonly string[];
}

const ALLOWED: Decision = { ok: true };
const refused = (result: string): Decision => ({ ok: false, result });

export function createApprovals({ mode, allowed, secrets }: ApprovalsParts): Approvals {
  /** Calls that somebody is asked about now. */
  const open = new Set<{ sessionId: string; call: AllowableCall; settled: AbortController }>();

  /** What was just allowed may be what others wait for: nobody is asked the same again. */
  const settleOthers = (): void => {
    for (const { sessionId, call, settled } of open) if (allowed.allows(sessionId, call)) settled.abort();
  };

  return {
    async allow(tool, args, { sessionId, ask, description: said }) {
      if (mode === 'auto' || !asksFirst(tool.effect)) return ALLOWED;
      const call: AllowableCall = { tool: tool.name, command: tool.effect === 'run' ? commandOf(args) : null };
      if (allowed.allows(sessionId, call)) return ALLOWED;

      const words = describeCall(tool, args);
      // Nobody can allow what they cannot see.
      if (tool.effect !== 'write' && words.command.length > MAX_COMMAND) return refused(TOO_LONG);
      const command = redactCommand(words.command, secrets);
      const description = redactCommand(said ?? words.description, secrets);
      // A pattern with a secret in it would put the secret into the configuration.
      const pattern = call.command !== null && command !== words.command ? null : exactPattern(call);
      const choices: ApprovalChoice[] = ['once', 'session', ...(pattern === null ? [] : (['always'] as const)), 'deny'];
      const question: Question = {
        kind: 'approval',
        tool_name: tool.name,
        command,
        description,
        choices,
        ...(pattern === null ? {} : { pattern }),
      };
      const waiting = { sessionId, call, settled: new AbortController() };
      open.add(waiting);
      const answer = await ask(question, waiting.settled.signal);
      open.delete(waiting);
      // A no that came just before still is one.
      if (answer.kind === 'withdrawn' && waiting.settled.signal.aborted) return ALLOWED;
      const choice = answer.kind === 'choice' ? answer.choice : 'deny';
      if (choice === 'session') allowed.allowInSession(sessionId, call);
      const kept = choice === 'always' && pattern !== null ? allowed.allowAlways(pattern) : null;
      if (choice === 'session' || choice === 'always') settleOthers();
      await kept;
      if (choice !== 'deny') return ALLOWED;
      return answer.kind === 'choice' ? { ...refused(whyNot(answer)), denied: true } : refused(whyNot(answer));
    },
  };
}

const TOO_LONG =
  `This was not done: it is longer than ${MAX_COMMAND} characters, more than a person can be asked about. ` +
  'Do it in smaller steps.';

function whyNot(answer: Answer): string {
  switch (answer.kind) {
    case 'timeout':
      return 'The person did not allow this: nobody answered in time. It was not done.';
    case 'withdrawn':
      return 'The person did not allow this: the question was withdrawn. It was not done.';
    case 'choice':
    case 'answers':
      return 'The person did not allow this.';
  }
}

/** The command of a tool that runs one. Whatever else it is given is part of what is allowed, but for limits. */
function commandOf(args: unknown): string {
  const { command, ...others } = { ...(args as { command?: unknown }) };
  const isPlain = typeof command === 'string' && Object.entries(others).every(([name, value]) => isUsual(name, value));
  return isPlain ? command : JSON.stringify(args);
}

/** A number can only be a limit, such as seconds; and the workspace itself is where commands run. A folder may be named 7. */
const isUsual = (name: string, value: unknown): boolean => {
  if (value === undefined || value === null) return true;
  if (name === 'cwd') return value === '' || value === '.' || value === './';
  return typeof value === 'number' || (typeof value === 'string' && /^\d+$/.test(value));
};
