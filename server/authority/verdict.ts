/** What the end of an agent means for its turn. */
import type { FoldEnd } from '../core/fold.ts';
import type { Outcome, TurnError } from '../core/terms.ts';
import type { RunnerEnd } from '../runners/runner.ts';

/** Aborts a run because the server stops; any other abort is a person's. */
export const SHUTDOWN = 'shutdown';

/** The agent was stopped before it ended by itself. */
export const STOPPED = Symbol('stopped');

export type AgentEnd = RunnerEnd | typeof STOPPED;

export interface Verdict {
  outcome: Outcome;
  fold: FoldEnd;
  error: TurnError | null;
}

/** Of an agent that broke its contract and threw. */
export const CRASHED: RunnerEnd = {
  kind: 'failed',
  error: {
    code: 'agent_crashed',
    message: 'The agent stopped unexpectedly. The log of the server says why; try again.',
    retryable: true,
  },
};

const SHUT_DOWN: TurnError = {
  code: 'interrupted',
  message: 'The server was shut down before this turn finished.',
  retryable: true,
};

/** @param reason why the run was aborted, if it was */
export function judgeEnd(end: AgentEnd, reason: unknown): Verdict {
  if (end === STOPPED) {
    if (reason !== SHUTDOWN) return { outcome: 'interrupted', fold: { kind: 'interrupted' }, error: null };
    return { outcome: 'interrupted', fold: { kind: 'interrupted', error: SHUT_DOWN }, error: SHUT_DOWN };
  }
  if (end.kind === 'failed') {
    return { outcome: 'failed', fold: { kind: 'error', error: end.error }, error: end.error };
  }
  return { outcome: 'completed', fold: { kind: 'complete' }, error: null };
}
