/**
 * Programs that stay and are spoken to in lines, over their input and output. Owns their processes from the start to the
 * last of them: a program leads a group of its own, is noted before it is started, so that the next start ends what a
 * killed server leaves, and takes with it whatever it started (TL4). What it puts out costs bounded memory.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from '../core/terms.ts';
import type { CommandsParts } from './commands.ts';
import { createLineReader } from './line-reader.ts';
import { keepOutput } from './output.ts';
import { endProcesses, HELD, MARK } from './processes.ts';

export type ProgramsParts = Pick<CommandsParts, 'notes' | 'server' | 'identityOf' | 'graceMs' | 'newMark' | 'onLeft'>;

export interface ProgramRequest {
  /** A program's path, or a name that is looked for in the PATH of `env`. */
  command: string;
  args: readonly string[];
  /** All that it has of an environment, its mark apart. */
  env: Readonly<Record<string, string>>;
  /** Absolute path of the folder to start in. */
  folder: string;
  /** A longer line ends it. */
  maxLineBytes: number;
  /** Takes a line of its output, without its end. */
  onLine(line: string): void;
  /** Null, or what is waited for before more of its output is read, also when it has ended. */
  room?(): Promise<void> | null;
}

export type ProgramEnd =
  | { kind: 'exit'; code: number }
  | { kind: 'signal'; signal: string }
  /** It closed its output, or put out a line that is too long: it is ended. */
  | { kind: 'no_output' | 'line_too_long' };

export interface Program {
  pid: number;
  /** Whether it is there, asked of the system: its end is told a moment later. */
  isThere(): boolean;
  /** Says a line to it. @returns false when it cannot be told anything any more */
  send(line: string): Promise<boolean>;
  /** Resolves when it has nothing more to say; what it started may still be ending. */
  ended: Promise<ProgramEnd>;
  /** The end of what it wrote to its error output; it may hold secrets. */
  lastWords(): string;
  /** Ends it: its input, then TERM, then KILL. Resolves when none of its processes is left; again it only waits. */
  close(): Promise<void>;
}

/** `code` is the system's word for why it could not. */
export type Started = { ok: true; program: Program } | { ok: false; code: string };

export interface Programs {
  start(request: ProgramRequest): Promise<Started>;
  /** How many have processes. */
  running(): number;
  /** Ends all of them and waits until they are gone. No more are started. */
  close(): Promise<void>;
}

/** How long a program may take to end when its input has ended. */
const INPUT_END_MS = 500;
/** How long the last lines of one that has ended wait for a reader that is behind. */
const READER_MS = 10_000;
const LAST_WORDS_BYTES = 4 * 1024;
/** How much may wait to be read by a program before it is read no further, in lines of the most length. */
const MOST_UNREAD = 2;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Makes what starts programs. What servers left that are gone is ended with their commands (commands.ts). */
export function createPrograms(parts: ProgramsParts): Programs {
  const running = new Set<Program>();
  const starting = new Set<Promise<Started>>();
  let closed = false;

  const spawnIt = ({ command, args, env, folder }: ProgramRequest, mark: string, held: FileHandle): Child | string => {
    const others = Array<'ignore'>(HELD - 3).fill('ignore');
    try {
      return spawn(command, args, {
        cwd: folder,
        env: { ...env, [MARK]: mark },
        stdio: ['pipe', 'pipe', 'pipe', ...others, held.fd],
        detached: true, // A session and a group of its own, without a terminal.
      }) as unknown as Child;
    } catch (error) {
      return codeOf(error);
    }
  };

  const launch = async (request: ProgramRequest): Promise<Started> => {
    const mark = parts.newMark();
    const note = (leader: ProcessIdentity | null) => parts.notes.note({ mark, server: parts.server, leader });
    let held: FileHandle | null = null;
    let code = 'closed';
    try {
      await note(null);
      held = await parts.notes.hold(mark);
      const child = closed ? code : spawnIt(request, mark, held);
      if (typeof child === 'string') code = child;
      else {
        const failed = new Promise<string>((resolve) => child.once('error', (error) => resolve(codeOf(error))));
        const { pid } = child;
        if (pid === undefined) code = await failed;
        else {
          // Without this note it would still be found by its mark.
          const leader = parts.identityOf(pid);
          const noted = note(leader).catch(() => {});
          const isThere = (): boolean => leader.start === null || parts.identityOf(pid).start === leader.start;
          const program = follow({ child, pid, isThere }, request, async () => {
            const isEnded = await endProcesses({ mark, leader: pid }, parts.graceMs);
            running.delete(program);
            await noted; // It would come after the end otherwise, and stay.
            if (isEnded) await parts.notes.forget(mark);
            else parts.onLeft(mark);
          });
          running.add(program);
          await noted;
          return { ok: true, program };
        }
      }
    } catch (error) {
      code = codeOf(error);
    } finally {
      await held?.close(); // The program has its own.
    }
    await parts.notes.forget(mark).catch(() => {}); // A note without a process is forgotten at the next start.
    return { ok: false, code };
  };

  return {
    async start(request) {
      const started = launch(request);
      starting.add(started);
      try {
        return await started;
      } finally {
        starting.delete(started);
      }
    },

    running: () => running.size,

    async close() {
      closed = true;
      await Promise.all(starting);
      await Promise.all([...running].map((program) => program.close()));
    },
  };
}

