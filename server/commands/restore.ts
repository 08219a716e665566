/** `turnkeep restore`: makes a home of a backup, or only proves the backup. */
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Manifest } from '../../db/files/archive-manifest.ts';
import { counted, createProgress } from '../backup/progress.ts';
import { checkBackup, restore } from '../backup/restore.ts';
import { interrupted, troubleOf } from '../backup/trouble.ts';
import { resolveHome } from '../config.ts';
import { isAlive } from '../lease/process-identity.ts';
import { type Command, CommandError } from './command.ts';
import { interruptible } from './interruptible.ts';

const USAGE = `Usage: turnkeep restore FILE [options]

Makes a home of a file that turnkeep backup has written. Where a home or anything else is, nothing is changed.

  --home DIR    the home that is to be (TURNKEEP_HOME, else ~/.turnkeep)
  --check       only prove the file: every byte of it, and the database in it
  --json        say the result as JSON
  --help        print this

At the first start on the restored home, prompts that ran when the backup was made are interrupted with everything
kept, and prompts that waited run.

Exit codes: 0 it is restored (or sound, with --check), 1 it could not be, 2 the file is damaged, 130 interrupted.
Unless it is 0, nothing is left behind.
`;

export const command: Command = {
  usage: USAGE,
  async run(args, terminal, env) {
    const { file, options } = readOptions(args);
    const progress = createProgress(terminal.isPerson ? terminal.err : null);
    try {
      const home = resolveHome(options, env);
      const manifest = await interruptible(
        (signal) =>
          options.check
            ? checkBackup(file, path.join(tmpdir(), 'turnkeep-check'), { signal, progress })
            : restore({ file, home }, { signal, progress, isAlive }),
        interrupted,
      );
      progress.clear();
      const restored = options.check ? null : home;
      terminal.out(options.json ? asJson(file, restored, manifest) : asText(file, restored, manifest));
      return 0;
    } catch (error) {
      progress.clear();
      throw troubleOf(error, ({ kind, reason }) => {
        return `${file} is not restored: ${reason}. Use another ${kind === 'newer' ? 'version of Turnkeep' : 'backup'}.`;
      });
    }
  },
};

function readOptions(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { home: { type: 'string' }, check: { type: 'boolean' }, json: { type: 'boolean' } },
    });
    const [file, ...more] = positionals;
    if (file !== undefined && more.length === 0) return { file: path.resolve(file), options: values };
  } catch (error) {
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
  throw new CommandError(`name one file to restore.\n\n${USAGE}`);
}

function asText(file: string, home: string | null, { sessions, messages, created_at }: Manifest): string {
  const what = `${counted(sessions, 'conversation')} with ${counted(messages, 'message')}, as of ${created_at}`;
  if (home === null) return `${file} is sound: ${what}\n`;
  return `${what}: ${home}\nStart it with: turnkeep serve --home ${home}\n`;
}

function asJson(file: string, home: string | null, { files, ...manifest }: Manifest): string {
  return `${JSON.stringify({ file, home, files: files.length, ...manifest })}\n`;
}
