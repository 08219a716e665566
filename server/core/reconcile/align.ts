/**
 * Alignment of two sequences: which of their elements stand for each other, in order (RC4). Knows nothing of rows.
 *
 * Equal ends are trimmed; elements that are unique on both sides divide what is left; short rests are solved exactly, and
 * long ones of repeats by pairing occurrences. The cost stays near-linear for any input, 36,000 equal elements included.
 */

export type Pair = readonly [a: number, b: number];

/** Work that is left for exact solutions, in cells of the table: shared by all parts of one alignment. */
interface Budget {
  cells: number;
}

const EXACT_CELLS = 2_000_000;
const LARGEST_TABLE = 250_000;
const DEEPEST = 24;

/** The longest list of pairs that ascends in both; the input ascends in `a`. */
export function ascending(pairs: readonly Pair[]): Pair[] {
  const ends: number[] = []; // ends[k]: index of the pair that ends the best chain of k + 1 pairs
  const before: number[] = [];
  for (const [at, [, b]] of pairs.entries()) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![1] < b) low = middle + 1;
      else high = middle;
    }
    before.push(low > 0 ? ends[low - 1]! : -1);
    ends[low] = at;
  }
  const chain: Pair[] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]!) chain.push(pairs[at]!);
  return chain.reverse();
}

/**
 * Aligns two sequences by equality of their elements.
 * @returns pairs of positions, ascending in both
 */
export function align(a: readonly number[], b: readonly number[]): Pair[] {
  const pairs: Pair[] = [];
  alignPart(a, b, 0, a.length, 0, b.length, pairs, { cells: EXACT_CELLS }, 0);
  return pairs.sort((x, y) => x[0] - y[0]);
}

function alignPart(
  a: readonly number[],
  b: readonly number[],
  aFrom: number,
  aTo: number,
  bFrom: number,
  bTo: number,
  pairs: Pair[],
  budget: Budget,
  depth: number,
): void {
  // The end first: of equal rows the latest are meant.
  while (aFrom < aTo && bFrom < bTo && a[aTo - 1] === b[bTo - 1]) pairs.push([--aTo, --bTo]);
  while (aFrom < aTo && bFrom < bTo && a[aFrom] === b[bFrom]) pairs.push([aFrom++, bFrom++]);
  if (aFrom === aTo || bFrom === bTo) return;

  const cells = (aTo - aFrom) * (bTo - bFrom);
  if (cells <= LARGEST_TABLE && cells <= budget.cells) {
    budget.cells -= cells;
    exact(a, b, aFrom, aTo, bFrom, bTo, pairs);
    return;
  }
  const unique = ascending(uniquePairs(a, b, aFrom, aTo, bFrom, bTo));
  const fixed = unique.length > 0 ? unique : occurrencePairs(a, b, aFrom, aTo, bFrom, bTo);
  if (unique.length === 0 || depth >= DEEPEST) {
    pairs.push(...fixed);
    return;
  }
  let [aAt, bAt] = [aFrom, bFrom];
  for (const [aNext, bNext] of [...fixed, [aTo, bTo] as const]) {
    alignPart(a, b, aAt, aNext, bAt, bNext, pairs, budget, depth + 1);
    if (aNext < aTo) pairs.push([aNext, bNext]);
    [aAt, bAt] = [aNext + 1, bNext + 1];
  }
}

/** Positions of each element in a part of a sequence. */
function positions(list: readonly number[], from: number, to: number): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (let at = from; at < to; at += 1) {
    const element = list[at]!;
    const known = found.get(element);
    if (known) known.push(at);
    else found.set(element, [at]);
  }
  return found;
}

type Part = [a: readonly number[], b: readonly number[], aFrom: number, aTo: number, bFrom: number, bTo: number];

/** Elements that are there once on each side. */
function uniquePairs(...[a, b, aFrom, aTo, bFrom, bTo]: Part): Pair[] {
  const inA = positions(a, aFrom, aTo);
  const inB = positions(b, bFrom, bTo);
  const pairs: Pair[] = [];
  for (const [element, at] of inA) {
    const other = inB.get(element);
    if (at.length === 1 && other?.length === 1) pairs.push([at[0]!, other[0]!]);
  }
  return pairs.sort((x, y) => x[0] - y[0]);
}

/** The first of one side with the first of the other and so on; or counted from the end, when that keeps more. */
function occurrencePairs(...[a, b, aFrom, aTo, bFrom, bTo]: Part): Pair[] {
  const inA = positions(a, aFrom, aTo);
  const inB = positions(b, bFrom, bTo);
  const [fromStart, fromEnd]: [Pair[], Pair[]] = [[], []];
  for (const [element, at] of inA) {
    const other = inB.get(element) ?? [];
    const count = Math.min(at.length, other.length);
    for (let k = 0; k < count; k += 1) {
      fromStart.push([at[k]!, other[k]!]);
      fromEnd.push([at[at.length - count + k]!, other[other.length - count + k]!]);
    }
  }
  const best = [fromStart, fromEnd].map((pairs) => ascending(pairs.sort((x, y) => x[0] - y[0])));
  return best[0]!.length > best[1]!.length ? best[0]! : best[1]!;
}

/** The longest common subsequence by the textbook's table; of equal ones the one that matches latest. */
function exact(...[a, b, aFrom, aTo, bFrom, bTo, pairs]: [...Part, Pair[]]): void {
  const [rows, columns] = [aTo - aFrom, bTo - bFrom];
  const width = columns + 1;
  const length = new Uint32Array((rows + 1) * width);
  for (let i = 1; i <= rows; i += 1) {
    for (let j = 1; j <= columns; j += 1) {
      length[i * width + j] =
        a[aFrom + i - 1] === b[bFrom + j - 1]
          ? length[(i - 1) * width + j - 1]! + 1
          : Math.max(length[(i - 1) * width + j]!, length[i * width + j - 1]!);
    }
  }
  let [i, j] = [rows, columns];
  while (i > 0 && j > 0) {
    if (a[aFrom + i - 1] === b[bFrom + j - 1]) {
      i -= 1;
      j -= 1;
      pairs.push([aFrom + i, bFrom + j]);
    } else if (length[(i - 1) * width + j]! > length[i * width + j - 1]!) i -= 1;
    else j -= 1;
  }
}
