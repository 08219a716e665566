/**
 * Notes of the commands that run, one small file each in the home, so that the next start finds what a killed server
 * left. Not fsynced: a death of the whole machine ends the commands too.
 */
import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isRunId } from '../../server/core/ids.ts';
import type { ProcessIdentity } from '../../server/core/terms.ts';
import { namesIn, orNull } from './absent.ts';
import { makeFolder } from './atomic.ts';
import type { Paths } from './paths.ts';

export interface RunningCommand {
  /** 32 hexadecimal digits; its processes bear it in their environment, and hold its note open. */
  mark: string;
  /** The server that runs it; null when the note does not say. */
  server: ProcessIdentity | null;
  /** Its first process; null before that is known. */
  leader: ProcessIdentity | null;
}

export interface RunningCommands {
  /** Notes a command, or more about one. */
  note(command: RunningCommand): Promise<void>;
  /** Opens the note of a command, for its processes to hold: so they are found too. Whoever has it closes it. */
  hold(mark: string): Promise<FileHandle>;
  /** A free path for what is made for a command and has no name for long. */
  placeFor(mark: string): string;
  forget(mark: string): Promise<void>;
  all(): Promise<RunningCommand[]>;
}

export function createRunningCommands(paths: Pick<Paths, 'commands' | 'command'>): RunningCommands {
  return {
    async note(command) {
      await makeFolder(paths.commands);
      const file = paths.command(command.mark);
      // Another server that starts meanwhile must not find half of it.
      await writeFile(`${file}.tmp`, JSON.stringify(command), { mode: 0o600 });
      await rename(`${file}.tmp`, file);
    },

    hold: (mark) => open(paths.command(mark), 'r'),

    placeFor: (mark) => `${paths.command(mark)}.pipe`,

    async forget(mark) {
      // A server that was killed may have left it.
      await rm(`${paths.command(mark)}.pipe`, { force: true });
      await rm(paths.command(mark), { force: true });
    },

    async all() {
      const found: RunningCommand[] = [];
      for (const name of await namesIn(paths.commands)) {
        const mark = path.basename(name, '.json');
        if (name !== `${mark}.json` || !isRunId(mark)) continue;
        found.push(read(mark, (await orNull(readFile(paths.command(mark), 'utf8'))) ?? ''));
      }
      return found;
    },
  };
}

/** A note that was damaged still has its mark, and that is enough to find the processes. */
function read(mark: string, text: string): RunningCommand {
  try {
    const value: unknown = JSON.parse(text);
    const { server, leader } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
    return { mark, server: identity(server), leader: identity(leader) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { mark, server: null, leader: null };
  }
}

function identity(value: unknown): ProcessIdentity | null {
  const { pid, start } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null;
  return { pid, start: typeof start === 'string' ? start : null };
}
