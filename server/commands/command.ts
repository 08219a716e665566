/** A command of the program: what it is called with, and what it says and answers. One file for each beside this one. */

/** Where a command writes. Results go to `out`, what a person should know besides to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether a person is looking: only then is progress drawn. */
  isPerson: boolean;
}

export interface Command {
  /** What `--help` prints; the first line is `Usage: turnkeep <name> …`. */
  usage: string;
  /**
   * @param args what stands behind the name
   * @returns the exit code
   * @throws CommandError for what the caller did wrong, told as one sentence; anything else is a bug and travels up
   */
  run(args: readonly string[], terminal: Terminal, env: NodeJS.ProcessEnv): Promise<number>;
}

/** A mistake of the caller, or a state of the home that the command cannot work with. Exit code 1 unless it says another. */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
