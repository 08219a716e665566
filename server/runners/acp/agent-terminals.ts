/**
 * `terminal/*`: commands that an agent has its client run in the workspace. Owns the terminals of one turn: none outlives
 * it (AC22). The processes are workspace/commands.ts, with all that holds for commands of our own (TL1, TL3, TL4); the person
 * is asked first, unless they just allowed it (AP1, AC20).
 */
import type { CommandEnd } from '../../workspace/commands.ts';
import { keepEnd, type OutputEnd } from '../../workspace/output.ts';
import { sentence } from '../../workspace/path-words.ts';
import { MAX_COMMAND_BYTES } from '../../workspace/terminal-tool.ts';
import { NO_WORKSPACE } from './agent-files.ts';
import type { ClientParts } from './client-parts.ts';
import { commandLine, commandMeant, runArguments, runKey } from './command-line.ts';
import { listOf, recordOf, stringOf } from './raw.ts';
import { notAllowed, notDone, notThere, unfit } from './refusals.ts';

/** How a command ended: one of both, or none where nobody knows. */
export interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

export interface AgentTerminals {
  /** Resolves as soon as it runs. */
  createTerminal(params: unknown, cancelled: AbortSignal): Promise<{ terminalId: string }>;
  terminalOutput(params: unknown): Promise<{ output: string; truncated: boolean; exitStatus?: ExitStatus }>;
  waitForTerminalExit(params: unknown): Promise<ExitStatus>;
  /** Ends its processes; what it put out stays. */
  killTerminal(params: unknown): Promise<Record<string, never>>;
  /** Ends its processes and forgets it. */
  releaseTerminal(params: unknown): Promise<Record<string, never>>;
  /** Ends all of them and waits until they are gone. No more are made. */
  close(): Promise<void>;
}

interface Terminal {
  output: OutputEnd;
  /** Null while it runs. */
  exit: ExitStatus | null;
  ended: Promise<ExitStatus>;
  stop(): void;
}

/** Bytes of output that are kept for an agent that does not say how many, and at most. */
const USUAL_OUTPUT = 1024 * 1024;
const MOST_OUTPUT = 4 * 1024 * 1024;
/** Terminals of one turn that are not released. */
const MOST_TERMINALS = 32;

export function createAgentTerminals(
  parts: Pick<ClientParts, 'turn' | 'workspace' | 'signal' | 'commands' | 'justAllowed' | 'tell' | 'updates' | 'allow'>,
): AgentTerminals {
  const { turn, workspace, signal, commands, justAllowed, tell, updates, allow } = parts;
  const terminals = new Map<string, Terminal>();
  let made = 0;
  let isClosed = false;

  const stopAll = (): void => {
    for (const { stop } of terminals.values()) stop();
  };
  signal.addEventListener('abort', stopAll, { once: true });

  const find = (params: unknown): [string, Terminal] => {
    const id = stringOf(recordOf(params).terminalId);
    const terminal = terminals.get(id);
    if (!terminal) throw notThere(`There is no terminal ${JSON.stringify(id.slice(0, 100))} in this turn.`);
    return [id, terminal];
  };

  const start = async ({ line, cwd, env, limit }: Wanted): Promise<string> => {
    if (workspace === null) throw notThere(NO_WORKSPACE);
    made += 1;
    const id = `${turn.runId}.t${made}`;
    const stopped = new AbortController();
    const output = keepEnd(limit);
    let isRunning = (): void => {};
    const runs = new Promise<null>((resolve) => {
      isRunning = () => resolve(null);
    });
    const ran = workspace.inFolder(cwd, (folder) =>
      commands.run({
        command: line,
        folder,
        env,
        timeoutS: null,
        signal: stopped.signal,
        onStart: isRunning,
        onOutput: (text) => tell(updates.terminalOutput(id, text)),
        onBytes: output.push,
      }),
    );
    const terminal: Terminal = {
      output,
      exit: null,
      stop: () => stopped.abort(),
      ended: ran.then((end) => {
        terminal.exit = end.ok ? exitOf(end.value) : { exitCode: null, signal: null };
        return terminal.exit;
      }),
    };
    terminal.ended.catch(() => {}); // Whoever waits for it hears of it.
    terminals.set(id, terminal);
    if (signal.aborted || isClosed) terminal.stop();
    const failed = await Promise.race([runs, ran]);
    if (failed === null) return id;
    if (failed.ok && failed.value.kind !== 'not_started' && failed.value.kind !== 'aborted') return id;
    terminals.delete(id);
    if (!failed.ok) throw unfit(sentence(failed.problem, cwd));
    if (failed.value.kind === 'aborted') throw notAllowed(STOPPED);
    throw notDone(`The command was not started (${failed.value.kind === 'not_started' ? failed.value.code : ''}).`);
  };

  return {
    async createTerminal(params, cancelled) {
      const wanted = readWanted(params);
      if (workspace === null) throw notThere(NO_WORKSPACE);
      // Nobody is asked about what cannot be done.
      const place = await workspace.place(wanted.cwd);
      if (!place.ok) throw unfit(sentence(place.problem, wanted.cwd));
      const folder = await workspace.inFolder(wanted.cwd, async () => {});
      if (!folder.ok) throw unfit(sentence(folder.problem, wanted.cwd));
      const args = runArguments(wanted.meant, place.name, wanted.env);
      if (!justAllowed.useRun(runKey(args))) {
        const decision = await allow({ name: 'terminal', effect: 'run' }, args, cancelled);
        if (!decision.ok) throw notAllowed(decision.result);
      }
      if (signal.aborted || cancelled.aborted || isClosed) throw notAllowed(STOPPED);
      if (terminals.size >= MOST_TERMINALS) {
        throw notDone(`${MOST_TERMINALS} terminals are open in this turn. Release those that are done.`);
      }
      return { terminalId: await start(wanted) };
    },

    async terminalOutput(params) {
      const [, { output, exit }] = find(params);
      const text = output.text();
      return { output: text, truncated: output.isCut(), ...(exit === null ? {} : { exitStatus: exit }) };
    },

    waitForTerminalExit: async (params) => find(params)[1].ended,

    async killTerminal(params) {
      const [, { stop, ended }] = find(params);
      stop();
      await ended;
      return {};
    },

    async releaseTerminal(params) {
      const [id, { stop, ended }] = find(params);
      stop();
      await ended;
      terminals.delete(id);
      return {};
    },

    async close() {
      isClosed = true;
      signal.removeEventListener('abort', stopAll);
      stopAll();
      await Promise.allSettled([...terminals.values()].map(({ ended }) => ended));
      terminals.clear();
    },
  };
}

