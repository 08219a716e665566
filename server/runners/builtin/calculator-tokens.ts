/** The tokens of an arithmetic expression, with the words that people use for signs. Pure. */
import { CalculationError, FUNCTIONS } from './calculator-functions.ts';

export type Token =
  | { kind: 'number'; value: number }
  | { kind: 'name'; name: string }
  | { kind: 'sign'; sign: string }
  | { kind: 'end' };

const WORDS: [RegExp, string][] = [
  [/\bplus\b/gi, '+'],
  [/\bminus\b/gi, '-'],
  [/\b(?:times|multiplied by)\b|×|·/gi, '*'],
  [/\bdivided by\b|÷/gi, '/'],
  [/\bto the power of\b|\*\*/gi, '^'],
  [/\bsquared\b/gi, '^2'],
  [/\bper ?cent\b/gi, '%'],
  [/\bmod(?:ulo)?\b/gi, '%'],
  [/\bsquare root of\b/gi, 'sqrt'],
  [/[−–]/g, '-'],
];

const PLAIN_NUMBER = /^(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?/i;
const GROUPED_NUMBER = /^(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?/i;

/** Cuts an expression into tokens; throws a `CalculationError`. */
export function tokenise(expression: string): Token[] {
  let text = expression;
  for (const [pattern, sign] of WORDS) text = text.replace(pattern, sign);
  const tokens: Token[] = [];
  let inFunction = 0;
  const opened: boolean[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const space = /^\s+/.exec(rest);
    // A comma groups digits, except between the arguments of a function.
    const number = (inFunction ? PLAIN_NUMBER : GROUPED_NUMBER).exec(rest);
    const name = /^[a-z]+/i.exec(rest);
    if (space) at += space[0].length;
    else if (number) {
      if (/^[.\d]/.test(rest.slice(number[0].length))) throw new CalculationError('There is a malformed number.');
      tokens.push({ kind: 'number', value: Number(number[0].replaceAll(',', '')) });
      at += number[0].length;
    } else if (name) {
      const word = name[0].toLowerCase();
      if (word === 'x' && tokens.length > 0) tokens.push({ kind: 'sign', sign: '*' });
      else if (word === 'pi') tokens.push({ kind: 'number', value: Math.PI });
      else if (word === 'of' || Object.hasOwn(FUNCTIONS, word)) tokens.push({ kind: 'name', name: word });
      else throw new CalculationError(`I do not know "${word.slice(0, 40)}" in an expression.`);
      at += word.length;
    } else {
      const sign = rest[0]!;
      if (!'+-*/%^(),'.includes(sign)) throw new CalculationError('There is a character that is not arithmetic.');
      if (sign === '(') {
        const last = tokens.at(-1);
        opened.push(last?.kind === 'name' && last.name !== 'of');
        if (opened.at(-1)) inFunction++;
      } else if (sign === ')' && opened.pop()) inFunction--;
      tokens.push({ kind: 'sign', sign });
      at++;
    }
  }
  tokens.push({ kind: 'end' });
  return tokens;
}
