/** The workspace's tools as the built-in agent calls them; the tools themselves are server/workspace/tools.ts. */
import type { ToolDefinition } from '../../workspace/tools.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import type { Call } from './call.ts';
import { refused, succeeded } from './call.ts';
import { codeBlock } from './markdown.ts';

const MAX_SHOWN_LINES = 40;
const MAX_SHOWN_CHARACTERS = 4000;

/** A call of a workspace tool. What it gives is shown in part; the tool's card has it all. */
export function fileCall(tool: ToolDefinition, args: Record<string, unknown>, workspace: Workspace | null): Call {
  return {
    name: tool.name,
    args,
    preview: tool.preview(args),
    async run(signal) {
      const { result, is_error } = await tool.execute(args, workspace, signal);
      if (is_error && workspace === null) {
        return refused(
          result,
          'This chat has no workspace, so there are no files to look at. Choose a folder in its settings.',
        );
      }
      return is_error ? refused(result) : succeeded(result, shown(result));
    },
  };
}

function shown(result: string): string {
  const lines = result.slice(0, MAX_SHOWN_CHARACTERS).split('\n').slice(0, MAX_SHOWN_LINES).join('\n');
  const rest = lines.length < result.length ? '\n\nThe card of the tool above has the rest.' : '';
  return `${codeBlock(lines.trimEnd())}${rest}`;
}
