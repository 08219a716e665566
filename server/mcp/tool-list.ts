/**
 * The tools that a server says it has, whatever it says: those that can be used, and why the others cannot.
 */
import { wellFormed, wellFormedJson } from '../core/text.ts';
import { createSafeSchema } from './input-schema.ts';
import type { McpServerSettings } from './settings.ts';
import { toolName } from './tool-names.ts';

export interface McpTool {
  /** As a model knows it. */
  name: string;
  /** As its server knows it. */
  ownName: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ToolList {
  tools: McpTool[];
  /** Not those that the configuration leaves out. */
  leftOut: { name: string; reason: string }[];
}

const MAX_NAME = 256;
/** Most characters of what a tool says about itself. */
const MAX_DESCRIPTION = 4_000;
/** Most tools of a server, and most characters of all their descriptions and schemas. */
const MAX_TOOLS = 1_000;
/** Items of the list that are looked at. */
export const MAX_LISTED = 2 * MAX_TOOLS;
const MAX_CHARACTERS = 1024 * 1024;

/**
 * @param listed items of the pages of `tools/list`, in their order
 * @param isWhole whether the server has no more
 * @param hide takes what is secret out of a text
 */
export function readToolList(
  listed: readonly unknown[],
  isWhole: boolean,
  { name: server, include, exclude }: Pick<McpServerSettings, 'name' | 'include' | 'exclude'>,
  hide: (text: string) => string,
): ToolList {
  const tools = new Map<string, McpTool>();
  const leftOut: ToolList['leftOut'] = [];
  const safeSchema = createSafeSchema();
  let characters = 0;
  for (const item of listed.slice(0, MAX_LISTED)) {
    const { name: ownName, description, inputSchema, execution } = { ...(item as Record<string, unknown>) };
    if (typeof ownName !== 'string' || ownName === '' || ownName.length > MAX_NAME) {
      leftOut.push({ name: '?', reason: `it has no name, or one of more than ${MAX_NAME} characters` });
      continue;
    }
    if (exclude.includes(ownName) || (include !== null && !include.includes(ownName))) continue;
    const leave = (reason: string): void => void leftOut.push({ name: wellFormed(ownName), reason });
    const name = toolName(server, ownName);
    const safe = safeSchema(inputSchema);
    if (!safe.ok) leave(safe.reason);
    else if (isTask(execution)) leave('it can only be called as a task, which is not spoken here');
    else if (tools.has(name)) leave('its server has another tool of this name');
    else if (tools.size >= MAX_TOOLS) leave(`its server has more than ${MAX_TOOLS} tools`);
    else {
      const about = typeof description === 'string' ? hide(description) : '';
      const tool: McpTool = {
        name,
        ownName,
        description: wellFormed(about.length > MAX_DESCRIPTION ? `${about.slice(0, MAX_DESCRIPTION)} […]` : about),
        parameters: wellFormedJson(safe.schema),
      };
      characters += tool.description.length + JSON.stringify(tool.parameters).length;
      if (characters > MAX_CHARACTERS) leave(`all tools of its server have more than ${MAX_CHARACTERS} characters`);
      else tools.set(name, tool);
    }
  }
  if (!isWhole || listed.length > MAX_LISTED) {
    leftOut.push({ name: '…', reason: 'the list of its server is too long to be read to its end' });
  }
  return { tools: [...tools.values()], leftOut };
}

/** Whether a tool has to be called in the form of a task. */
const isTask = (execution: unknown): boolean =>
  typeof execution === 'object' &&
  execution !== null &&
  'taskSupport' in execution &&
  execution.taskSupport === 'required';
