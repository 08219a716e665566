/**
 * Arithmetic by a small parser of its own: numbers, + - * / % ^, parentheses, sqrt, round, abs, min, max, and percent
 * as people write it. Pure. Nothing is ever evaluated as code.
 *
 *   sum      = product (('+' | '-') product)*      a percentage is of the left side: 200 + 10% = 220
 *   product  = sign (('*' | '/' | '%' | 'of') sign)*
 *   sign     = '-' sign | '+' sign | power
 *   power    = percent ('^' sign)?                 from the right, and before a sign: -2^2 = -4
 *   percent  = atom '%'?                           '%' before a number, '(' or a function is the remainder
 *   atom     = number | '(' sum ')' | function '(' sum (',' sum)* ')' | pi
 */
import { CalculationError, FUNCTIONS } from './calculator-functions.ts';
import type { Token } from './calculator-tokens.ts';
import { tokenise } from './calculator-tokens.ts';

export type Calculation = { ok: true; value: number; text: string } | { ok: false; problem: string };

const MAX_LENGTH = 1000;
const MAX_DEPTH = 100;

/** Does the text look like arithmetic, right or wrong: only numbers, signs and known names, and something to do? */
export function looksLikeArithmetic(text: string): boolean {
  if (text.length > MAX_LENGTH || !/\d/.test(text)) return false;
  try {
    const tokens = tokenise(text);
    return tokens.some((token) => token.kind === 'name' || (token.kind === 'sign' && '+-*/%^'.includes(token.sign)));
  } catch (error) {
    if (error instanceof CalculationError) return false;
    throw error;
  }
}

/** Works an expression out. What is wrong with it is said in one sentence. */
export function calculate(expression: string): Calculation {
  try {
    if (expression.length > MAX_LENGTH) throw new CalculationError('The expression is too long.');
    const value = new Parser(tokenise(expression)).parse();
    if (!Number.isFinite(value)) throw new CalculationError('The result is too large.');
    return { ok: true, value, text: formatNumber(value) };
  } catch (error) {
    if (error instanceof CalculationError) return { ok: false, problem: error.message };
    throw error;
  }
}

/** Twelve significant digits, so that 0.1 + 0.2 is 0.3; what is not exact beyond that is said to be about. */
export function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return `about ${Number(value.toPrecision(12))}`;
  return String(Number(value.toPrecision(12)));
}

/** A value, and whether it was written as a percentage. */
type Part = { value: number; percent: boolean };

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): number {
    if (this.#peek().kind === 'end') throw new CalculationError('There is nothing to calculate.');
    const { value } = this.#sum();
    if (this.#peek().kind !== 'end') throw new CalculationError(`I did not expect ${this.#shown()} there.`);
    return value;
  }

  #sum(): Part {
    if (++this.#depth > MAX_DEPTH) throw new CalculationError('There are too many parentheses.');
    let left = this.#product();
    for (let sign = this.#take('+', '-'); sign; sign = this.#take('+', '-')) {
      const right = this.#product();
      const amount = right.percent && !left.percent ? left.value * right.value : right.value;
      left = {
        value: sign === '+' ? left.value + amount : left.value - amount,
        percent: left.percent && right.percent,
      };
    }
    this.#depth--;
    return left;
  }

  #product(): Part {
    let left = this.#signed();
    for (;;) {
      const token = this.#peek();
      if (token.kind === 'name' && token.name === 'of') {
        if (!left.percent) throw new CalculationError('`of` needs a percentage before it, as in `15% of 80`.');
        this.#at++;
        left = { value: left.value * this.#signed().value, percent: false };
        continue;
      }
      const sign = this.#take('*', '/', '%');
      if (!sign) return left;
      const right = this.#signed();
      if (right.value === 0 && sign !== '*') throw new CalculationError('Division by zero has no result.');
      const value =
        sign === '*' ? left.value * right.value : sign === '/' ? left.value / right.value : left.value % right.value;
      left = { value, percent: false };
    }
  }

  #signed(): Part {
    let negative = false;
    for (let sign = this.#take('+', '-'); sign; sign = this.#take('+', '-')) negative = negative !== (sign === '-');
    const part = this.#power();
    return negative ? { value: -part.value, percent: part.percent } : part;
  }

  #power(): Part {
    const base = this.#percent();
    if (!this.#take('^')) return base;
    if (++this.#depth > MAX_DEPTH) throw new CalculationError('There are too many powers.');
    const exponent = this.#signed().value;
    this.#depth--;
    if (base.value === 0 && exponent < 0) throw new CalculationError('Division by zero has no result.');
    const value = base.value ** exponent;
    if (Number.isNaN(value)) throw new CalculationError('A root of a negative number is not a real number.');
    return { value, percent: false };
  }

  #percent(): Part {
    const value = this.#atom();
    const token = this.#peek();
    if (token.kind !== 'sign' || token.sign !== '%') return { value, percent: false };
    const next = this.#tokens[this.#at + 1]!;
    const remainder =
      next.kind === 'number' ||
      (next.kind === 'sign' && next.sign === '(') ||
      (next.kind === 'name' && next.name !== 'of');
    if (remainder) return { value, percent: false };
    this.#at++;
    return { value: value / 100, percent: true };
  }

  #atom(): number {
    const token = this.#peek();
    if (token.kind === 'number') {
      this.#at++;
      return token.value;
    }
    if (token.kind === 'name' && token.name !== 'of') {
      this.#at++;
      return this.#call(token.name);
    }
    if (this.#take('(')) {
      const { value } = this.#sum();
      this.#expect(')');
      return value;
    }
    if (token.kind === 'end') throw new CalculationError('The expression ends too early.');
    throw new CalculationError(`I did not expect ${this.#shown()} there.`);
  }

  #call(name: string): number {
    const func = FUNCTIONS[name]!;
    if (!this.#take('(')) {
      // "square root of 2" and "sqrt 2" need no parentheses.
      if (func.most <= 2) return func.apply([this.#percent().value]);
      throw new CalculationError(`\`${name}\` needs its numbers in parentheses.`);
    }
    const values = [this.#sum().value];
    while (this.#take(',')) values.push(this.#sum().value);
    this.#expect(')');
    if (values.length > func.most) throw new CalculationError(`\`${name}\` takes at most ${func.most} numbers.`);
    return func.apply(values);
  }

  #peek(): Token {
    return this.#tokens[this.#at]!;
  }

  #take(...signs: string[]): string | null {
    const token = this.#peek();
    if (token.kind !== 'sign' || !signs.includes(token.sign)) return null;
    this.#at++;
    return token.sign;
  }

  #expect(sign: string): void {
    if (!this.#take(sign)) throw new CalculationError(`A \`${sign}\` is missing.`);
  }

  #shown(): string {
    const token = this.#peek();
    if (token.kind === 'number') return `the number ${formatNumber(token.value)}`;
    if (token.kind === 'name') return `\`${token.name}\``;
    return token.kind === 'sign' ? `\`${token.sign}\`` : 'the end';
  }
}
