// The Chromium that the browser tests drive.

import { join } from 'node:path';
import { say } from './say.mjs';
import { ensurePackage, isProgram, onPath } from './system-package.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const PLACES = ['/usr/bin', '/usr/local/bin', '/snap/bin'];
const APPLICATIONS = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/opt/google/chrome/chrome',
];

/** The path of a Chromium or Chrome: `CHROMIUM`, the PATH, then the usual places; undefined when there is none. */
export function findChromium() {
  const named = process.env.CHROMIUM;
  if (named) return isProgram(named) ? named : onPath(named);
  return (
    NAMES.map(onPath).find(Boolean) ??
    [...PLACES.flatMap((folder) => NAMES.map((name) => join(folder, name))), ...APPLICATIONS].find(isProgram)
  );
}

/** Makes sure of a Chromium for the browser tests, or says that they will be skipped. @param root the clone */
export async function ensureChromium(root) {
  if (process.env.CHROMIUM && findChromium() === undefined) {
    return say(`no program at CHROMIUM=${process.env.CHROMIUM}: browser tests will be skipped`);
  }
  const orElse = ' or set CHROMIUM to its path';
  await ensurePackage(root, {
    label: 'Chromium',
    packages: ['chromium'],
    find: findChromium,
    tests: 'browser tests',
    orElse,
  });
}
