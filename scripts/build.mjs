// Builds the server: TypeScript in server/, routes/ and db/ to JavaScript in dist/. It owns dist/ (what has no source
// any more is removed) and the stamp by which an unchanged tree is not built again. Only `node:*` is imported: the
// set-up loads this file before anything is installed.
//
//   node scripts/build.mjs   builds if something changed

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './setup/child.mjs';
import { withLock } from './setup/lock.mjs';
import { say } from './setup/say.mjs';

const SOURCE_FOLDERS = ['server', 'routes', 'db'];
const COMMAND = join('server', 'main.js');

const stampFile = (root) => join(root, 'node_modules', '.turnkeep-build');

/** All files below a folder, as paths relative to `root`; none when the folder does not exist. */
function filesBelow(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

function sourcesOf(root) {
  return SOURCE_FOLDERS.flatMap((folder) => filesBelow(root, folder)).filter((path) => /(?<!\.d)\.ts$/.test(path));
}

/** The files in dist/ that a build of these sources leaves, relative to dist/. */
function outputsOf(sources) {
  return sources.flatMap((path) => {
    const output = path.replace(/\.ts$/, '.js');
    return [output, `${output}.map`];
  });
}

/** What a current build is stamped with: names, sizes and times of the sources, and all that steers the compiler. */
function stampOf(root, sources) {
  const hash = createHash('sha256');
  for (const path of sources) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  for (const path of ['tsconfig.json', 'package.json', 'scripts/build.mjs', 'node_modules/typescript/package.json']) {
    if (existsSync(join(root, path))) hash.update(readFileSync(join(root, path)));
  }
  return `${hash.digest('hex')}\n`;
}

/** Whether dist/ holds what the sources say. Cheap: it looks at sizes and times, not into the files. */
export function isBuilt(root) {
  const sources = sourcesOf(root);
  if (!existsSync(stampFile(root)) || readFileSync(stampFile(root), 'utf8') !== stampOf(root, sources)) return false;
  return outputsOf(sources).every((path) => existsSync(join(root, 'dist', path)));
}

/** Removes from dist/ what this build did not write, and the folders that are empty then. */
function removeStale(root, expected) {
  const dist = join(root, 'dist');
  for (const path of filesBelow(dist, '.')) if (!expected.has(path)) rmSync(join(dist, path));
  const folders = readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  // Longest first, so that a folder comes after all that lie in it.
  for (const folder of folders.sort((a, b) => b.length - a.length)) {
    if (readdirSync(folder).length === 0) rmdirSync(folder);
  }
}

/**
 * Compiles the server into dist/. A source with an error leaves dist/ as it was. The caller holds the set-up lock.
 *
 * @param root the clone
 * @throws an error with a sentence for the person when there is nothing to compile with, or the compiler finds errors
 */
export async function build(root) {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  if (!existsSync(compiler)) {
    throw new Error('the TypeScript compiler is not installed. Run `node scripts/setup.mjs start`, which installs it.');
  }
  // Taken before compiling: a source that changes meanwhile makes the next start build again.
  const sources = sourcesOf(root);
  const stamp = stampOf(root, sources);
  const args = [compiler, '-p', join(root, 'tsconfig.json'), '--noEmitOnError', 'true'];
  const code = await run(process.execPath, args, { cwd: root });
  if (code !== 0) throw new Error(`the build failed (tsc, exit code ${code}): the errors above are in the sources.`);
  removeStale(root, new Set(outputsOf(sources)));
  // npm links this file as the command `turnkeep`.
  if (existsSync(join(root, 'dist', COMMAND))) chmodSync(join(root, 'dist', COMMAND), 0o755);
  writeFileSync(stampFile(root), stamp);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
  const ifNeeded = async () => (isBuilt(root) ? undefined : build(root));
  withLock(root, ifNeeded).catch((error) => {
    say(error.message);
    process.exitCode = 1;
  });
}
