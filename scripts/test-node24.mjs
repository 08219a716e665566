// Runs the suite under Node 24 beside the Node that is installed: `npm run test:node24`. One native binding cannot serve
// both, so the tree is copied to a temporary folder and gets its packages there, without the lock file: npm then picks
// the driver that fits that Node. Further arguments go to vitest.

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const scratch = mkdtempSync(join(tmpdir(), 'turnkeep-node24-'));
const tree = join(scratch, 'tree');
const nodeHome = join(scratch, 'node');
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/** Copies what a clone would have, with the changes that are not committed. */
function copyTree() {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' });
  for (const path of listed.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    copyFileSync(join(root, path), join(tree, path));
  }
}

/** Runs one step with its output shown; ends everything when it fails. */
function step(command, args, cwd, env = process.env) {
  const { status, error } = spawnSync(command, args, { cwd, env, stdio: 'inherit' });
  if (status !== 0)
    throw new Error(`\`${command} ${args.join(' ')}\` failed (${error?.message ?? `exit code ${status}`})`);
}

try {
  copyTree();
  mkdirSync(nodeHome);
  step('npm', ['install', '--prefix', nodeHome, '--ignore-scripts=false', ...QUIET, 'node@24'], nodeHome);
  const bin = join(nodeHome, 'node_modules', 'node', 'bin');
  // An npm of this run's Node, and settings of the outer npm that name folders, must not leak into the inner one.
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
  delete env.npm_config_nodedir;
  delete env.npm_config_local_prefix;
  step(join(bin, 'node'), ['--version'], tree, env);
  step('npm', ['install', '--no-package-lock', '--include=dev', ...QUIET], tree, env);
  step(join(bin, 'node'), ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)], tree, env);
} catch (error) {
  process.stderr.write(`turnkeep: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
