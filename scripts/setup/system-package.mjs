// Programs that only tests need and that npm does not bring: found, or installed by the system's package manager where we
// may. Without one its tests are skipped, and that is said here, once.

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './child.mjs';
import { withLock } from './lock.mjs';
import { say } from './say.mjs';

/** The commands by which each package manager brings packages, tried in this order. */
const managers = (packages) => [
  {
    program: 'apt-get',
    commands: [
      ['update', '-q'],
      ['install', '-y', '-q', '--no-install-recommends', ...packages],
    ],
    // A service that a package brings must not be started: only tests use it.
    env: { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  },
  { program: 'apk', commands: [['add', '--no-cache', ...packages]] },
  { program: 'dnf', commands: [['install', '-y', ...packages]] },
  { program: 'pacman', commands: [['-Sy', '--noconfirm', '--needed', ...packages]] },
];

export function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The path of a program by its name: on the PATH, or where system programs are. */
export function onPath(name) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

/**
 * Makes sure of a program, or says what will be skipped. Never fails: all other tests run without it.
 *
 * @param root the clone, for the set-up lock
 * @param wanted `label` for a person, `packages` that bring it, `find` that gives its path or undefined, `tests` that need
 *   it, `orElse` what can be done besides installing it
 */
export async function ensurePackage(root, { label, packages, find, tests, orElse = '' }) {
  if (find() !== undefined) return;
  const manager = managers(packages).find(({ program }) => onPath(program));
  const command = manager && [manager.program, ...manager.commands.at(-1)].join(' ');
  const remedy = `install it${command ? ` (as root: ${command})` : ''}${orElse}`;
  if (manager === undefined || process.getuid?.() !== 0) {
    return say(`${label} was not found: ${tests} will be skipped; ${remedy}`);
  }
  await withLock(root, async () => {
    if (find() !== undefined) return;
    say(`installing ${label} for ${tests}: ${command}`);
    for (const args of manager.commands) {
      const code = await run(manager.program, args, { env: { ...process.env, ...manager.env } });
      if (code !== 0) say(`\`${manager.program} ${args.join(' ')}\` failed with exit code ${code}`);
    }
  });
  if (find() === undefined) say(`${label} could not be installed: ${tests} will be skipped; ${remedy}`);
}
