// Installs what package-lock.json says. It owns the stamp in node_modules that tells "installed from this lock file,
// for this Node": the hash of the lock file and the ABI that native modules are built for. An install that npm made
// without us and that is whole is taken as it is.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { run } from './child.mjs';
import { say } from './say.mjs';

const stampFile = (root) => join(root, 'node_modules', '.turnkeep-install');

/** What a current install is stamped with. Throws when there is no lock file. */
function stampOf(root) {
  let lock;
  try {
    lock = readFileSync(join(root, 'package-lock.json'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(
      'package-lock.json is missing, and without it nobody knows which versions to install. ' +
        'Get it back with `git checkout package-lock.json`.',
    );
  }
  const hash = createHash('sha256').update(lock).digest('hex');
  return `${hash} abi-${process.versions.modules} ${process.platform}-${process.arch}\n`;
}

/** Whether node_modules is what the lock file says, for this Node. Cheap: one hash of one file. */
export function isInstalled(root) {
  const wanted = stampOf(root);
  try {
    return readFileSync(stampFile(root), 'utf8') === wanted;
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
    throw error;
  }
}

/** Whether npm's own record in node_modules holds every locked package in its version, and the folders are there. */
function isWhole(root) {
  let locked;
  let found;
  try {
    locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
    found = JSON.parse(readFileSync(join(root, 'node_modules', '.package-lock.json'), 'utf8')).packages;
  } catch {
    return false;
  }
  const same = (path) => found[path]?.version === locked[path]?.version;
  return (
    Object.keys(found).every(same) &&
    Object.entries(locked).every(
      ([path, entry]) =>
        path === '' || (entry.optional && !found[path]) || (same(path) && existsSync(join(root, path))),
    )
  );
}

/** Opens a database in memory with the installed driver, in a process of its own. Returns what went wrong, if anything. */
function tryDriver(root) {
  const script = "new (require('better-sqlite3'))(':memory:').close()";
  const tried = spawnSync(process.execPath, ['-e', script], { cwd: root, encoding: 'utf8' });
  if (tried.status === 0) return undefined;
  return tried.stderr.match(/^\w*Error: .*$/m)?.[0] ?? (tried.stderr.trim() || `it ended by ${tried.signal}`);
}

/** The folder whose include/node are the headers of exactly this Node, so that compiling downloads none. */
function headersFolder() {
  for (const binary of [process.execPath, realpathSync(process.execPath)]) {
    const folder = dirname(dirname(binary));
    try {
      const header = readFileSync(join(folder, 'include', 'node', 'node_version.h'), 'utf8');
      const part = (name) => header.match(new RegExp(`#define NODE_${name}_VERSION (\\d+)`))?.[1];
      if (`${part('MAJOR')}.${part('MINOR')}.${part('PATCH')}` === process.versions.node) return folder;
    } catch {
      // No headers beside this binary; npm fetches them if it has to compile.
    }
  }
  return undefined;
}

/** Whether npm could keep its cache in this folder: the only honest test is to write there, as npm would. */
function isWritable(folder) {
  const probe = join(folder, `.turnkeep-${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(probe, '');
    rmSync(probe);
    return true;
  } catch {
    return false;
  }
}

/** How to call npm: the one that runs us, else the one on the PATH. */
function npmCommand() {
  const runningUs = process.env.npm_execpath;
  const isNpm = runningUs && basename(runningUs) === 'npm-cli.js' && existsSync(runningUs);
  return isNpm ? { command: process.execPath, first: [runningUs] } : { command: 'npm', first: [] };
}

/**
 * Makes node_modules what the lock file says, and stamps it. The caller holds the set-up lock.
 *
 * @param root the clone
 * @throws an error with a sentence for the person when npm fails or the database driver does not load
 */
export async function install(root) {
  const stamp = stampOf(root);
  if (!isWhole(root) || tryDriver(root) !== undefined) {
    say(
      existsSync(join(root, 'node_modules'))
        ? 'the installed packages are not those of package-lock.json and this Node; installing again (a minute or two)'
        : 'first start: installing packages and building SQLite; this takes a minute or two',
    );
    const began = performance.now();
    await runNpm(root);
    const broken = tryDriver(root);
    if (broken !== undefined) throw new Error(driverSentence(broken));
    say(`installed in ${Math.round((performance.now() - began) / 1000)} s`);
  }
  writeFileSync(stampFile(root), stamp);
}

/** Runs `npm ci` so that neither the person's environment nor their npm settings can leave something out. */
async function runNpm(root) {
  const env = { ...process.env, npm_config_update_notifier: 'false' };
  const nodedir = headersFolder();
  if (nodedir !== undefined) env.npm_config_nodedir ??= nodedir;
  let scratch;
  if (!isWritable(env.npm_config_cache ?? env.NPM_CONFIG_CACHE ?? join(homedir(), '.npm'))) {
    scratch = mkdtempSync(join(tmpdir(), 'turnkeep-npm-'));
    delete env.NPM_CONFIG_CACHE;
    env.npm_config_cache = join(scratch, 'cache');
    env.npm_config_devdir ??= join(scratch, 'node-gyp');
  }
  const args = ['ci', '--include=dev', '--include=optional', '--include=peer', '--no-audit', '--no-fund'];
  // Two of our packages name a newer Node than they need: a warning, and with engine-strict a refusal.
  args.push('--engine-strict=false', '--loglevel=error');
  const { command, first } = npmCommand();
  try {
    const code = await run(command, [...first, ...args], { cwd: root, env });
    if (code === 127) throw new Error('npm was not found. It comes with Node: install it, then try again.');
    if (code >= 128) throw new Error('`npm ci` was stopped by a signal. Run the same command again: it begins anew.');
    if (code !== 0) {
      throw new Error(
        `\`npm ci\` failed with exit code ${code}; what it said stands above. It needs the npm registry, space on the ` +
          'disk and, where no ready-made SQLite fits this Node, python3, make and a C++ compiler. ' +
          'Nothing half-installed is used: mend the cause and run the same command again.',
      );
    }
  } finally {
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  }
}

function driverSentence(broken) {
  const ignored = /^(true|1)$/.test(process.env.npm_config_ignore_scripts ?? '');
  const remedy = ignored
    ? 'npm is told to ignore install scripts (ignore-scripts), so SQLite was not built. Build it with ' +
      '`npm rebuild better-sqlite3 --ignore-scripts=false`, then run the same command again.'
    : 'Try `npm rebuild better-sqlite3 --ignore-scripts=false --foreground-scripts` and see what it says; ' +
      'it needs python3, make and a C++ compiler.';
  return `the packages are installed, but the SQLite driver does not load (${broken}). ${remedy}`;
}
