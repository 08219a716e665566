/**
 * Which calls of an agent's tools are allowed without asking: the patterns of `approvals.allow` and what they match
 * (AP3). Pure. A pattern is one of three, and never more than it says:
 *
 *   `write_file`            every call of a tool that writes
 *   `terminal: npm test`    exactly this command, whatever signs it has
 *   `terminal: npm test *`  this command, alone or with words after it, as long as nothing in it is a sign of the shell
 *
 * There is no pattern for every command: that is `approvals.mode: auto`.
 */

export type AllowPattern =
  | { kind: 'tool'; tool: string }
  | { kind: 'exact'; tool: string; command: string }
  | { kind: 'prefix'; tool: string; command: string };

/** A call as far as the rules look at it. `command` is null for a tool that runs none. */
export interface AllowableCall {
  tool: string;
  command: string | null;
}

const TOOL = /^[A-Za-z0-9_.-]{1,128}$/;
const WORDS_AFTER = ' *';
/** What can make one command into more than one, or let it write elsewhere: separators, substitutions, redirections. */
const SHELL_SIGN = /[;&|<>`$(){}\\\x00-\x1f\x7f]/;

/** What may stand before a command without being one: variables that are set for it, and the words `!` and `time`. */
const BEFORE_COMMAND = /^(?:(?:[A-Za-z_]\w*\+?=(?:"[^"]*"|'[^']*'|[^\s"'])*|!|time(?: +-p)?)\s+)*$/;

/** Reads a pattern; null for what is none. */
export function readAllowPattern(text: string): AllowPattern | null {
  if (TOOL.test(text)) return { kind: 'tool', tool: text };
  const at = text.indexOf(': ');
  const [tool, command] = [text.slice(0, at), text.slice(at + 2)];
  if (at < 0 || !TOOL.test(tool) || command.trim() === '') return null;
  if (!command.endsWith(WORDS_AFTER)) return command === '*' ? null : { kind: 'exact', tool, command };
  const fixed = command.slice(0, -WORDS_AFTER.length);
  // A star behind nothing is every command, and one behind a sign would be whatever that sign leads to.
  return BEFORE_COMMAND.test(`${fixed.trim()} `.trimStart()) || SHELL_SIGN.test(fixed)
    ? null
    : { kind: 'prefix', tool, command: fixed };
}

/** Whether a pattern allows a call. */
export function allows(pattern: AllowPattern, { tool, command }: AllowableCall): boolean {
  if (pattern.tool !== tool) return false;
  switch (pattern.kind) {
    case 'tool':
      return command === null;
    case 'exact':
      return command === pattern.command;
    case 'prefix': {
      if (command === null || SHELL_SIGN.test(command)) return false;
      return command === pattern.command || command.startsWith(`${pattern.command} `);
    }
  }
}

/**
 * The pattern that allows this call and no other command: what `always` keeps.
 * @returns null when no pattern says exactly this (a command that ends like a pattern with a star)
 */
export function exactPattern({ tool, command }: AllowableCall): string | null {
  const text = command === null ? tool : `${tool}: ${command}`;
  const read = readAllowPattern(text);
  return read?.kind === (command === null ? 'tool' : 'exact') ? text : null;
}
