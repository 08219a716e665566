/** The functions of the calculator, and what is wrong with an expression. Pure. */

/** What is wrong with an expression, in a sentence for a person. Never leaves the calculator. */
export class CalculationError extends Error {}

interface Func {
  /** How many numbers it takes at most; one at least. */
  most: number;
  apply(values: number[]): number;
}

export const FUNCTIONS: Record<string, Func> = {
  sqrt: {
    most: 1,
    apply([value]) {
      if (value! < 0) throw new CalculationError('A negative number has no real square root.');
      return Math.sqrt(value!);
    },
  },
  round: { most: 2, apply: ([value, digits]) => roundTo(value!, digits ?? 0) },
  abs: { most: 1, apply: ([value]) => Math.abs(value!) },
  min: { most: 100, apply: (values) => Math.min(...values) },
  max: { most: 100, apply: (values) => Math.max(...values) },
};

function roundTo(value: number, digits: number): number {
  if (!Number.isInteger(digits) || digits < 0 || digits > 12) {
    throw new CalculationError('`round` takes 0 to 12 decimal places.');
  }
  // By way of the decimal text, because 1.005 * 100 is 100.49999999999999.
  const shifted = Number(`${Math.abs(value)}e${digits}`);
  if (!Number.isFinite(shifted)) return Math.abs(value) < 1 ? 0 : value;
  return Math.sign(value) * Number(`${Math.round(shifted)}e-${digits}`);
}
