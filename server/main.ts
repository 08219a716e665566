#!/usr/bin/env node
/** The process: arguments, configuration, listening, signals → drain → close. */
import { parseArgs } from 'node:util';
import type { Command } from './commands/command.ts';
import type { Config } from './config.ts';

const clockAndChance = {
  now: () => Date.now() / 1000,
  monotonic: () => performance.now(),
  random: Math.random,
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
};

/** Commands beside `serve`, loaded when they are called. */
const COMMANDS: Readonly<Record<string, { summary: string; load(): Promise<{ command: Command }> }>> = {
  backup: {
    summary: 'write everything into one file, while a server runs or not',
    load: async () => {
      const { createBackupCommand } = await import('./commands/backup.ts');
      return { command: createBackupCommand({ now: () => Date.now() / 1000 }) };
    },
  },
  restore: { summary: 'make a home of such a file', load: () => import('./commands/restore.ts') },
  import: {
    summary: 'bring conversations of Hermes, hermes-webui or another Turnkeep here',
    load: async () => {
      const { createImportCommand } = await import('./commands/import.ts');
      const { randomBytes } = await import('node:crypto');
      const command = createImportCommand({
        ...clockAndChance,
        newId: (bytes) => randomBytes(bytes).toString('hex'),
      });
      return { command };
    },
  },
  password: {
    summary: 'set the password that the page asks for',
    load: async () => {
      const [{ createPasswordCommand }, { randomBytes }] = await Promise.all([
        import('./commands/password.ts'),
        import('node:crypto'),
      ]);
      const parts = { ...clockAndChance, newSecret: randomBytes, input: process.stdin };
      return { command: createPasswordCommand(parts) };
    },
  },
  token: {
    summary: 'make, list and revoke tokens for programs',
    load: async () => {
      const [{ createTokenCommand }, { randomBytes }] = await Promise.all([
        import('./commands/token.ts'),
        import('node:crypto'),
      ]);
      return { command: createTokenCommand({ ...clockAndChance, newSecret: randomBytes }) };
    },
  },
  doctor: {
    summary: 'examine the home, and mend it with --repair',
    load: async () => {
      const { createDoctorCommand } = await import('./commands/doctor.ts');
      return { command: createDoctorCommand({ now: () => Date.now() / 1000 }) };
    },
  },
};

const USAGE = `Usage: turnkeep serve [options]

  --home DIR         where everything is kept (TURNKEEP_HOME, else ~/.turnkeep)
  --host ADDRESS     where to listen (127.0.0.1)
  --port N           0 lets the system choose (8787)
  --base-path /x     serve under a sub-path
  --version          print the version
  --help             print this

The first line on stdout is TURNKEEP_READY port=<n>; logs are JSON lines on stderr.
${commandList()}`;

function commandList(): string {
  const names = Object.keys(COMMANDS);
  if (names.length === 0) return '';
  const width = Math.max(...names.map((name) => name.length)) + 2;
  const lines = names.map((name) => `  ${name.padEnd(width)}${COMMANDS[name]!.summary}\n`);
  return `\nOther commands, each with --help:\n\n${lines.join('')}`;
}

/** Ends with a sentence for a person on stderr. */
function fail(message: string): never {
  process.stderr.write(`turnkeep: ${message}\n`);
  process.exit(1);
}

/** better-sqlite3 13 needs Node-API 10 and would end the process without a word on an older Node. */
async function checkRuntime(): Promise<void> {
  const { createRequire } = await import('node:module');
  const { version } = createRequire(import.meta.url)('better-sqlite3/package.json') as { version: string };
  if (Number(version.split('.')[0]) < 13 || Number(process.versions.napi) >= 10) return;
  fail(`this installation was made under another Node.js. Install it again under ${process.version}.`);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        home: { type: 'string' },
        host: { type: 'string' },
        port: { type: 'string' },
        'base-path': { type: 'string' },
        version: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    return fail(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

/** Runs a command other than `serve`. */
async function runCommand(load: () => Promise<{ command: Command }>, args: readonly string[]): Promise<void> {
  const [{ command }, { CommandError }] = await Promise.all([load(), import('./commands/command.ts')]);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(command.usage);
    return;
  }
  await checkRuntime();
  const terminal = {
    out: (text: string) => void process.stdout.write(text),
    err: (text: string) => void process.stderr.write(text),
    isPerson: process.stderr.isTTY === true,
  };
  try {
    process.exitCode = await command.run(args, terminal, process.env);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`turnkeep: ${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}

async function main(): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  const known = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (known) return runCommand(known.load, args);
  const { values, positionals } = readArguments();
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  if (values.version) {
    const { readVersion } = await import('./installation.ts');
    process.stdout.write(`${readVersion()}\n`);
    return;
  }
  const [command = 'serve', ...rest] = positionals;
  if (command !== 'serve' || rest.length) fail(`there is no command "${positionals.join(' ')}".\n\n${USAGE}`);
  await checkRuntime();
  await serve(values);
}

interface Flags {
  home?: string;
  host?: string;
  port?: string;
  'base-path'?: string;
}

async function serve(flags: Flags): Promise<void> {
  const [{ createApp }, { isLoopback, loadConfig }, { createSignalHandler }, { startFailure }, { pino }] =
    await Promise.all([
      import('./app.ts'),
      import('./config.ts'),
      import('./signals.ts'),
      import('./start-failure.ts'),
      import('pino'),
    ]);
  let config: Config | null = null;
  try {
    const { 'base-path': basePath, ...same } = flags;
    config = loadConfig({ ...same, ...(basePath === undefined ? {} : { basePath }) }, process.env);
    const log = pino(
      { level: config.logLevel, redact: ['req.headers.authorization', 'req.headers.cookie'] },
      pino.destination({ fd: 2, sync: true }),
    );
    for (const key of config.unknownKeys) log.warn({ key }, 'config.yaml has a key that Turnkeep does not use');
    const app = await createApp(config, log);
    const stop = createSignalHandler({
      close: () => app.close(),
      exit: (code) => process.exit(code),
      monotonic: () => performance.now(),
      log,
    });
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    const port = await app.listen();
    process.stdout.write(`TURNKEEP_READY port=${port}\n`);
    log.info({ host: config.server.host, port, home: config.home }, 'listening');
    // For a person at a terminal; a program reads the two lines above.
    if (process.stderr.isTTY) {
      const address = `http://${isLoopback(config.server.host) ? '127.0.0.1' : config.server.host}:${port}${config.server.base_path}/`;
      process.stderr.write(
        `\n  Turnkeep is ready: ${address}\n  Everything is kept in ${config.home}. Ctrl-C stops.\n\n`,
      );
    }
  } catch (error) {
    const sentence = startFailure(error, config);
    if (sentence !== null) fail(sentence);
    throw error;
  }
}

await main();
