// The set-up in front of `npm start`, `npm test` and their kin: it makes a fresh clone usable and is silent when
// there is nothing to do. It owns the order of the steps and how a failure is told; the steps live in `setup/` and
// `build.mjs`. Only `node:*` may be imported here and there, for nothing else is installed yet. Everything is said on
// stderr: stdout belongs to the server.
//
//   node scripts/setup.mjs install   what is locked is installed
//   node scripts/setup.mjs start     … and the server is built
//   node scripts/setup.mjs test      … and a Chromium is looked for
//   node scripts/setup.mjs long      … and the reverse proxies too

import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODES = ['install', 'start', 'test', 'long'];

/** Whether this Node can run the project: the same range as `engines` in package.json. */
function nodeIsSupported(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return (major === 20 && minor >= 19) || (major === 22 && minor >= 14) || major > 22;
}

async function main() {
  const mode = process.argv[2];
  if (!nodeIsSupported(process.versions.node)) {
    throw new Error(
      `Turnkeep needs Node 20.19 or a later 20, or Node 22.14 or later; this is Node ${process.versions.node}. ` +
        'Install one of those (see https://nodejs.org) and try again.',
    );
  }
  if (!MODES.includes(mode)) throw new Error(`Say what to set up for: node scripts/setup.mjs ${MODES.join('|')}`);

  // Loaded only now, so that an old Node gets the sentence above and not a syntax error.
  const { isInstalled, install } = await import('./setup/install.mjs');
  const { isBuilt, build } = await import('./build.mjs');
  const { ensureChromium } = await import('./setup/chromium.mjs');
  const { withLock } = await import('./setup/lock.mjs');

  const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
  const builds = mode !== 'install';
  if (!isInstalled(root) || (builds && !isBuilt(root))) {
    await withLock(root, async () => {
      // Asked again inside the lock: whoever held it may have done the work.
      if (!isInstalled(root)) await install(root);
      if (builds && !isBuilt(root)) await build(root);
    });
  }
  if (mode === 'test' || mode === 'long') await ensureChromium(root);
  if (mode === 'long') {
    const { ensureProxies } = await import('./setup/proxies.mjs');
    await ensureProxies(root);
  }
}

main().catch((error) => {
  process.stderr.write(`turnkeep: ${error?.message ?? error}\n`);
  process.exitCode = 1;
});
