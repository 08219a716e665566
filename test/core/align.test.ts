/** The alignment of long sequences: what it costs grows with their lengths, whatever is in them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { align, ascending } from '../../server/core/reconcile/align.ts';

const ROWS = 36_000;

/** A list that counts how often it is read. */
function counted(list: number[]): { list: readonly number[]; reads(): number } {
  let reads = 0;
  const proxy = new Proxy(list, {
    get(target, name, receiver) {
      if (typeof name === 'string' && name !== 'length') reads += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { list: proxy, reads: () => reads };
}

describe('the alignment of two sequences', () => {
  it('[RC4] keeps the order of both, pairs equals only, and is the longest where that can be afforded', () => {
    const list = fc.array(fc.nat({ max: 4 }), { maxLength: 14 });
    const property = fc.property(list, list, (a, b) => {
      const pairs = align(a, b);
      for (const [at, [x, y]] of pairs.entries()) {
        expect(a[x]).toBe(b[y]);
        if (at > 0) expect([x > pairs[at - 1]![0], y > pairs[at - 1]![1]]).toEqual([true, true]);
      }
      const best: number[][] = [...a, 0].map(() => [...b, 0].map(() => 0));
      for (let i = 1; i <= a.length; i += 1) {
        for (let j = 1; j <= b.length; j += 1) {
          best[i]![j] = a[i - 1] === b[j - 1] ? best[i - 1]![j - 1]! + 1 : Math.max(best[i - 1]![j]!, best[i]![j - 1]!);
        }
      }
      expect(pairs.length).toBe(best[a.length]![b.length]);
    });
    fc.assert(property, { seed: 7, numRuns: 500 });
  });

  it('[RC4] finds the longest ascending chain', () => {
    const pairs = [5, 1, 2, 9, 3, 0, 4].map((b, a) => [a, b] as const);
    expect(ascending(pairs).map(([, b]) => b)).toEqual([1, 2, 3, 4]);
    expect(ascending([])).toEqual([]);
  });

  const shapes: [name: string, a: (n: number) => number, b: (n: number) => number][] = [
    ['all alike', () => 0, () => 0],
    ['all alike but their ends', (n) => (n % (ROWS - 1) ? 0 : 1), (n) => (n % (ROWS - 1) ? 0 : 2)],
    ['nothing in common', (n) => n, (n) => -1 - n],
    ['one turned around', (n) => n, (n) => ROWS - n],
    ['a few texts in disorder', (n) => (n * 7919) % 13, (n) => (n * 104_729) % 17],
    ['many texts twice', (n) => n % (ROWS / 2), (n) => (n * 31) % (ROWS / 2)],
  ];
  it.each(shapes)('[RC4] reads its elements a bounded number of times: %s', (_name, a, b) => {
    const [left, right] = [a, b].map((of) => counted(Array.from({ length: ROWS }, (_, n) => of(n))));
    align(left!.list, right!.list);
    expect(left!.reads() + right!.reads()).toBeLessThan(150 * ROWS); // Each with each would be 36,000 times.
  });
});
