// @ts-check
/** The server's parts as the server itself is built, for benches that measure them in their own process. */
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { joinSources } from '../../scripts/build.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** As deep below the clone as the built server, which finds the migrations from where it stands. */
const FOLDER = path.join('dist-test', 'bench');

/** @returns {Promise<any>} all parts that `server-parts.mjs` names */
export async function compiledParts() {
  await joinSources(ROOT, { 'server-parts': 'bench/lib/server-parts.mjs' }, FOLDER, { sourcemap: false });
  return import(pathToFileURL(path.join(ROOT, FOLDER, 'server-parts.js')).href);
}
