/** `turnkeep backup`: writes everything of a home into one file, beside a running server or without one. */
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type BackupResult, backUp } from '../backup/backup.ts';
import { counted, createProgress, inWords } from '../backup/progress.ts';
import { interrupted, NOTHING_LEFT, troubleOf } from '../backup/trouble.ts';
import { resolveHome } from '../config.ts';
import { readVersion } from '../installation.ts';
import { type Command, CommandError } from './command.ts';
import { interruptible } from './interruptible.ts';

const USAGE = `Usage: turnkeep backup [options]

Writes everything of a home into one file, while its server runs or not, and proves it by reading it again.

  --home DIR           the home (TURNKEEP_HOME, else ~/.turnkeep)
  --to FILE_OR_DIR     where to (a new file in <home>/backups)
  --without-secrets    leave .env out, which may hold keys and the token
  --json               say the result as JSON
  --help               print this

The file is a compressed tar archive that only you can read. Earlier backups and the copies that a repair kept are
not in it. Prompts that run while it is made are in it as interrupted at that moment, and prompts that wait as
waiting. Bring it back with turnkeep restore FILE.

Exit codes: 0 it is written and proven, 1 it could not be, 2 it could not be read again, 130 interrupted. Unless it
is 0, nothing is left behind.
`;

export interface BackupCommandParts {
  /** Epoch seconds. */
  now(): number;
}

export const createBackupCommand = ({ now }: BackupCommandParts): Command => ({
  usage: USAGE,
  async run(args, terminal, env) {
    const options = readOptions(args);
    const progress = createProgress(terminal.isPerson ? terminal.err : null);
    const warn = (sentence: string): void => {
      progress.clear();
      terminal.err(`turnkeep: ${sentence}\n`);
    };
    // A folder is told by its end, which a resolved path no longer has.
    const to = options.to === undefined ? null : path.resolve(options.to) + (/[/\\]$/.test(options.to) ? path.sep : '');
    try {
      const home = resolveHome(options, env);
      const request = { home, to, secrets: !options['without-secrets'], version: readVersion() };
      const result = await interruptible((signal) => backUp(request, { now, signal, progress, warn }), interrupted);
      progress.clear();
      for (const name of result.manifest.damaged) warn(`${name} was damaged already and is kept as it is.`);
      terminal.out(options.json ? asJson(result) : asText(result));
      return 0;
    } catch (error) {
      progress.clear();
      throw troubleOf(error, ({ reason }) => `what was written could not be read again: ${reason}. ${NOTHING_LEFT}`);
    }
  },
});

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        home: { type: 'string' },
        to: { type: 'string' },
        'without-secrets': { type: 'boolean' },
        json: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

function asText({ file, bytes, manifest }: BackupResult): string {
  const { sessions, messages, secrets } = manifest;
  const what = `${counted(sessions, 'conversation')} with ${counted(messages, 'message')}`;
  const held = secrets ? 'It holds the secrets of .env: keep it where only you can read it.\n' : '';
  return `${what}: ${file} (${inWords(bytes)})\n${held}`;
}

function asJson({ file, bytes, manifest: { files, ...manifest } }: BackupResult): string {
  return `${JSON.stringify({ file, bytes, files: files.length, ...manifest })}\n`;
}
