/**
 * Compiles what tests start as processes of their own, once before all tests: a compiled process starts in a fraction
 * of the time that one takes which compiles itself.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '../..');

/** The compiled entry of a process: `test/support/<name>.ts`. */
export const childEntry = (name: string): string => path.join(ROOT, 'dist-test/test/support', `${name}.js`);

/** The compiled entry of the server itself. */
export const mainEntry = path.join(ROOT, 'dist-test/server/main.js');

/** Called by vitest before all tests. */
export function setup(): void {
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  const run = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.children.json'], { cwd: ROOT, encoding: 'utf8' });
  if (run.error) throw run.error;
  // A type error is the business of `npm run check`; what could be compiled is there.
  if (run.status !== 0 && !run.stdout.includes('error TS')) throw new Error(`tsc failed:\n${run.stdout}${run.stderr}`);
}
