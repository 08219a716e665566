// Finds the Chromium that the browser tests drive, and installs one by the system's package manager where we may.
// Without one the browser tests are skipped, and that is said here, once.

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './child.mjs';
import { withLock } from './lock.mjs';
import { say } from './say.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const PLACES = ['/usr/bin', '/usr/local/bin', '/snap/bin'];
const APPLICATIONS = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/opt/google/chrome/chrome',
];

/** The commands by which each package manager brings Chromium, tried in this order. */
const MANAGERS = [
  {
    program: 'apt-get',
    commands: [
      ['update', '-q'],
      ['install', '-y', '-q', '--no-install-recommends', 'chromium'],
    ],
    env: { DEBIAN_FRONTEND: 'noninteractive' },
  },
  { program: 'apk', commands: [['add', '--no-cache', 'chromium']] },
  { program: 'dnf', commands: [['install', '-y', 'chromium']] },
  { program: 'pacman', commands: [['-Sy', '--noconfirm', '--needed', 'chromium']] },
];

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function onPath(name) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

/** The path of a Chromium or Chrome: `CHROMIUM`, the PATH, then the usual places; undefined when there is none. */
export function findChromium() {
  const named = process.env.CHROMIUM;
  if (named) return isProgram(named) ? named : onPath(named);
  return (
    NAMES.map(onPath).find(Boolean) ??
    [...PLACES.flatMap((folder) => NAMES.map((name) => join(folder, name))), ...APPLICATIONS].find(isProgram)
  );
}

/**
 * Makes sure of a Chromium for the browser tests, or says that they will be skipped. Never fails: all other tests run
 * without one.
 *
 * @param root the clone, for the set-up lock
 */
export async function ensureChromium(root) {
  if (findChromium() !== undefined) return;
  if (process.env.CHROMIUM) return say(`no program at CHROMIUM=${process.env.CHROMIUM}: browser tests will be skipped`);
  const manager = MANAGERS.find(({ program }) => onPath(program));
  const command = manager && [manager.program, ...manager.commands.at(-1)].join(' ');
  const remedy = `install it${command ? ` (as root: ${command})` : ''} or set CHROMIUM to its path`;
  if (manager === undefined || process.getuid?.() !== 0) {
    return say(`Chromium was not found: browser tests will be skipped; ${remedy}`);
  }
  await withLock(root, async () => {
    if (findChromium() !== undefined) return;
    say(`installing Chromium for the browser tests: ${command}`);
    for (const args of manager.commands) {
      const code = await run(manager.program, args, { env: { ...process.env, ...manager.env } });
      if (code !== 0) say(`\`${manager.program} ${args.join(' ')}\` failed with exit code ${code}`);
    }
  });
  if (findChromium() === undefined) say(`Chromium could not be installed: browser tests will be skipped; ${remedy}`);
}
