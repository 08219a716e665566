/** Reconcile of long sessions: what one costs grows with its rows, whatever they say. Counted is what the code does. */
import { afterAll, describe, expect, it } from 'vitest';
import type { RawRow } from '../../server/core/reconcile/row.ts';
import { countWork } from '../support/count-work.ts';

const work = countWork('/server/core/reconcile/');
afterAll(() => work.stop());
const { result } = await import('./reconcile-rows.ts');

const ROWS = 36_000;
/** Short enough to be done at once, and long enough that what is done once for all rows counts for little. */
const FEW = 3_000;
/** By how much the work for one row may grow with the number of rows: twelve times would be each with each. */
const GROWTH = 1.3;

type Stores = [sidecar: RawRow[], state: RawRow[]];

const made = (count: number, text: (n: number) => string, time: (n: number) => number): RawRow[] =>
  Array.from({ length: count }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content: text(n),
    timestamp: time(n),
  }));
const prompts = (rows: RawRow[]): RawRow[] => rows.map((row) => ({ ...row, role: 'user' }));
const later = (n: number): number => n + 2 * ROWS + 0.5;
const soon = (n: number): number => n + 1;
const same = (n: number): string => `text ${n}`;
const go = (): string => 'go';

/** Reconciles many rows, and few of the same kind: the work for one row is about the same. */
function linear(stores: (count: number) => Stores) {
  const few = stores(FEW);
  const many = stores(ROWS);
  const least = work.of(() => result(...few)) / FEW;
  let reconciled = result([], []);
  const most = work.of(() => {
    reconciled = result(...many);
  });
  expect(least).toBeGreaterThan(1); // Something was counted.
  expect(most / ROWS).toBeLessThan(least * GROWTH);
  return reconciled;
}

describe(`${ROWS} rows against as many`, () => {
  const unchanged: [name: string, stores: (count: number) => Stores][] = [
    ['equal', (count) => [made(count, same, soon), made(count, same, soon)]],
    ['all under new times', (count) => [made(count, same, soon), made(count, same, later)]],
    ['every text the same', (count) => [made(count, go, soon), made(count, go, soon)]],
    ['every text the same, under new times', (count) => [made(count, go, soon), made(count, go, later)]],
    ['every text the same, in one second', (count) => [made(count, go, () => 5), made(count, go, () => 5.5)]],
    [
      'the state DB has all of it twice',
      (count) => [made(count, same, soon), [...made(count, same, soon), ...made(count, same, later)]],
    ],
  ];
  it.each(unchanged)('[RC4] change nothing: %s', { timeout: 60_000 }, (_name, stores) => {
    expect(linear(stores)).toMatchObject({ changed: false, replaced: [] });
  });

  it('[RC6] all find their place when each is new', { timeout: 60_000 }, () => {
    const other = (count: number) =>
      prompts(
        made(
          count,
          (n) => `other ${n}`,
          (n) => n + 1.5,
        ),
      );
    const { rows } = linear((count) => [made(count, same, soon), other(count)]);
    expect(rows).toHaveLength(2 * ROWS);
    const texts = ['text 0', 'other 0', 'text 1', 'other 1', 'text 2'];
    expect(rows.slice(0, 5).map(({ row }) => row.content)).toEqual(texts);
  });

  it('[RC6] of one second all find their place', { timeout: 60_000 }, () => {
    const tail: RawRow = { role: 'assistant', content: 'tail', timestamp: 9 };
    const second = (text: (n: number) => string) => (count: number) => made(count, text, () => 5);
    const { rows } = linear((count) => [[...second(() => 'a')(count), tail], prompts(second(same)(count))]);
    expect(rows).toHaveLength(2 * ROWS + 1);
    expect(rows.at(-1)!.row).toBe(tail);
  });
});
