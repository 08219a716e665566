/**
 * The tools that an agent has in a session's workspace, with the JSON Schema that a model is shown. Used by every runner
 * of ours. Paths never leave the workspace (RU3, TL1); a command is not held by that, it is run as the server's user.
 */
import type { Commands } from './commands.ts';
import { createReadTools } from './read-tools.ts';
import { createTerminalTool } from './terminal-tool.ts';
import { createTodoTool } from './todo-tool.ts';
import type { ToolDefinition } from './tool.ts';
import { createWriteTools } from './write-tools.ts';

export type { ToolContext, ToolDefinition, ToolEffect, ToolResult } from './tool.ts';

/**
 * `list_files`, `read_file`, `search_files`, `write_file`, `edit_file`, `todo`, and `terminal` where there is something
 * that runs commands.
 */
export function createWorkspaceTools(parts: { commands?: Commands } = {}): readonly ToolDefinition[] {
  return [
    ...createReadTools(),
    ...createWriteTools(),
    createTodoTool(),
    ...(parts.commands ? [createTerminalTool(parts.commands)] : []),
  ];
}
