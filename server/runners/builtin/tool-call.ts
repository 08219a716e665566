/** The tools that every runner has, as the built-in agent calls them; the tools themselves are server/workspace. */

import type { ToolDefinition, ToolResult } from '../../workspace/tool.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { runTool } from '../run-tool.ts';
import type { Call, Scene } from './call.ts';
import { codeBlock } from './markdown.ts';

const MAX_SHOWN_LINES = 40;
const MAX_SHOWN_CHARACTERS = 4000;

/** A call of a tool. What it gives is shown in part; the tool's card has it all. */
export function toolCall(
  tool: ToolDefinition,
  args: Record<string, unknown>,
  workspace: Workspace | null,
  { turn, services }: Scene,
): Call {
  return {
    name: tool.name,
    args,
    preview: tool.preview(args),
    async run(signal, { id, tell }) {
      const run = { workspace, turn, approvals: services.approvals, signal, now: services.now, tell };
      const end = await runTool(tool, id, args, run);
      return { ...end, say: wordsAbout(tool, end, workspace) };
    },
  };
}

function wordsAbout(
  { effect }: ToolDefinition,
  { result, is_error, denied }: ToolResult,
  workspace: Workspace | null,
): string {
  // Its card says who did not want it.
  if (denied) return 'As you wish: nothing was done.';
  const touchesFiles = effect === 'read' || effect === 'write' || effect === 'run';
  if (is_error && touchesFiles && workspace === null) {
    return 'This chat has no workspace, so there are no files to work with. Choose a folder in its settings.';
  }
  return effect === 'run' || effect === 'call' || (effect === 'read' && !is_error) ? shown(result) : result;
}

function shown(result: string): string {
  const lines = result.slice(0, MAX_SHOWN_CHARACTERS).split('\n').slice(0, MAX_SHOWN_LINES).join('\n');
  const rest = lines.length < result.length ? '\n\nThe card of the tool above has the rest.' : '';
  return `${codeBlock(lines.trimEnd())}${rest}`;
}
