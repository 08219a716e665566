/**
 * The words of the project as types. Values here are plain data with the names of the wire and of the disk
 * (snake_case where a person or another program reads them). Nothing here does anything.
 */

export type SessionStatus = 'idle' | 'queued' | 'running' | 'waiting' | 'unknown';
export type AdmissionStatus = 'queued' | 'started' | 'terminal' | 'unknown';
export type Outcome = 'completed' | 'interrupted' | 'failed' | 'cancelled' | 'rejected';
export type Mode = 'queue' | 'steer' | 'interrupt' | 'reject';
export type MessageRole = 'user' | 'assistant' | 'tool' | 'system';
export type MessageStatus = 'complete' | 'partial' | 'interrupted' | 'error';

/** Codes of a turn that ended badly; `error.code` of a message and of `message.complete`. */
export type TurnErrorCode =
  | 'rate_limited'
  | 'quota'
  | 'context_too_long'
  | 'auth'
  | 'model_not_found'
  | 'content_filter'
  | 'empty_reply'
  | 'stalled'
  | 'network'
  | 'provider_error'
  | 'agent_crashed'
  | 'interrupted';

/** What a marker may claim about why a turn ended early. */
export type MarkerCause = 'process_restart' | 'lost_bookkeeping' | 'split_brain' | 'unknown';
export type MarkerRecovery = 'recovered' | 'pending' | 'none' | 'given_up';

export interface TurnError {
  code: TurnErrorCode;
  /** One sentence for a person; never a secret, a stack or a path of this machine. */
  message: string;
  retryable: boolean;
  /** Seconds, as the provider asked for them. */
  retry_after?: number;
  cause?: MarkerCause;
  recovery?: MarkerRecovery;
}

/** Token counts of one step, of a run, or of a session. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cached_tokens?: number;
  reasoning_tokens?: number;
  cost_usd?: number;
  /** Tokens of the model's window in use after this step, and the size of that window. */
  context_used?: number;
  context_length?: number;
  /** The provider counted nothing: `context_used` is our estimate. */
  context_estimated?: boolean;
}

/** One point of what an agent means to do. */
export interface Todo {
  content: string;
  status: 'pending' | 'in_progress' | 'completed';
}

/** A tool call as OpenAI-compatible providers and other programs' state databases write it. */
export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string /** JSON text of the arguments object. */; arguments: string };
}

/**
 * One row of a transcript, as the sidecar holds it and as GET messages gives it.
 * `id` is `<run id>.<n>`: 0 the prompt, then the rows of the run in order, `.m` its marker.
 */
export interface Message {
  id: string;
  role: MessageRole;
  content: string;
  /** Epoch seconds. */
  timestamp: number;
  run_id?: string;
  status?: MessageStatus;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  /** Of a tool row: the tool's name. */
  name?: string;
  is_error?: boolean;
  duration_s?: number;
  /** Of a tool row: what the tool changed in a file, as a unified diff. */
  diff?: string;
  /** Of a tool row: the person said no to the call. */
  denied?: true;
  /** What the agent meant to do as it told when it wrote this row; absent where it told nothing new. */
  todos?: Todo[];
  reasoning?: string;
  attachments?: string[];
  model?: string;
  usage?: Usage;
  recovered?: boolean;
  error?: TurnError;
}

/** One accepted prompt: the durable row behind a 202. */
export interface Admission {
  admission_id: string;
  request_id: string;
  principal_id: string;
  session_id: string;
  run_id: string;
  /** Place in the order of acceptance, over all sessions. */
  sequence: number;
  text: string;
  attachments: string[];
  mode: Mode;
  digest: string;
  status: AdmissionStatus;
  outcome: Outcome | null;
  /** The epoch that runs or ran it; null while it waits. */
  epoch: number | null;
  /** The session's generation at its claim; null while it waits. */
  generation: number | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  /** The last `seq` of its journal, once that is sealed. */
  last_seq: number | null;
  /** Id of the row that `message.complete` named. */
  message_id: string | null;
  error: TurnError | null;
  /** The journal file was deleted after its time (`journal.keep_h`). */
  journal_pruned: boolean;
}

/** The process that may run a session, as the lease and the epoch record it. */
export interface ProcessIdentity {
  pid: number;
  /** Start time of the process in the system's own unit, with the boot it belongs to; null when the system would not say. */
  start: string | null;
}

/** What a credential may be used for; each holds those before it. */
export type Scope = 'read' | 'prompt' | 'admin';
