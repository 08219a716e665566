// Copies the libraries of the web page from node_modules to static/vendor/: the page has no build step, and the server
// never serves node_modules. It owns everything in static/vendor/, which is committed; `manifest.json` there names each
// file's SHA-256. The page imports `vendor/index.js` and links `vendor/highlight-light.css` and `…-dark.css`, whose names
// stay while versions change. `vendor/maths.js` is imported when a formula is seen, and not before.
//
//   node scripts/vendor.mjs                    copies
//   node scripts/vendor.mjs --check [FOLDER]   says what in static/vendor (or FOLDER) differs, exit 1 if anything does

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');

const LANGUAGES = [
  'bash',
  'css',
  'diff',
  'go',
  'java',
  'javascript',
  'json',
  'markdown',
  'python',
  'rust',
  'sql',
  'typescript',
  'xml',
  'yaml',
];

const LIBRARIES = [
  { name: 'marked', from: 'marked', files: ['lib/marked.esm.js', 'LICENSE'] },
  { name: 'dompurify', from: 'dompurify', files: ['dist/purify.es.mjs', 'LICENSE', 'LICENSE-MPL'] },
  {
    name: 'highlightjs',
    from: '@highlightjs/cdn-assets',
    files: [
      'es/core.min.js',
      ...LANGUAGES.map((language) => `es/languages/${language}.min.js`),
      'styles/github.min.css',
      'styles/github-dark.min.css',
      'LICENSE',
    ],
  },
  {
    name: 'katex',
    from: 'katex',
    files: ['dist/katex.min.js', 'dist/katex.min.css', ...fontsOf('katex/dist'), 'LICENSE'],
  },
];

/** Fonts of a library; of its three formats the one that every browser that runs the page knows. */
function fontsOf(folder) {
  const names = readdirSync(join(ROOT, 'node_modules', folder, 'fonts'));
  return names.filter((name) => name.endsWith('.woff2')).map((name) => `dist/fonts/${name}`);
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** A source map that is not shipped would be a 404 in every developer console. */
function withoutSourceMap(bytes) {
  return Buffer.from(bytes.toString('utf8').replace(/\n?(\/\/|\/\*)[#@] sourceMappingURL=[^\n]*\n?$/, '\n'));
}

/** The one module the page imports: relative paths only, languages registered here. */
function indexOf(folders) {
  const highlight = `./${folders.highlightjs}/es`;
  return [
    '// Made by scripts/vendor.mjs: the libraries of the page under names that do not change with their versions.',
    '',
    `import hljs from '${highlight}/core.min.js';`,
    ...LANGUAGES.map((language) => `import ${language} from '${highlight}/languages/${language}.min.js';`),
    '',
    `for (const [name, language] of Object.entries({ ${LANGUAGES.join(', ')} })) hljs.registerLanguage(name, language);`,
    '',
    `export { default as DOMPurify } from './${folders.dompurify}/purify.es.mjs';`,
    `export { marked } from './${folders.marked}/marked.esm.js';`,
    'export { hljs };',
    '',
  ].join('\n');
}

/** The module for formulas: the library is a classic script, and names itself globally where there is no other way. */
const mathsOf = (folders) =>
  [
    '// Made by scripts/vendor.mjs: what sets formulas, and the address of its style sheet.',
    '',
    `import './${folders.katex}/katex.min.js';`,
    '',
    `export const STYLE = new URL('./${folders.katex}/katex.min.css', import.meta.url).href;`,
    'export const { katex } = globalThis;',
    '',
  ].join('\n');

/** Everything that belongs in static/vendor/, as a map from path to bytes, made from node_modules. */
function expectedFiles() {
  const files = new Map();
  const folders = {};
  const packages = [];
  for (const { name, from, files: wanted } of LIBRARIES) {
    const source = join(ROOT, 'node_modules', from);
    const { version, license } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
    folders[name] = `${name}-${version}`;
    packages.push({ package: from, version, licence: license, folder: folders[name] });
    for (const path of wanted) {
      const bytes = readFileSync(join(source, path));
      const target = path.replace(/^(lib|dist)\//, '');
      files.set(`${folders[name]}/${target}`, /\.(m?js|css)$/.test(path) ? withoutSourceMap(bytes) : bytes);
    }
  }
  const add = (path, text) => files.set(path, Buffer.from(text));
  add('index.js', indexOf(folders));
  add('maths.js', mathsOf(folders));
  add('highlight-light.css', `@import url("./${folders.highlightjs}/styles/github.min.css");\n`);
  add('highlight-dark.css', `@import url("./${folders.highlightjs}/styles/github-dark.min.css");\n`);
  const sums = Object.fromEntries(
    [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, b]) => [path, sha256(b)]),
  );
  add('manifest.json', `${JSON.stringify({ packages, sha256: sums }, null, 2)}\n`);
  return files;
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));
}

/** What differs between a folder and what belongs there: one line for each file. */
function differences(folder) {
  const expected = expectedFiles();
  const found = new Set(filesIn(folder));
  const lines = [...found].filter((path) => !expected.has(path)).map((path) => `${path} does not belong there`);
  for (const [path, bytes] of expected) {
    if (!found.has(path)) lines.push(`${path} is missing`);
    else if (!readFileSync(join(folder, path)).equals(bytes)) lines.push(`${path} differs from its package`);
  }
  return lines;
}

const [option, folder = join(ROOT, 'static', 'vendor')] = process.argv.slice(2);
if (option === undefined) {
  const files = expectedFiles();
  rmSync(folder, { recursive: true, force: true });
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
} else if (option === '--check') {
  const lines = differences(folder);
  for (const line of lines) process.stderr.write(`vendored files: ${line}; run \`npm run vendor\`\n`);
  if (lines.length > 0) process.exitCode = 1;
} else {
  process.stderr.write('usage: node scripts/vendor.mjs [--check [FOLDER]]\n');
  process.exitCode = 1;
}
