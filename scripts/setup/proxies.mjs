// The reverse proxies that the tests of deploy/ put in front of a server.

import { ensurePackage, onPath } from './system-package.mjs';

export const PROXIES = [
  { name: 'nginx', packages: ['nginx-light'] },
  { name: 'caddy', packages: ['caddy'] },
];

/** Makes sure of the proxies, or says that their tests will be skipped. @param root the clone */
export async function ensureProxies(root) {
  for (const { name, packages } of PROXIES) {
    await ensurePackage(root, { label: name, packages, find: () => onPath(name), tests: `tests behind ${name}` });
  }
}
