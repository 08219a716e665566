/**
 * The port to an agent. Owns nothing; says what a runner must do.
 *
 * The contract, which the contract suite in test/contract/runner-contract.ts holds every runner to:
 *
 * 1. `run` yields events and returns how the turn ended. It never throws and never rejects: whatever goes wrong is a
 *    returned `failed` with a code of the catalogue.
 * 2. Each assistant message begins with `message.start`; its text and reasoning follow as deltas, one delta for each
 *    chunk that the agent gave, never held back to fill a batch.
 * 3. The tool calls of a message are announced by `tool.start` before the first of them completes; each `tool.start`
 *    has at most one `tool.complete` with its `tool_id`. Tool ids are unique within a run.
 * 4. `usage` of a message comes before its first `tool.complete` (it is stored with the message's row).
 * 5. When `signal` aborts, the runner stops what it started (requests, processes) and returns soon. The caller does
 *    not wait long, ignores what comes later, and decides the outcome itself: the return value no longer matters.
 * 6. A runner stores nothing about a turn that it needs for the next one: `history` is the whole conversation.
 */
import type { RunEvent } from '../core/events.ts';
import type { Message, TurnError } from '../core/terms.ts';

/** Everything that a runner is told about one turn. */
export interface Turn {
  sessionId: string;
  runId: string;
  /** The prompt. */
  input: string;
  /** The session's model, `<provider>/<model>` or `builtin`. */
  model: string;
  /** Absolute path of the session's workspace, or null when it has none. */
  workspace: string | null;
  /** The transcript before this prompt, oldest first: what the person sees, markers and failed turns included. */
  history: readonly Message[];
  /**
   * Asks the person something and waits. Resolves with the answer, or with why there is none.
   * Never rejects; ends with `withdrawn` when the turn is interrupted.
   */
  ask(question: Question): Promise<Answer>;
}

export type Question =
  | { kind: 'approval'; tool_name: string; command: string; description: string; choices: ApprovalChoice[] }
  | { kind: 'clarify'; questions: { qid: string; question: string; choices?: string[]; multi_select?: boolean }[] };

export type ApprovalChoice = 'once' | 'session' | 'always' | 'deny';

export type Answer =
  | { kind: 'choice'; choice: ApprovalChoice }
  | { kind: 'answers'; answers: Record<string, string | null> }
  | { kind: 'timeout' }
  | { kind: 'withdrawn' };

/** What a runner may yield: run events but the first and the last, which the authority writes. */
export type RunnerEvent = Exclude<RunEvent, { type: 'run.start' } | { type: 'message.complete' }>;

/** How a turn ended, as its runner saw it. */
export type RunnerEnd = { kind: 'completed' } | { kind: 'failed'; error: TurnError };

export interface Runner {
  /** Short stable name, for logs. */
  readonly kind: string;
  run(turn: Turn, signal: AbortSignal): AsyncGenerator<RunnerEvent, RunnerEnd, void>;
}

/** One model that a session can be given. */
export interface ModelInfo {
  /** `<provider>/<name>`; the built-in agent is `builtin`. What `session.model` holds. */
  id: string;
  /** For a person. */
  label: string;
  provider: string;
  /** Where it was found: the configuration, or a probe of this machine's loopback ports. */
  source: 'builtin' | 'configured' | 'discovered';
  context_length?: number;
}
