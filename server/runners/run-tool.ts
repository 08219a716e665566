/**
 * One call of a tool as every runner of ours makes it: the person is asked first where they have to be, and what the tool
 * puts out is told while it runs (AP1).
 */
import { failed, type ToolDefinition, type ToolResult } from '../workspace/tool.ts';
import type { Workspace } from '../workspace/workspace.ts';
import type { Approvals } from './approvals.ts';
import type { RunnerEvent, Turn } from './runner.ts';

export interface ToolRun {
  /** Null when the session has none. */
  workspace: Workspace | null;
  turn: Pick<Turn, 'sessionId' | 'ask'>;
  approvals: Approvals;
  signal: AbortSignal;
  /** Epoch seconds. */
  now(): number;
  /** Takes what is to be told before the end of the call. */
  tell(event: RunnerEvent): void;
}

/** Seconds count from when it may begin: a person who thinks is no slow tool. */
export type ToolEnd = ToolResult & { duration_s: number };

/** Makes a call. @param id of the call, as its events have it */
export async function runTool(tool: ToolDefinition, id: string, args: unknown, run: ToolRun): Promise<ToolEnd> {
  const { workspace, turn, signal, tell } = run;
  const ask: Turn['ask'] = (question, settled) => turn.ask({ ...question, tool_id: id }, settled);
  const changes = tool.effect === 'write' || tool.effect === 'run';
  // Nobody is asked about what cannot be done.
  if (changes && workspace === null) return { ...failed(NO_WORKSPACE), duration_s: 0 };
  const decision = await run.approvals.allow(tool, args, { sessionId: turn.sessionId, ask });
  if (!decision.ok) {
    return { ...failed(decision.result), ...(decision.denied ? { denied: true } : {}), duration_s: 0 };
  }
  if (signal.aborted) return { ...failed(STOPPED), duration_s: 0 };
  const started = run.now();
  let isOver = false;
  const report = (event: RunnerEvent): void => {
    if (!isOver && !signal.aborted) tell(event);
  };
  const result = await tool.execute(args, {
    workspace,
    signal,
    output: (text) => report({ type: 'tool.output', payload: { tool_id: id, text } }),
    ask,
    todos: (todos) => report({ type: 'todo.updated', payload: { todos } }),
  });
  isOver = true;
  return { ...result, duration_s: Math.max(0, run.now() - started) };
}

const NO_WORKSPACE = 'This session has no workspace, so nothing can be written or run.';
const STOPPED = 'The turn was stopped before this began.';
