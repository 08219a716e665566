// What a source file says about its place in the house: what it imports, and which ambient things (clock, ids,
// environment) it names. It owns the reading of TypeScript; the rules are in arrows.ts.

import { readdirSync, readFileSync } from 'node:fs';
import { posix, resolve, sep } from 'node:path';
import { parseSync } from 'vite';

/** The checkout that is tested. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** One import, re-export or dynamic import; `target` is the imported file for a relative one, else the specifier. */
export interface Import {
  target: string;
  relative: boolean;
  line: number;
}

/** One mention of something ambient: `process.env`, `Date.now`, `new Date()`, `Math.random`, `randomUUID` … */
export interface Mention {
  name: string;
  line: number;
}

/** One source file as the rules see it; `path` is relative to the checkout, with slashes. */
export interface SourceFacts {
  path: string;
  imports: Import[];
  mentions: Mention[];
}

/** Any node of the syntax tree, seen without its type: the walk only looks at shapes. */
export type SyntaxNode = { type: string; start: number } & Record<string, unknown>;

const ID_MAKERS = new Set(['randomUUID', 'randomBytes', 'randomInt', 'getRandomValues']);

/** Calls `visit` with every node of a TypeScript source. Throws when it does not parse. */
export function walk(path: string, text: string, visit: (node: SyntaxNode) => void): void {
  const { program, errors } = parseSync(path, text, { lang: 'ts', sourceType: 'module' });
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]?.message}`);
  const step = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) step(item);
    } else if (typeof value === 'object' && value !== null) {
      if ('type' in value) visit(value as SyntaxNode);
      for (const child of Object.values(value)) step(child);
    }
  };
  step(program);
}

/** The text of a string literal or of a template without expressions, else undefined. */
function literal(value: unknown): string | undefined {
  const node = value as SyntaxNode | null | undefined;
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TemplateLiteral') {
    const quasis = node.quasis as { value: { cooked: string } }[];
    if (quasis.length === 1) return quasis[0]?.value.cooked;
  }
  return undefined;
}

/** The name of an identifier, or of the property that a member expression reaches. */
function nameOf(value: unknown): string | undefined {
  const node = value as SyntaxNode | null | undefined;
  if (node?.type === 'Identifier') return node.name as string;
  if (node?.type === 'MemberExpression') return node.computed ? literal(node.property) : nameOf(node.property);
  return literal(node);
}

/** What a node imports, if it is any of the forms that load or name another module. */
function importedBy(node: SyntaxNode): string | undefined {
  const first = (node.arguments as unknown[] | undefined)?.[0];
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return literal(node.source);
    case 'TSExternalModuleReference':
      return literal(node.expression);
    case 'CallExpression':
      return nameOf(node.callee) === 'require' ? literal(first) : undefined;
    case 'NewExpression': {
      // A worker is named by `new URL('./x.ts', import.meta.url)`.
      const url = nameOf(node.callee) === 'URL' ? literal(first) : undefined;
      return url !== undefined && /^\.{1,2}\/.*\.[jt]s$/.test(url) ? url : undefined;
    }
    default:
      return undefined;
  }
}

/** Which ambient thing a node names, if any. */
function mentionedBy(node: SyntaxNode): string | undefined {
  const withoutArguments = (node.arguments as unknown[] | undefined)?.length === 0;
  switch (node.type) {
    case 'MemberExpression': {
      const property = nameOf(node);
      const object = nameOf(node.object);
      if (object === 'process' && property === 'env') return 'process.env';
      if (object === 'Date' && property === 'now') return 'Date.now';
      if (object === 'Math' && property === 'random') return 'Math.random';
      return property !== undefined && ID_MAKERS.has(property) ? property : undefined;
    }
    case 'NewExpression':
      return nameOf(node.callee) === 'Date' && withoutArguments ? 'new Date()' : undefined;
    case 'CallExpression':
      return (node.callee as SyntaxNode).type === 'Identifier' && nameOf(node.callee) === 'Date' ? 'Date()' : undefined;
    case 'ImportDeclaration': {
      const names = (node.specifiers as SyntaxNode[]).map((specifier) => nameOf(specifier.imported));
      if (names.includes('env') && /^(node:)?process$/.test(literal(node.source) ?? '')) return 'process.env';
      return names.find((name) => name !== undefined && ID_MAKERS.has(name));
    }
    case 'VariableDeclarator': {
      const pattern = node.id as SyntaxNode;
      if (pattern.type !== 'ObjectPattern' || nameOf(node.init) !== 'process') return undefined;
      const names = (pattern.properties as SyntaxNode[]).map((property) => nameOf(property.key));
      return names.includes('env') ? 'process.env' : undefined;
    }
    default:
      return undefined;
  }
}

/** Reads the facts of one source; nothing is read from the disk, so a test may plant any text under any path. */
export function factsOf(path: string, text: string): SourceFacts {
  const facts: SourceFacts = { path, imports: [], mentions: [] };
  const lineOf = (node: SyntaxNode) => text.slice(0, node.start).split('\n').length;
  walk(path, text, (node) => {
    const specifier = importedBy(node);
    if (specifier !== undefined) {
      const relative = specifier.startsWith('.');
      const target = relative ? posix.join(posix.dirname(path), specifier) : specifier;
      facts.imports.push({ target, relative, line: lineOf(node) });
    }
    const name = mentionedBy(node);
    if (name !== undefined) facts.mentions.push({ name, line: lineOf(node) });
  });
  return facts;
}

/** The paths of all TypeScript files below a folder of the checkout, sorted, with slashes. */
export function sourcesBelow(folder: string): string[] {
  return readdirSync(resolve(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) =>
      resolve(entry.parentPath, entry.name)
        .slice(ROOT.length + 1)
        .split(sep)
        .join('/'),
    )
    .sort();
}

/** The text of a file of the checkout. */
export function textOf(path: string): string {
  return readFileSync(resolve(ROOT, path), 'utf8');
}
