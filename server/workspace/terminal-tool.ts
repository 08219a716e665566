/** The `terminal` tool: one shell command in the workspace. Owns its words and limits; the processes are commands.ts. */
import { oneLine, readArguments } from './arguments.ts';
import { type CommandEnd, type Commands, KEPT_BYTES } from './commands.ts';
import { sentence } from './path-words.ts';
import { failed, inWorkspace, schema, type ToolContext, type ToolDefinition, type ToolResult } from './tool.ts';
import type { Workspace } from './workspace.ts';

export const DEFAULT_TIMEOUT_S = 120;
export const MAX_TIMEOUT_S = 3600;
/** Longer ones do not fit where the system passes them on (bytes). */
export const MAX_COMMAND_BYTES = 100_000;

/** `terminal`. @param commands what runs them */
export function createTerminalTool(commands: Commands): ToolDefinition {
  return {
    name: 'terminal',
    description: `Run a shell command in the workspace and wait for its end. It has no input and no screen; what it leaves running in the background is ended with it. Of its output the first and the last ${KEPT_BYTES / 1024} kB are given.`,
    effect: 'run',
    parameters: schema(
      {
        command: {
          type: 'string',
          minLength: 1,
          description: 'The command, for a POSIX shell (bash where there is one).',
        },
        timeout_s: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_TIMEOUT_S,
          description: `Seconds after which it is stopped. Default: ${DEFAULT_TIMEOUT_S}.`,
        },
        cwd: { type: 'string', description: 'Folder to run in, relative to the workspace. Default: the workspace.' },
      },
      ['command'],
    ),
    preview: (args) => oneLine(args, 'command'),
    execute: inWorkspace((args, workspace, context) => runCommand(commands, args, workspace, context)),
  };
}

async function runCommand(
  commands: Commands,
  args: unknown,
  workspace: Workspace,
  { signal, output }: ToolContext,
): Promise<ToolResult> {
  const read = readArguments(args, { command: 'text', timeout_s: 'count?', cwd: 'text?' });
  if (!read.ok) return failed(read.problem);
  const { command, timeout_s: timeoutS = DEFAULT_TIMEOUT_S } = read.values;
  const cwd = read.values.cwd || '.';
  if (command.includes('\0')) return failed('The command has a NUL character, which no shell takes.');
  const bytes = Buffer.byteLength(command);
  if (bytes > MAX_COMMAND_BYTES) {
    return failed(`The command has ${bytes} bytes; ${MAX_COMMAND_BYTES} are the most. Write a script and run that.`);
  }
  if (timeoutS > MAX_TIMEOUT_S) return failed(`"timeout_s" is ${timeoutS}; ${MAX_TIMEOUT_S} are the most.`);
  if (signal.aborted) return failed(sentence('aborted', cwd));
  const ran = await workspace.inFolder(cwd, (folder) =>
    commands.run({ command: command.toWellFormed(), folder, timeoutS, signal, onOutput: output }),
  );
  return ran.ok ? describeEnd(ran.value, timeoutS) : failed(sentence(ran.problem, cwd));
}

function describeEnd(end: CommandEnd, timeoutS: number): ToolResult {
  switch (end.kind) {
    case 'not_started':
      return failed(`The command was not started (${end.code}).`);
    case 'exit':
      return { result: withNote(end.output.text(), `exit code ${end.code}`), is_error: end.code !== 0 };
    case 'signal':
      return failed(withNote(end.output.text(), `ended by ${end.signal}`));
    case 'timeout':
      return failed(withNote(end.output.text(), `stopped after ${timeoutS} s: its time was up`));
    case 'aborted':
      return failed(withNote(end.output.text(), 'stopped'));
  }
}

const withNote = (output: string, note: string): string =>
  `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}[${note}]`;
