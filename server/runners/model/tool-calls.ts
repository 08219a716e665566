/**
 * The tool calls of one step: checked, announced together, run side by side, each reported as it ends. Whatever a model
 * writes as a name or as arguments becomes a result that it can read, never a failure of the turn.
 */
import type { ToolDefinition, ToolResult } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { RunnerEvent } from '../runner.ts';
import { argumentsObject, type SettledCall } from './history.ts';
import type { ProposedCall } from './step.ts';

export interface ToolBench {
  tools: readonly ToolDefinition[];
  workspace: Workspace | null;
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

  const results = new Map<string, ToolResult>();
  const running = new Map<string, Promise<{ call: Planned; outcome: ToolResult; duration: number }>>();
  const aborted = waitForAbort(signal);
  try {
    for (const call of calls) {
      const started = bench.now();
      const ended = execute(call, bench.workspace, signal);
      running.set(
        call.id,
        ended.then((outcome) => ({ call, outcome, duration: Math.max(0, bench.now() - started) })),
      );
    }
    while (running.size > 0) {
      const next = await Promise.race([aborted.promise, ...running.values()]);
      if (!next || signal.aborted) return null;
      const { call, outcome, duration } = next;
      running.delete(call.id);
      results.set(call.id, outcome);
      const { id, name } = call;
      yield { type: 'tool.complete', payload: { tool_id: id, name, ...outcome, duration_s: duration } };
    }
  } finally {
    aborted.release();
  }
  return calls.map(({ id, name, args }) => ({ id, name, args: argumentsObject(args), ...results.get(id)! }));
}

function plan(call: ProposedCall, bench: ToolBench): Planned {
  const id = call.id !== '' && !bench.usedIds.has(call.id) ? call.id : bench.newToolId();
  bench.usedIds.add(id);
  const { name } = call;
  const tool = bench.tools.find((candidate) => candidate.name === name) ?? null;
  const args = readArguments(call.input);
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

/** The arguments as a value; text that is not JSON stays text. A call without arguments has none to check. */
function readArguments(input: string): unknown {
  if (input.trim() === '') return {};
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

async function execute(call: Planned, workspace: Workspace | null, signal: AbortSignal): Promise<ToolResult> {
  if (call.refusal !== null) return { result: call.refusal, is_error: true };
  return call.tool.execute(call.args, workspace, signal);
}

function waitForAbort(signal: AbortSignal): { promise: Promise<null>; release(): void } {
  let release = (): void => {};
  const promise = new Promise<null>((resolve) => {
    const give = (): void => resolve(null);
    signal.addEventListener('abort', give, { once: true });
    release = () => signal.removeEventListener('abort', give);
    if (signal.aborted) give();
  });
  return { promise, release };
}
