/** What a tool is given in a test: everything that it tells is kept. */
import type { Todo } from '../../server/core/terms.ts';
import type { ToolContext } from '../../server/workspace/tools.ts';
import type { Workspace } from '../../server/workspace/workspace.ts';

export interface WatchedContext extends ToolContext {
  outputs: string[];
  lists: Todo[][];
}

export function toolContext(
  workspace: Workspace | null,
  signal: AbortSignal = new AbortController().signal,
  onOutput: (text: string) => void = () => {},
): WatchedContext {
  const outputs: string[] = [];
  const lists: Todo[][] = [];
  return {
    workspace,
    signal,
    outputs,
    lists,
    output(text) {
      outputs.push(text);
      onOutput(text);
    },
    ask: async () => ({ kind: 'withdrawn' }),
    todos: (list) => void lists.push(list),
  };
}
