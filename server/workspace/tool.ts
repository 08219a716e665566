/**
 * What a tool of an agent is: its description for a model, what it may do, and what it is given while it runs. Owns the
 * promise that a tool never throws; knows no tool.
 */
import type { Todo } from '../core/terms.ts';
import type { Answer, Question } from '../runners/runner.ts';
import type { Workspace } from './workspace.ts';

/**
 * What a tool does beyond answering: `read` looks at files, `write` changes them, `run` runs commands, `call` has something
 * done by another program, wherever that works, `plan` keeps the agent's own list, `ask` asks the person. Whether somebody
 * is asked first depends on it.
 */
export type ToolEffect = 'read' | 'write' | 'run' | 'call' | 'plan' | 'ask';

/** Effects that reach beyond the conversation: a person is asked first. */
export const asksFirst = (effect: ToolEffect): boolean => effect === 'write' || effect === 'run' || effect === 'call';

export interface ToolResult {
  /** What the agent is told; bounded, and says so when something was cut. */
  result: string;
  is_error: boolean;
  /** What was changed in a file, as a unified diff; bounded. */
  diff?: string;
  /** The person said no: nothing was done. */
  denied?: true;
}

/** What a tool is given for one call. */
export interface ToolContext {
  /** Null when the session has none. */
  workspace: Workspace | null;
  signal: AbortSignal;
  /** Tells what the tool puts out while it runs, piece by piece. */
  output(text: string): void;
  /** Asks the person. */
  ask(question: Question): Promise<Answer>;
  /** Tells the whole list of what the agent means to do. */
  todos(list: Todo[]): void;
}

export interface ToolDefinition {
  name: string;
  description: string;
  effect: ToolEffect;
  /** JSON Schema (an object) of the arguments. */
  parameters: Record<string, unknown>;
  /** One short line for the head of a tool card. Accepts anything a model may send. */
  preview(args: unknown): string;
  /** Never throws: bad arguments and missing files are results with `is_error`. */
  execute(args: unknown, context: ToolContext): Promise<ToolResult>;
}

export const done = (result: string): ToolResult => ({ result, is_error: false });
export const failed = (result: string): ToolResult => ({ result, is_error: true });

/** The JSON Schema of arguments that are one object. */
export function schema(properties: Record<string, unknown>, required: string[]): Record<string, unknown> {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A tool that works in a workspace: it has one, and what it throws is a result, named by its code alone. */
export function inWorkspace(
  execute: (args: unknown, workspace: Workspace, context: ToolContext) => Promise<ToolResult>,
): ToolDefinition['execute'] {
  return async (args, context) => {
    if (context.workspace === null) return failed('This session has no workspace.');
    try {
      return await execute(args, context.workspace, context);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException | null)?.code;
      return failed(`The tool failed (${typeof code === 'string' ? code : 'unexpected error'}).`);
    }
  };
}
