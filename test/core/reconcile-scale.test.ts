/** Reconcile of long sessions: what one costs grows with its rows, whatever they say. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { align, ascending } from '../../server/core/reconcile/align.ts';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { result } from './reconcile-rows.ts';

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

describe(`${ROWS} rows against as many`, () => {
  const made = (text: (n: number) => string, time: (n: number) => number, count = ROWS): RawRow[] =>
    Array.from({ length: count }, (_, n) => ({
      role: n % 2 ? 'assistant' : 'user',
      content: text(n),
      timestamp: time(n),
    }));
  const later = (n: number): number => n + 2 * ROWS + 0.5;
  const same = (n: number): string => `text ${n}`;
  const plain = made(same, (n) => n + 1);
  const go = made(
    () => 'go',
    (n) => n + 1,
  );

  const unchanged: [name: string, sidecar: RawRow[], state: RawRow[]][] = [
    ['equal', plain, plain],
    ['all under new times', plain, made(same, later)],
    ['every text the same', go, go],
    ['every text the same, under new times', go, made(() => 'go', later)],
    [
      'every text the same, in one second',
      made(
        () => 'go',
        () => 5,
      ),
      made(
        () => 'go',
        () => 5.5,
      ),
    ],
    ['the state DB has all of it twice', plain, [...plain, ...made(same, later)]],
  ];
  it.each(unchanged)('[RC4] change nothing: %s', { timeout: 60_000 }, (_name, sidecar, state) => {
    expect(result(sidecar, state)).toMatchObject({ changed: false, replaced: [] });
  });

  it('[RC6] all find their place when each is new', { timeout: 60_000 }, () => {
    const prompts = made(
      (n) => `other ${n}`,
      (n) => n + 1.5,
    ).map((row) => ({ ...row, role: 'user' }));
    const { rows } = result(plain, prompts);
    expect(rows).toHaveLength(2 * ROWS);
    expect(rows.slice(0, 5).map(({ row }) => row.content)).toEqual([
      'text 0',
      'other 0',
      'text 1',
      'other 1',
      'text 2',
    ]);
  });

  it('[RC6] of one second all find their place', { timeout: 60_000 }, () => {
    const tail: RawRow = { role: 'assistant', content: 'tail', timestamp: 9 };
    const prompts = made(same, () => 5).map((row) => ({ ...row, role: 'user' }));
    const { rows } = result(
      [
        ...made(
          () => 'a',
          () => 5,
        ),
        tail,
      ],
      prompts,
    );
    expect(rows).toHaveLength(2 * ROWS + 1);
    expect(rows.at(-1)!.row).toBe(tail);
  });
});
