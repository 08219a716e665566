/**
 * Running shell commands. Owns their processes from the start to the last of them: none outlives its command, whether
 * that ends, is stopped, takes too long, or the server is killed meanwhile (TL4); their output costs bounded memory (TL3).
 *
 * A command is noted in the home before it is started, so that what a killed server leaves is found at the next start.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { access, constants, type FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningCommand, RunningCommands } from '../../db/files/running-commands.ts';
import type { ProcessIdentity } from '../core/terms.ts';
import { createLiveOutput } from './live-output.ts';
import { type KeptOutput, keepOutput } from './output.ts';
import { type OutputPipe, openOutputPipe } from './output-pipe.ts';
import { endProcesses, HELD, MARK } from './processes.ts';

export interface CommandsParts {
  /** All that a command has of an environment, its mark apart. */
  env: Readonly<Record<string, string>>;
  /** Absolute path of the shell. */
  shell: string;
  /** Where the running ones are noted. */
  notes: RunningCommands;
  /** This server. */
  server: ProcessIdentity;
  identityOf(pid: number): ProcessIdentity;
  isAlive(recorded: ProcessIdentity): boolean;
  /** How long processes that are to end have to do so by themselves, before they are killed. */
  graceMs: number;
  /** 32 hexadecimal digits, never given before. */
  newMark(): string;
  /** Told of processes that could not be ended. */
  onLeft(mark: string): void;
}

export interface CommandRequest {
  command: string;
  /** A path of the folder to start in. */
  folder: string;
  /** What it has of an environment beside that of all commands. */
  env?: Readonly<Record<string, string>>;
  /** Null: it may run until it is stopped. */
  timeoutS: number | null;
  signal: AbortSignal;
  /** It runs now. */
  onStart?(): void;
  /** What it puts out, to be shown: bounded, and left out where it is too much. */
  onOutput(text: string): void;
  /** All that it puts out. */
  onBytes?(chunk: Buffer): void;
}

export type CommandEnd =
  | { kind: 'exit'; code: number; output: KeptOutput }
  | { kind: 'signal'; signal: string; output: KeptOutput }
  | { kind: 'timeout' | 'aborted'; output: KeptOutput }
  /** `code` is the system's word for why. */
  | { kind: 'not_started'; code: string };

export interface Commands {
  /** Runs a command to its end. All its processes have ended then, also those that it left in the background. */
  run(request: CommandRequest): Promise<CommandEnd>;
  /** How many have not ended. */
  running(): number;
  /** Ends what servers left that are gone. @returns how many commands that were */
  reap(): Promise<number>;
  /** Stops all of them and waits until they are gone. No more are started. */
  close(): Promise<void>;
}

/** Bytes of an output that are kept of its beginning, and of its end. */
export const KEPT_BYTES = 16 * 1024;
/** How often output is shown. */
const SHOW_MS = 300;
/** Bytes that are taken from a command in that time: one that writes without an end must not take the whole server. */
const TAKEN_BYTES = 16 * 1024 * 1024;
/** How long the rest of the output is waited for once no process of ours holds its pipe. */
const REST_MS = 1_000;

// Both outputs in one pipe, in their order; the space keeps a command from being taken for an option of the shell.
const START = `exec ${HELD}<&3 3<&-; exec "$0" -c " $1" 2>&1`;

/** The shell that commands are written for. */
export async function findShell(): Promise<string> {
  const bash = '/bin/bash';
  return access(bash, constants.X_OK).then(
    () => bash,
    () => '/bin/sh',
  );
}

