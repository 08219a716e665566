/**
 * The tool calls of one step: checked, announced together, allowed, run side by side, each reported while it runs and as
 * it ends. Whatever a model writes as a name or as arguments becomes a result that it can read, never a failure of the
 * turn.
 */
import type { ToolDefinition } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { waitForAbort } from '../abort-wait.ts';
import type { ApprovalContext, Approvals } from '../approvals.ts';
import { runTool, type ToolEnd } from '../run-tool.ts';
import type { RunnerEvent } from '../runner.ts';
import { createSideEvents, type SideEvents } from '../side-events.ts';
import { argumentsObject, readCallArguments } from './call-arguments.ts';
import type { SettledCall } from './history.ts';
import type { ProposedCall } from './step.ts';

export interface ToolBench {
  tools: readonly ToolDefinition[];
  workspace: Workspace | null;
  approvals: Approvals;
  /** The turn that the calls are of: whom they ask. */
  turn: ApprovalContext;
  /** Ids that the conversation has used already; grows. */
  usedIds: Set<string>;
  newToolId: () => string;
  /** Epoch seconds. */
  now: () => number;
}

type Planned = { id: string; name: string; args: unknown } & (
  | { tool: ToolDefinition; refusal: null }
  | { tool: ToolDefinition | null; refusal: string }
);

/**
 * Runs the calls of a step.
 * @returns the calls with their results in the order of the calls; null when the turn was aborted before all ended
 */
export async function* runToolCalls(
  proposed: readonly ProposedCall[],
  bench: ToolBench,
  signal: AbortSignal,
): AsyncGenerator<RunnerEvent, SettledCall[] | null, void> {
  const calls = proposed.map((call) => plan(call, bench));
  for (const { id, name, args, tool } of calls) {
    const preview = tool ? tool.preview(args) : name;
    yield { type: 'tool.start', payload: { tool_id: id, name, args, preview } };
  }

  const results = new Map<string, ToolEnd>();
  const running = new Map<string, Promise<{ call: Planned; end: ToolEnd }>>();
  const reports = createSideEvents();
  const aborted = waitForAbort(signal);
  try {
    for (const call of calls) {
      running.set(
        call.id,
        execute(call, bench, reports, signal).then((end) => ({ call, end })),
      );
    }
    while (running.size > 0) {
      const next = await Promise.race([aborted.happened, reports.some(), ...running.values()]);
      if (signal.aborted) return null;
      // What a tool reported stands before its end.
      yield* reports.take();
      if (next === null) continue;
      const { call, end } = next;
      running.delete(call.id);
      results.set(call.id, end);
      yield { type: 'tool.complete', payload: { tool_id: call.id, name: call.name, ...end } };
    }
  } finally {
    aborted.release();
  }
  return calls.map(({ id, name, args }) => {
    const { result, is_error } = results.get(id)!;
    return { id, name, args: argumentsObject(args), result, is_error };
  });
}

function plan(call: ProposedCall, bench: ToolBench): Planned {
  const id = call.id !== '' && !bench.usedIds.has(call.id) ? call.id : bench.newToolId();
  bench.usedIds.add(id);
  const { name } = call;
  const tool = bench.tools.find((candidate) => candidate.name === name) ?? null;
  const args = readCallArguments(call.input);
  if (!tool) {
    const names = bench.tools.map((candidate) => candidate.name).join(', ');
    return { id, name, args, tool, refusal: `There is no tool named "${name}". The tools are: ${names || 'none'}.` };
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return {
      id,
      name,
      args,
      tool,
      refusal: 'The arguments are not a JSON object. Call the tool again with valid JSON.',
    };
  }
  return { id, name, args, tool, refusal: null };
}

async function execute(call: Planned, bench: ToolBench, reports: SideEvents, signal: AbortSignal): Promise<ToolEnd> {
  if (call.refusal !== null) return { result: call.refusal, is_error: true, duration_s: 0 };
  return runTool(call.tool, call.id, call.args, { ...bench, signal, tell: reports.tell });
}
