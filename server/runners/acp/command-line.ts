/**
 * Commands of an agent as one line for a shell: what is run is what a person is shown. Pure.
 *
 * A command without arguments is a line already, as agents give it; with arguments it is a program, and each of them is
 * one word, whatever signs it has.
 */

/** A command, where it starts, and what it is given of an environment. */
export interface RunArguments {
  command: string;
  /** From the root of the workspace; absent for the root itself. */
  cwd?: string;
  env?: Record<string, string>;
}

const PLAIN_WORD = /^[\w@%+:,./-]+$/;
/** Those of the system: a program of that name elsewhere may do anything. */
const SHELL = /^(?:(?:\/usr)?\/bin\/)?(?:ba|da|z)?sh$/;

/** One word for a shell that stands for exactly this text. Source: POSIX.1-2017, Shell Command Language, 2.2.2. */
const quoted = (word: string): string => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** The line that runs a program with these arguments. */
export function commandLine(words: readonly string[]): string {
  return words.length === 1 ? words[0]! : words.map(quoted).join(' ');
}

/** What is run in the end: of a shell that is given a whole line, that line. */
export function commandMeant(words: readonly string[]): string {
  const [shell, option, line] = words;
  const isLine = words.length === 3 && SHELL.test(shell!) && (option === '-c' || option === '-lc');
  return isLine && line!.trim() !== '' ? line! : commandLine(words);
}

/** @param cwd from the root of the workspace, `.` for the root */
export function runArguments(command: string, cwd: string, env: Record<string, string>): RunArguments {
  return {
    command,
    ...(cwd === '.' ? {} : { cwd }),
    ...(Object.keys(env).length === 0 ? {} : { env: Object.fromEntries(Object.entries(env).sort()) }),
  };
}

/** Tells commands apart. */
export const runKey = ({ command, cwd, env }: RunArguments): string => JSON.stringify([command.trim(), cwd, env]);
