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
  /** Ids of the prompt's attachments; rows of the history have theirs. */
  attachments: readonly string[];
  /** A file that the session was given; null when it is not there (any more). */
  attachment(id: string): Promise<TurnAttachment | null>;
  /** The session's model, `<provider>/<model>` or `builtin`. */
  model: string;
  /** Absolute path of the session's workspace, or null when it has none. */
  workspace: string | null;
  /**
   * The transcript before this prompt, oldest first: what the person sees, markers and failed turns included. Where it was
   * compacted, a summary stands for its beginning.
   */
  history: readonly Message[];
  /**
   * Asks the person something and waits. Resolves with the answer, or with why there is none.
   * Never rejects; ends with `withdrawn` when the turn is interrupted.
   * @param settled aborts when the answer is known otherwise: the question is taken back
   */
  ask(question: Question, settled?: AbortSignal): Promise<Answer>;
  /**
   * What the person has said meanwhile to this turn, oldest first, each once; to be asked between two steps, when no tool
   * runs, and before the turn ends. What is returned is part of the turn: it must be heeded. Empty when there is nothing.
   */
  steer(): Promise<Said[]>;
  /**
   * Has older turns of the history summarised, for this turn and those after it. Resolves with the history as it is then, or
   * null when there is nothing to be summarised or it could not be: whoever asks can go on without. Never rejects, and gives
   * up when the turn is interrupted. Absent where nobody keeps summaries.
   */
  compact?(wish: CompactionWish): Promise<readonly Message[] | null>;
}

export interface CompactionWish {
  /** Tokens of the last turns that may stay as they are. */
  keepTokens: number;
  /** Tokens of one request for a summary at most; null where the model's window says it. */
  most: number | null;
  /** Whether the turn cannot go on as it is: then one that has just failed is tried again. */
  urgent: boolean;
}

/** A file that a person gave to the session. */
export interface TurnAttachment {
  name: string;
  /** By its bytes. */
  mime: string;
  /** Bytes. */
  size: number;
  /** Its first bytes: all of them, if there are no more than `limit`. */
  read(limit: number): Promise<Uint8Array>;
}

/** Words of a person in the middle of a turn. */
export interface Said {
  text: string;
  attachments: string[];
}

/** What a person is asked. `tool_id`: the call that it is about, where its events have one. */
export type Question = { tool_id?: string } & (
  | {
      kind: 'approval';
      tool_name: string;
      /** What would be done, secrets hidden. */
      command: string;
      description: string;
      choices: ApprovalChoice[];
      /** What `always` would allow from then on (core/approval-rules.ts). */
      pattern?: string;
    }
  | { kind: 'clarify'; questions: { qid: string; question: string; choices?: string[]; multi_select?: boolean }[] }
);

export type ApprovalChoice = 'once' | 'session' | 'always' | 'deny';

export type Answer =
  | { kind: 'choice'; choice: ApprovalChoice }
  | { kind: 'answers'; answers: Record<string, string | null> }
  /** `answers`: those of several questions that were answered until then. */
  | { kind: 'timeout'; answers?: Record<string, string | null> }
  | { kind: 'withdrawn' };

/** What a runner may yield: run events but the first, the last and what the person says, which the authority writes. */
export type RunnerEvent = Exclude<RunEvent, { type: 'run.start' | 'message.input' | 'message.complete' }>;

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
  /** Where it was found: the configuration, a probe of this machine's loopback ports, or (an agent of others) PATH. */
  source: 'builtin' | 'configured' | 'discovered' | 'path';
  context_length?: number;
  /** Ways in which an agent of others can be told to work; `<id>?mode=<mode>` chooses one. */
  modes?: { id: string; label: string }[];
}
