/**
 * Compiles what tests start as processes of their own, once before all tests: joined into one module each, as the server
 * itself is built, a process starts in a fraction of the time.
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = path.join(import.meta.dirname, '../..');
/** As deep below the clone as the built server, which finds the migrations from where it stands. */
const FOLDER = path.join('dist-test', 'children');
const PROCESSES = ['crash-server', 'open-state-db', 'save-loop'];
/** Parts of the server that tests want as they are when compiled, for a thread loads nothing else. */
const PARTS = ['sidecar-store', 'sidecar-thread'];

/** The compiled entry of a process, `test/support/<name>.ts`, or of one of the parts. */
export const childEntry = (name: string): string => path.join(ROOT, FOLDER, `${name}.js`);

/** The compiled entry of the server itself. */
export const mainEntry = path.join(ROOT, FOLDER, 'main.js');

/** Called by vitest before all tests. Types are the business of `npm run check`. */
export async function setup(): Promise<void> {
  const { joinSources } = await import(/* @vite-ignore */ pathToFileURL(path.join(ROOT, 'scripts/build.mjs')).href);
  const entries = Object.fromEntries([
    ['main', 'server/main.ts'],
    ...PROCESSES.map((name) => [name, `test/support/${name}.ts`]),
    ...PARTS.map((name) => [name, `db/files/${name}.ts`]),
  ]);
  await joinSources(ROOT, entries, FOLDER, { sourcemap: false });
}
