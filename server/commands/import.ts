/** `turnkeep import`: conversations of Hermes, hermes-webui or another Turnkeep into this home (IM1 to IM8). */
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openStateDb, StateDbRefused } from '../../db/client.ts';
import { makeFolder } from '../../db/files/atomic.ts';
import { isUnreadable, realPlace, removeFolder } from '../../db/files/import-files.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createSidecarStore } from '../../db/files/sidecar-store.ts';
import { openStateDbToCheck } from '../../db/import-check.ts';
import { createImportStore } from '../../db/import-store.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { type Config, ConfigError, loadConfig, resolveHome } from '../config.ts';
import { importHome } from '../import/import-home.ts';
import { hasProblems, isNothing, reportText } from '../import/report.ts';
import { openSource } from '../import/source.ts';
import { isAlive, ownIdentity } from '../lease/process-identity.ts';
import { createCatalog } from '../runners/catalog.ts';
import { configuredProviders } from '../runners/configured.ts';
import { type Command, CommandError, type Terminal } from './command.ts';
import { interruptible } from './interruptible.ts';

const usage = `Usage: turnkeep import <home or file> [options]

Copies conversations into this home, with their attachments and journals, also while a server runs. What they are
copied from is only read. Run it again, and only what is new comes; end it at any time, and the next run goes on.

What can be imported: the home of Hermes (~/.hermes) or of hermes-webui, or of another Turnkeep; a state.db alone; a
folder of sidecars; one sidecar; one conversation that was exported as JSON.

  --home DIR   the home that it is copied into (TURNKEEP_HOME, else ~/.turnkeep)
  --check      only say what would be done; nothing is changed
  --again      also bring back what was imported before and deleted here since
  --json       one JSON document instead of lines
  --help       print this

A conversation that went on both there and here becomes two: what is here stays as it is.

Exit codes: 0 all is here or would be, 1 something could not be read, is in use, or went on in both places,
2 nothing can be imported, 130 interrupted.
`;

const EXIT = { problems: 1, cannot: 2, interrupted: 130 } as const;
const PATIENCE_MS = 20_000;

export interface ImportCommandParts {
  /** Epoch seconds. */
  now(): number;
  /** Milliseconds that a monotonic clock shows. */
  monotonic(): number;
  random(): number;
  sleep(ms: number): Promise<void>;
  /** Hexadecimal digits, new each time. @param bytes half as many */
  newId(bytes: number): string;
}

export const createImportCommand = (parts: ImportCommandParts): Command => ({
  usage,
  run: (args, terminal, env) => run(args, terminal, env, parts),
});

interface Flags {
  place: string;
  home: string;
  check: boolean;
  again: boolean;
  json: boolean;
}

async function run(
  args: readonly string[],
  terminal: Terminal,
  env: NodeJS.ProcessEnv,
  parts: ImportCommandParts,
): Promise<number> {
  const flags = readFlags(args, env);
  const draw = progressOf(terminal);
  try {
    // The one that is being written when a signal comes is finished.
    const report = await interruptible((signal) => imported(flags, env, parts, signal, draw.show));
    draw.clear();
    if (isNothing(report)) throw new CommandError(`${flags.place} holds no conversations.`, EXIT.cannot);
    terminal.out(flags.json ? `${JSON.stringify(report, null, 2)}\n` : reportText(report));
    if (report.interrupted) return EXIT.interrupted;
    return hasProblems(report) ? EXIT.problems : 0;
  } catch (error) {
    throw troubleOf(error);
  } finally {
    draw.clear();
  }
}

async function imported(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  parts: ImportCommandParts,
  signal: AbortSignal,
  progress: (done: number, of: number) => void,
) {
  const { home, check } = flags;
  const paths = createPaths(home);
  const { now, monotonic, random, sleep } = parts;
  const modelHere = modelsOf(home, env, now);
  // Nothing of a check is written into this home.
  const copies = check ? path.join(tmpdir(), `turnkeep-import-${parts.newId(6)}`) : path.join(home, 'import-copy');
  const source = await openSource(flags.place, { copies, sleep });
  if (typeof source === 'string') throw new CommandError(source, EXIT.cannot);
  try {
    const ours = await realOr(home);
    if (ours !== null && (source.home === ours || source.home === createPaths(ours).sessions)) {
      throw new CommandError(`${flags.place} is this home itself: there is nothing to be imported.`, EXIT.cannot);
    }
    if (!check) await makeFolder(home);
    const state = check
      ? await openStateDbToCheck(paths.stateDb)
      : await openStateDb({ file: paths.stateDb, sleep, random, monotonic, patienceMs: PATIENCE_MS, now });
    try {
      const owner = { ...ownIdentity(), liveSessionId: parts.newId(4), epoch: 0 };
      const leaseId = parts.newId(16);
      return await importHome(
        source,
        {
          store: createImportStore(state, isAlive),
          sidecars: createSidecarStore(paths),
          paths,
          modelHere,
          lease: () => ({ owner, surface: 'import', leaseId, cap: null, now: now() }),
          now,
          newIdSuffix: () => parts.newId(3),
          signal,
          progress,
        },
        { home, check, again: flags.again },
      );
    } finally {
      state.close();
    }
  } finally {
    await source.close();
    await removeFolder(copies);
  }
}

