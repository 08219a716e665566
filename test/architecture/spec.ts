// Which rules SPEC.md states and which ones the titles of the tests cite. Pure; the comparison is the binding between
// the document and the suite.

import { type SyntaxNode, walk } from './source.ts';

const ID = '[A-Z]{2}\\d+';
const TEST_WORDS = new Set(['it', 'test', 'describe']);

/** Where a rule is cited; a skipped or unwritten test cites a rule without proving it. */
export interface Citation {
  rule: string;
  path: string;
  proves: boolean;
}

/** The ids of the rules in the text of SPEC.md, in its order: lines of the form `- **AD1** text`. */
export function rulesIn(spec: string): string[] {
  return [...spec.matchAll(new RegExp(`^\\s*- \\*\\*(${ID})\\*\\* \\S`, 'gm'))].map((match) => match[1]!);
}

/** The words of a call such as `it.skipIf(x).each(y)('title')`: it, skipIf, each. */
function wordsOf(callee: unknown): string[] {
  const node = callee as SyntaxNode;
  if (node.type === 'Identifier') return [node.name as string];
  if (node.type === 'MemberExpression') return [...wordsOf(node.object), ...wordsOf(node.property)];
  if (node.type === 'CallExpression') return wordsOf(node.callee);
  if (node.type === 'TaggedTemplateExpression') return wordsOf(node.tag);
  return [];
}

/** The fixed text of a title: a literal, or a template with its expressions left out. */
function titleOf(value: unknown): string {
  const node = value as SyntaxNode | undefined;
  if (node?.type === 'Literal') return String(node.value);
  if (node?.type !== 'TemplateLiteral') return '';
  return (node.quasis as { value: { cooked: string } }[]).map((quasi) => quasi.value.cooked).join(' ');
}

/** The rules that the titles in a test source cite: `[AD1]`, `[AD1, AD2]` or `[AD1][AD2]`. */
export function citationsIn(path: string, text: string): Citation[] {
  const found: Citation[] = [];
  walk(path, text, (node) => {
    if (node.type !== 'CallExpression') return;
    const words = wordsOf(node.callee);
    if (!TEST_WORDS.has(words[0] ?? '')) return;
    const proves = !words.includes('skip') && !words.includes('todo');
    const title = titleOf((node.arguments as unknown[])[0]);
    for (const [brackets] of title.matchAll(new RegExp(`\\[${ID}(?:,? ${ID})*\\]`, 'g'))) {
      for (const [rule] of brackets.matchAll(new RegExp(ID, 'g'))) found.push({ rule, path, proves });
    }
  });
  return found;
}

/** What is wrong between document and suite: rules stated twice, rules without a test, citations of no rule. */
export function mismatches(rules: string[], citations: Citation[]): string[] {
  const stated = new Set(rules);
  const proven = new Set(citations.filter((citation) => citation.proves).map((citation) => citation.rule));
  const unknown = citations.filter((citation) => !stated.has(citation.rule));
  return [
    ...rules.filter((rule, at) => rules.indexOf(rule) !== at).map((rule) => `${rule} is stated twice`),
    ...[...stated].filter((rule) => !proven.has(rule)).map((rule) => `${rule} has no test`),
    ...new Set(unknown.map(({ rule, path }) => `${rule} is cited in ${path} but not stated`)),
  ];
}
