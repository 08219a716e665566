// The arrows of the house as data: who may import whom, and who may name the clock, ids and the environment. Pure; what
// a file says is read by source.ts.

import type { Import, SourceFacts } from './source.ts';

/** One thing that a file may not do. */
export interface Violation {
  path: string;
  line: number;
  rule: string;
  what: string;
}

type Lower = 'core' | 'server' | 'routes' | 'db' | 'files';
type Layer = Lower | 'roof' | 'outside';

const ROOF = new Set(['server/app.ts', 'server/main.ts']);

/** Where a path lies in the house. */
function layerOf(path: string): Layer {
  if (ROOF.has(path)) return 'roof';
  if (path.startsWith('server/core/')) return 'core';
  if (path.startsWith('server/')) return 'server';
  if (path.startsWith('routes/')) return 'routes';
  if (path.startsWith('db/files/')) return 'files';
  if (path.startsWith('db/')) return 'db';
  return 'outside';
}

/** What each layer may import of the house. The roof may import everything, and nobody imports the roof. */
const BELOW: Record<Lower, Layer[]> = {
  core: ['core'],
  files: ['files', 'core'],
  db: ['db', 'files', 'core'],
  server: ['server', 'db', 'files', 'core'],
  routes: ['routes', 'server', 'core'],
};

const HTTP = /^(fastify$|fastify\/|@fastify\/)/;
const DRIVER = /^(better-sqlite3|drizzle-orm)($|\/)/;
const FILES = /^(node:)?fs($|\/)/;

/** Whether a module may touch files: of the home or a workspace, process tables, configuration, installation. */
function mayTouchFiles(path: string): boolean {
  return layerOf(path) === 'files' || /^server\/(workspace\/|lease\/|(config|installation)\.ts$)/.test(path);
}

/** The rules on imports; each says whether an import of a file in a layer breaks it. */
const IMPORT_RULES: { rule: string; broken: (imported: Import, layer: Lower, path: string) => boolean }[] = [
  {
    rule: 'arrows point down',
    broken: ({ target, relative }, layer) =>
      relative && layerOf(target) !== 'outside' && !BELOW[layer].includes(layerOf(target)),
  },
  {
    rule: 'the house imports nothing outside itself but package.json',
    broken: ({ target, relative }) => relative && layerOf(target) === 'outside' && target !== 'package.json',
  },
  {
    rule: 'core imports no package and no built-in',
    broken: ({ relative }, layer) => layer === 'core' && !relative,
  },
  {
    rule: 'only routes know Fastify',
    broken: ({ target }, layer) => layer !== 'routes' && HTTP.test(target),
  },
  {
    rule: 'only db imports the SQLite driver',
    broken: ({ target }, layer) => layer !== 'db' && DRIVER.test(target),
  },
  {
    rule: 'only the named places touch files',
    broken: ({ target }, _layer, path) => FILES.test(target) && !mayTouchFiles(path),
  },
];

/** Every violation in one file of the house. */
export function violationsOf({ path, imports, mentions }: SourceFacts): Violation[] {
  const layer = layerOf(path);
  if (layer === 'outside') throw new Error(`${path} is no part of the house`);
  const found: Violation[] = [];
  if (layer !== 'roof') {
    for (const imported of imports) {
      const broken = IMPORT_RULES.filter((each) => each.broken(imported, layer, path));
      for (const { rule } of broken) found.push({ path, line: imported.line, rule, what: imported.target });
    }
  }
  for (const { name, line } of mentions) {
    const environment = name === 'process.env';
    const allowed = environment ? path === 'server/config.ts' || path === 'server/main.ts' : layer === 'roof';
    const rule = environment
      ? 'only the configuration reads the environment'
      : 'only the roof reads the clock and makes ids';
    if (!allowed) found.push({ path, line, rule, what: name });
  }
  return found;
}

/** Every cycle of imports among the files, each as the list of its paths, the first one repeated at the end. */
export function cyclesOf(files: SourceFacts[]): string[][] {
  const edges = new Map(files.map((file) => [file.path, file.imports.filter((i) => i.relative).map((i) => i.target)]));
  const done = new Set<string>();
  const cycles: string[][] = [];
  const visit = (path: string, trail: string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) {
      cycles.push([...trail.slice(at), path]);
      return;
    }
    if (done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return cycles;
}