function readFlags(args: readonly string[], env: NodeJS.ProcessEnv): Flags {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        home: { type: 'string' },
        check: { type: 'boolean' },
        again: { type: 'boolean' },
        json: { type: 'boolean' },
      },
    });
    const [place, ...more] = positionals;
    if (place === undefined || place === '')
      throw new CommandError(`name what is to be imported.\n\n${usage}`, EXIT.cannot);
    if (more.length) throw new CommandError(`import one home or file at a time.\n\n${usage}`, EXIT.cannot);
    const { check = false, again = false, json = false, home } = values;
    const resolved = resolveHome(home === undefined ? {} : { home }, env);
    return { place: path.resolve(place), home: resolved, check, again, json };
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (error instanceof ConfigError) throw new CommandError(error.message, EXIT.cannot);
    throw new CommandError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`, EXIT.cannot);
  }
}

/**
 * What models of the source are called here. A model that no configured provider has is none: the session then runs with
 * the default one, and its sidecar keeps the name.
 */
function modelsOf(home: string, env: NodeJS.ProcessEnv, now: () => number) {
  const providers = configuredProviders(configOf(home, env));
  const catalog = createCatalog({ providers, builtin: true, now, discovery: [] });
  return (name: string, provider: string | null): string | null => {
    const named = providers.filter(({ defaultModel, models }) => defaultModel === name || models?.includes(name));
    const ids = [provider === null ? name : `${provider}/${name}`, name, ...named.map((one) => `${one.name}/${name}`)];
    return ids.find((id) => catalog.resolve(id).kind !== 'unknown') ?? null;
  };
}

function configOf(home: string, env: NodeJS.ProcessEnv): Config {
  try {
    return loadConfig({ home }, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // A service may give its token where no other command sees it.
    return loadConfig({ home }, { TURNKEEP_TOKEN: 'of the service', ...env });
  }
}

/** What is there under a name, whatever links lead there; null for nothing. */
async function realOr(place: string): Promise<string | null> {
  try {
    return await realPlace(place);
  } catch (error) {
    if (isUnreadable(error)) return null;
    throw error;
  }
}

/** A failure that a person can do something about, as one sentence. What was imported until then stays. */
function troubleOf(error: unknown): unknown {
  if (error instanceof StateDbRefused || error instanceof ConfigError) {
    return new CommandError(error.message, EXIT.cannot);
  }
  switch (storageTroubleKind(error)) {
    case 'busy':
      return new CommandError('a database stays locked by another program. Run it again: it goes on.', EXIT.cannot);
    case 'disk_full':
      return new CommandError('the disk is full: make room, then run it again. It goes on.', EXIT.cannot);
    case 'unavailable':
      return new CommandError(`the disk or a database cannot be used: ${(error as Error).message}`, EXIT.cannot);
    default:
      return isUnreadable(error) ? new CommandError(error.message, EXIT.cannot) : error;
  }
}

const WIDTH = 24;

/** A line that is drawn over, for a person only. */
function progressOf({ err, isPerson }: Terminal): { show(done: number, of: number): void; clear(): void } {
  let shown = '';
  return {
    show(done, of) {
      if (!isPerson) return;
      const share = of === 0 ? 1 : done / of;
      const bar = '#'.repeat(Math.floor(share * WIDTH)).padEnd(WIDTH, '.');
      const text = `[${bar}] ${Math.floor(share * 100)}% of ${of} conversations`;
      if (text === shown) return;
      shown = text;
      err(`\r\x1b[K${text}`);
    },
    clear() {
      if (shown !== '') err('\r\x1b[K');
      shown = '';
    },
  };
}