/** Follows a program that was started; `endAll` ends its processes. */
function follow(
  { child, pid, isThere }: { child: Child; pid: number; isThere(): boolean },
  request: ProgramRequest,
  endAll: () => Promise<void>,
): Program {
  const words = keepOutput(0, LAST_WORDS_BYTES);
  child.stderr.on('data', (chunk: Buffer) => words.push(chunk));
  let over = false;
  let end = (_how: ProgramEnd): void => {};
  const ended = new Promise<ProgramEnd>((resolve) => {
    end = (how) => {
      over = true;
      resolve(how);
    };
  });
  const lines = createLineReader(request.maxLineBytes, (line) => {
    if (!over) request.onLine(line);
  });
  let paused: Promise<void> | null = null;
  child.stdout.on('data', (chunk: Buffer) => {
    if (!over && !lines.push(chunk)) end({ kind: 'line_too_long' });
    const room = request.room?.() ?? unread(child.stdin, MOST_UNREAD * request.maxLineBytes);
    if (!room || over) return;
    child.stdout.pause();
    paused = room.then(() => {
      paused = null;
      child.stdout.resume();
    });
  });
  // Its exit says more than the end of its output, and comes a moment later.
  child.stdout.on('close', () => setTimeout(() => end({ kind: 'no_output' }), INPUT_END_MS).unref());
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {}); // Told by the exit.
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve();
      // Its last lines may still be in the pipe; a child of its own may hold that for long.
      const tell = (): void => end(signal === null ? { kind: 'exit', code: code ?? 0 } : { kind: 'signal', signal });
      if (child.stdout.readableEnded || child.stdout.destroyed) tell();
      else {
        child.stdout.once('close', tell);
        const isRead = paused && Promise.race([paused, delay(READER_MS, undefined, { ref: false })]);
        void Promise.resolve(isRead).then(() => setTimeout(tell, INPUT_END_MS).unref());
      }
    });
  });

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    child.stdin.end();
    await Promise.race([exited, delay(INPUT_END_MS, undefined, { ref: false })]);
    await endAll();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  };
  const program: Program = {
    pid,
    isThere: () => !over && isThere(),
    ended,
    lastWords: () => words.text(),
    async send(line) {
      if (over || closing || !child.stdin.writable) return false;
      return new Promise((resolve) => child.stdin.write(`${line}\n`, (error) => resolve(!error)));
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
  // Whatever it left behind when it ended by itself has to go too.
  void ended.then(() => program.close());
  return program;
}

/** Null, or what is waited for while a program does not read what it is told: it is not read either, and heaps nothing up. */
function unread(stdin: Writable, most: number): Promise<void> | null {
  if (stdin.writableLength <= most || stdin.destroyed) return null;
  return new Promise((resolve) => {
    const go = (): void => {
      stdin.off('drain', go).off('close', go);
      resolve();
    };
    stdin.on('drain', go).on('close', go);
  });
}

const codeOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return typeof code === 'string' ? code : 'unknown';
};