/** Makes what runs commands. */
export function createCommands(parts: CommandsParts): Commands {
  const running = new Map<object, { stop(): void; ended: Promise<unknown> }>();
  let closed = false;

  const start = ({ command, folder, env }: CommandRequest, mark: string, held: FileHandle, pipe: OutputPipe | null) => {
    try {
      return spawn('/bin/sh', ['-c', START, parts.shell, command], {
        cwd: folder,
        env: { ...parts.env, ...env, [MARK]: mark },
        stdio: ['ignore', pipe?.input ?? 'pipe', 'ignore', held.fd],
        detached: true, // A session and a group of its own, without a terminal.
      });
    } catch (error) {
      // Some failures are thrown and some are told by an event.
      return codeOf(error);
    }
  };

  const supervise = async (request: CommandRequest, stopped: Promise<'aborted'>): Promise<CommandEnd> => {
    const mark = parts.newMark();
    const note = (leader: ProcessIdentity | null): Promise<void> =>
      parts.notes.note({ mark, server: parts.server, leader });
    let held: FileHandle | null = null;
    let pipe: OutputPipe | null;
    try {
      await note(null);
      held = await parts.notes.hold(mark);
      pipe = await openOutputPipe(parts.notes.placeFor(mark));
    } catch (error) {
      await held?.close();
      return { kind: 'not_started', code: codeOf(error) };
    }
    let isEnded = true;
    try {
      if (closed || request.signal.aborted) return { kind: 'aborted', output: keepOutput(0, 1) };
      const child = start(request, mark, held, pipe);
      pipe?.closeInput();
      if (typeof child === 'string') return { kind: 'not_started', code: child };
      const failed = new Promise<string>((resolve) => child.once('error', (error) => resolve(codeOf(error))));
      const { pid } = child;
      if (pid === undefined) return { kind: 'not_started', code: await failed };
      isEnded = false;
      request.onStart?.();
      return await follow(
        { child, output: pipe?.output ?? child.stdout! },
        request,
        stopped,
        async () => {
          isEnded = await endProcesses({ mark, leader: pid }, parts.graceMs);
          if (!isEnded) parts.onLeft(mark);
        },
        () => note(parts.identityOf(pid)),
      );
    } finally {
      await held.close();
      pipe?.closeInput();
      pipe?.output.destroy();
      if (isEnded) await parts.notes.forget(mark);
    }
  };

  return {
    async run(request) {
      const key = {};
      let stop = (): void => {};
      const stopped = new Promise<'aborted'>((resolve) => {
        stop = () => resolve('aborted');
      });
      request.signal.addEventListener('abort', stop, { once: true });
      if (request.signal.aborted) stop();
      const ended = supervise(request, stopped);
      running.set(key, { stop, ended: ended.catch(() => {}) });
      try {
        return await ended;
      } finally {
        running.delete(key);
        request.signal.removeEventListener('abort', stop);
      }
    },

    running: () => running.size,

    async reap() {
      const left = (await parts.notes.all()).filter(({ server }) => server === null || !parts.isAlive(server));
      await Promise.all(left.map((command) => endLeft(command, parts)));
      return left.length;
    },

    async close() {
      closed = true;
      for (const { stop } of running.values()) stop();
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}

/** Follows a started command to its end; `endAll` ends its processes. */
async function follow(
  { child, output: stdout }: { child: ChildProcess; output: Readable },
  { timeoutS, onOutput, onBytes }: CommandRequest,
  stopped: Promise<'aborted'>,
  endAll: () => Promise<void>,
  noteLeader: () => Promise<void>,
): Promise<CommandEnd> {
  const output = keepOutput(KEPT_BYTES, KEPT_BYTES);
  const live = createLiveOutput(onOutput);
  let taken = 0;
  const beat = setInterval(() => {
    live.flush();
    taken = 0;
    stdout.resume();
  }, SHOW_MS);
  stdout.on('data', (chunk: Buffer) => {
    output.push(chunk);
    live.push(chunk);
    onBytes?.(chunk);
    taken += chunk.length;
    if (taken >= TAKEN_BYTES) stdout.pause();
  });
  stdout.on('error', () => {}); // It is read no further; the end of the command is told by its exit.
  const closed = new Promise<void>((resolve) => stdout.once('close', () => resolve()));
  const exited = new Promise<CommandEnd>((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal === null ? { kind: 'exit', code: code ?? 0, output } : { kind: 'signal', signal, output }),
    );
  });
  const timer = new AbortController();
  const late =
    timeoutS === null
      ? new Promise<never>(() => {})
      : delay(timeoutS * 1000, 'timeout' as const, { signal: timer.signal }).catch(() => 'timeout' as const);
  try {
    // Without this note it would still be found by its mark.
    await noteLeader().catch(() => {});
    const first = await Promise.race([stopped, exited, late]);
    await endAll();
    await Promise.race([closed, delay(REST_MS, undefined, { ref: false })]);
    return typeof first === 'string' ? { kind: first, output } : first;
  } finally {
    timer.abort();
    clearInterval(beat);
    stdout.destroy();
    live.flush();
  }
}

/** Ends what a server left that is gone. Its first process counts only if it is still the one that was noted. */
async function endLeft({ mark, leader }: RunningCommand, parts: CommandsParts): Promise<void> {
  const isSame =
    leader !== null && leader.pid > 1 && leader.start !== null && parts.identityOf(leader.pid).start === leader.start;
  if (await endProcesses({ mark, leader: isSame ? leader.pid : null }, parts.graceMs)) await parts.notes.forget(mark);
  else parts.onLeft(mark);
}

const codeOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return typeof code === 'string' ? code : 'unknown';
};
