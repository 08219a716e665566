// The licences of the libraries that a build joins into the server: whoever passes the file on passes them on with it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the package that a file belongs to, as a path below the root; undefined for a file of our own. */
const packageOf = (path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0];

/**
 * The text that names each library with its version and licence.
 *
 * @param root the clone
 * @param paths the files that were joined, relative to it, with `/` between folders
 */
export function licencesOf(root, paths) {
  const folders = [...new Set(paths.map(packageOf))].filter((folder) => folder !== undefined).sort();
  const parts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const file = readdirSync(join(root, folder)).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
    const text = file ? `\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n` : '';
    return `${name} ${version}: ${license}\n${text}`;
  });
  return `Turnkeep contains these libraries:\n\n${parts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}
