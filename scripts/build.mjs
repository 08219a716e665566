// Builds the server: checks the TypeScript of server/, routes/ and db/ and joins it, with the libraries that it uses,
// into dist/server/main.js. One file instead of nine hundred halves the time of a start. It owns dist/ (what it did not
// write is removed) and the stamp by which an unchanged tree is not built again. Only `node:*` is imported: the set-up
// loads this file before anything is installed.
//
//   node scripts/build.mjs   builds if something changed

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { run } from './setup/child.mjs';
import { licencesOf } from './setup/licences.mjs';
import { withLock } from './setup/lock.mjs';
import { say } from './setup/say.mjs';

const SOURCE_FOLDERS = ['server', 'routes', 'db'];
const COMMAND = join('server', 'main.js');
/** Beside it, for the server starts it as a thread: what reads long transcripts. */
const WORKER = join('server', 'sidecar-worker.js');
const LICENCES = 'LICENCES.txt';

/** What a build leaves in dist/. */
const OUTPUTS = [COMMAND, `${COMMAND}.map`, WORKER, `${WORKER}.map`, LICENCES];

/** What stays in node_modules: a binary, files that are served from there, and what is loaded when it is first needed. */
const NOT_JOINED = ['better-sqlite3', '@fastify/swagger-ui', '@ai-sdk/*'];

/** Libraries in the old module format ask for Node's own modules by `require`, which a module does not have. */
const REQUIRE =
  "import { createRequire as createRequireOf } from 'node:module'; const require = createRequireOf(import.meta.url);";

/** All that steers what a build makes, beside the sources. */
const STEERING = [
  'tsconfig.json',
  'package.json',
  'package-lock.json',
  'scripts/build.mjs',
  'scripts/setup/licences.mjs',
  'node_modules/typescript/package.json',
  'node_modules/esbuild/package.json',
];

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

/** What a current build is stamped with: names, sizes and times of the sources, and all that steers the tools. */
function stampOf(root) {
  const hash = createHash('sha256');
  for (const path of sourcesOf(root)) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  for (const path of STEERING) if (existsSync(join(root, path))) hash.update(readFileSync(join(root, path)));
  return `${hash.digest('hex')}\n`;
}

/** Whether dist/ holds what the sources say. Cheap: it looks at sizes and times, not into the files. */
export function isBuilt(root) {
  if (!existsSync(stampFile(root)) || readFileSync(stampFile(root), 'utf8') !== stampOf(root)) return false;
  return OUTPUTS.every((path) => existsSync(join(root, 'dist', path)));
}

/** Removes from dist/ what this build did not write, and the folders that are empty then. */
function removeStale(root) {
  const dist = join(root, 'dist');
  for (const path of filesBelow(dist, '.')) if (!OUTPUTS.includes(path)) rmSync(join(dist, path));
  const folders = readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  // Longest first, so that a folder comes after all that lie in it.
  for (const folder of folders.sort((a, b) => b.length - a.length)) {
    if (readdirSync(folder).length === 0) rmdirSync(folder);
  }
}

/**
 * Joins sources and their libraries into one module for each entry. The thread that reads long transcripts is always one
 * of them: the server looks for it beside itself.
 *
 * @param root the clone
 * @param entries sources by the names of what is made of them
 * @param outdir where that goes, relative to the clone
 * @param more other options of the bundler
 */
export async function joinSources(root, entries, outdir, more = {}) {
  const { buildSync } = await import(pathToFileURL(join(root, 'node_modules', 'esbuild', 'lib', 'main.js')).href);
  return buildSync({
    absWorkingDir: root,
    entryPoints: { ...entries, 'sidecar-worker': 'db/files/sidecar-worker.ts' },
    outdir,
    bundle: true,
    external: NOT_JOINED,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: REQUIRE },
    // Nothing is shortened: a stack trace can be read without the map, too.
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    ...more,
  });
}

/**
 * Builds the server into dist/. A source with an error leaves dist/ as it was. The caller holds the set-up lock.
 *
 * @param root the clone
 * @throws an error with a sentence for the person when there is nothing to build with, or the compiler finds errors
 */
export async function build(root) {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  if (!existsSync(compiler)) {
    throw new Error('the TypeScript compiler is not installed. Run `node scripts/setup.mjs start`, which installs it.');
  }
  // Taken before compiling: a source that changes meanwhile makes the next start build again.
  const stamp = stampOf(root);
  const code = await run(process.execPath, [compiler, '-p', join(root, 'tsconfig.json'), '--noEmit'], { cwd: root });
  if (code !== 0) throw new Error(`the build failed (tsc, exit code ${code}): the errors above are in the sources.`);
  const outdir = join('dist', dirname(COMMAND));
  // Nothing is written before all of it could be made.
  const { outputFiles, metafile } = await joinSources(root, { main: 'server/main.ts' }, outdir, {
    metafile: true,
    write: false,
  });
  mkdirSync(join(root, 'dist', dirname(COMMAND)), { recursive: true });
  for (const { path, contents } of outputFiles) writeFileSync(path, contents);
  writeFileSync(join(root, 'dist', LICENCES), licencesOf(root, Object.keys(metafile.inputs)));
  removeStale(root);
  // npm links this file as the command `turnkeep`.
  chmodSync(join(root, 'dist', COMMAND), 0o755);
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