const STOPPED = 'The turn was stopped before this began.';

interface Wanted {
  /** For the shell. */
  line: string;
  /** The same as a person reads it. */
  meant: string;
  cwd: string;
  env: Record<string, string>;
  /** Bytes of output. */
  limit: number;
}

function readWanted(params: unknown): Wanted {
  const { command, args, env, cwd, outputByteLimit } = recordOf(params);
  if (typeof command !== 'string' || command.trim() === '') throw unfit('The "command" of a terminal is missing.');
  const words = [command, ...listOf(args)];
  if (!words.every((word): word is string => typeof word === 'string')) throw unfit('"args" must be strings.');
  if (words.some((word) => word.includes('\0'))) throw unfit('The command has a NUL character, which no shell takes.');
  const line = commandLine(words).toWellFormed();
  const bytes = Buffer.byteLength(line);
  if (bytes > MAX_COMMAND_BYTES) throw unfit(`The command has ${bytes} bytes; ${MAX_COMMAND_BYTES} are the most.`);
  const limit = typeof outputByteLimit === 'number' && outputByteLimit >= 0 ? outputByteLimit : USUAL_OUTPUT;
  return {
    line,
    meant: commandMeant(words).toWellFormed(),
    cwd: stringOf(cwd) || '.',
    env: readEnv(env),
    limit: Math.min(Math.trunc(limit), MOST_OUTPUT),
  };
}

function readEnv(given: unknown): Record<string, string> {
  const env: Record<string, string> = {};
  for (const item of listOf(given)) {
    const { name, value } = recordOf(item);
    const isFit =
      typeof name === 'string' && /^[A-Za-z_]\w*$/.test(name) && typeof value === 'string' && !value.includes('\0');
    if (!isFit) throw unfit('A variable of "env" needs a "name" of letters, digits and _, and a "value".');
    env[name] = value;
  }
  return env;
}

function exitOf(end: CommandEnd): ExitStatus {
  switch (end.kind) {
    case 'exit':
      return { exitCode: end.code, signal: null };
    case 'signal':
      return { exitCode: null, signal: end.signal };
    case 'aborted':
      return { exitCode: null, signal: 'SIGTERM' };
    case 'timeout':
    case 'not_started':
      return { exitCode: null, signal: null };
  }
}
