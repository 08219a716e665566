/** What a person is shown of a call before they allow it: what would be run or written, word for word as far as it goes. */
import type { ToolDefinition } from '../workspace/tool.ts';

/** Longest command that a person is asked about (characters): all of it is shown. */
export const MAX_COMMAND = 16_000;
/** So much is shown of what is to be written to a file (characters); how much more there is is said. */
const MAX_CONTENT = 8_000;

/** @returns `command`: what is asked about; `description`: a sentence about it */
export function describeCall(
  tool: Pick<ToolDefinition, 'name' | 'effect'>,
  args: unknown,
): { command: string; description: string } {
  const fields = typeof args === 'object' && args !== null ? (args as Record<string, unknown>) : { arguments: args };
  if (tool.effect === 'run') {
    const { command, ...others } = fields;
    const lines = Object.entries(others).map(([name, value]) => `# ${oneLine(name)}: ${oneLine(value)}`);
    return {
      command: [typeof command === 'string' ? command : oneLine(command), ...lines].join('\n'),
      description: "Runs this command in the conversation's workspace, with the rights of the server.",
    };
  }
  if (tool.effect === 'call') {
    const lines = Object.entries(fields).map(([name, value]) =>
      typeof value === 'string' && value.includes('\n')
        ? `${oneLine(name)}:\n${indented(value, '  ')}`
        : `${oneLine(name)}: ${oneLine(value)}`,
    );
    return {
      command: [tool.name, ...lines].join('\n'),
      description: `Has another program do this (${tool.name}). What it does is up to that program; it may reach beyond the workspace.`,
    };
  }
  const { path, ...others } = fields;
  let left = 0;
  const parts = Object.entries(others).map(([name, value]) => {
    if (typeof value !== 'string') return `${oneLine(name)}: ${oneLine(value)}`;
    // No more of it is looked at than can be shown: it may be a whole file.
    left += Math.max(0, value.length - MAX_CONTENT);
    return `${oneLine(name)}:\n${indented(value.slice(0, MAX_CONTENT), MARKS.get(name) ?? '  ')}`;
  });
  const whole = [oneLine(path), ...parts].join('\n');
  const rest = left + whole.length - MAX_CONTENT;
  return {
    command:
      rest > 0 ? `${whole.slice(0, MAX_CONTENT).toWellFormed()}\n[${rest} more characters are not shown.]` : whole,
    description: `Changes a file of the conversation's workspace (${tool.name}).`,
  };
}

/** How the lines of an exchange are marked, as in a diff. */
const MARKS: ReadonlyMap<string, string> = new Map([
  ['old_text', '- '],
  ['new_text', '+ '],
]);

const indented = (text: string, mark: string): string => text.replace(/^/gm, () => mark);

/** A value on one line, so that no value can look like another field. */
function oneLine(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.replace(/[\r\n]+/g, '\\n');
}
