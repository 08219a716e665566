/** Reconcile of any two lists of rows: random ones, and what two stores may have kept of one conversation. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reconcile } from '../../server/core/reconcile/reconcile.ts';
import { idOf, isMarkerRow, NO_FENCES, type RawRow } from '../../server/core/reconcile/row.ts';
import { call, rowWith } from './reconcile-rows.ts';

const RUNS = 800;
const SEED = 20240607;
const check = <T extends unknown[]>(property: fc.IPropertyWithHooks<T>) =>
  fc.assert(property, { numRuns: RUNS, seed: SEED }); // A failure prints seed, path and the smallest case.

/** Few texts and few times, so that everything collides with everything. */
const text = fc.constantFrom('go', 'yes', 'yes please', 'ok', 'done', 'a long answer', 'a long answer and more', '');
const time = fc.option(fc.constantFrom(0, 1, 1.5, 2, 3, 4, 10, 20, 20.4, 50, 90, '3', '90.0', 'never'), {
  nil: undefined,
});
const run = 'a'.repeat(32);

const row: fc.Arbitrary<RawRow> = fc
  .record({
    role: fc.constantFrom('user', 'user', 'assistant', 'assistant', 'tool'),
    content: text,
    timestamp: time,
    kind: fc.constantFrom('plain', 'plain', 'plain', 'plain', 'call', 'marker', 'partial', 'api'),
    call: fc.constantFrom('c1', 'c2'),
  })
  .map(({ kind, call: name, timestamp, ...base }): RawRow => {
    const timed = timestamp === undefined ? base : { ...base, timestamp };
    if (base.role === 'tool') return { ...timed, tool_call_id: name };
    if (kind === 'api') return { ...timed, api_content: `bytes of ${base.content}` };
    if (base.role !== 'assistant') return timed;
    if (kind === 'call') return { ...timed, tool_calls: [call(name)] };
    if (kind === 'marker') return rowWith(timed, { _error: true, type: 'interrupted' });
    return kind === 'partial' ? rowWith(timed, { _partial: true }) : timed;
  });

/** Rows under ids of ours: the same id is the same row in both stores, and no store has one twice. */
const ours: RawRow[] = ['0', '1', '2', 'm'].map((n, at) => {
  const base = { id: `${run}.${n}`, content: at === 0 ? 'go' : n, timestamp: 10 + at };
  if (n === 'm') return { ...base, role: 'assistant', error: { code: 'interrupted' } } as RawRow;
  return { ...base, role: n === '0' ? 'user' : 'assistant' };
});
/** Rows without ids with some of ours among them, in their order. */
const mixed = (base: fc.Arbitrary<RawRow>): fc.Arbitrary<RawRow[]> =>
  fc.tuple(fc.array(base, { maxLength: 9 }), fc.subarray(ours), fc.nat()).map(([plain, some, at]) => {
    return plain.toSpliced(at % (plain.length + 1), 0, ...some);
  });
const sidecarRows = mixed(row);
/** A state DB times its rows; a sidecar may not. */
const timedRow = fc
  .tuple(
    row.filter((one) => !isMarkerRow(one)),
    fc.constantFrom(1, 1.5, 2, 3, 4, 10, 20, 20.4, 50, 90),
  )
  .map(([one, timestamp]) => (one.timestamp ? one : { ...one, timestamp }));
const stateRows = mixed(timedRow);
const fences = fc.oneof(
  { weight: 3, arbitrary: fc.constant(NO_FENCES) },
  fc.record({ watermark: fc.constantFrom(0, 2, 10), boundary: fc.constantFrom(null, 0, 2, 10) }),
);

describe('any two lists of rows', { timeout: 60_000 }, () => {
  it('[RC1] reconcile is deterministic, and a second time changes nothing', () => {
    check(
      fc.property(sidecarRows, stateRows, fences, (sidecar, state, edit) => {
        const input = { sidecar, state, fences: edit, liveRunId: null };
        const before = JSON.stringify(input);
        const first = reconcile(input);
        expect(reconcile(input)).toEqual(first);
        expect(JSON.stringify(input)).toBe(before);
        const rows = first.rows.map((placed) => placed.row);
        const again = reconcile({ ...input, sidecar: rows });
        expect(again.rows.map((placed) => placed.row)).toEqual(rows);
        expect(again).toMatchObject({ changed: false, replaced: [] });
      }),
    );
  });

  it('[RC1] every row of the sidecar stays, in its order and as the same object, but for markers that gave way', () => {
    check(
      fc.property(sidecarRows, stateRows, fences, (sidecar, state, edit) => {
        const { rows, replaced } = reconcile({ sidecar, state, fences: edit, liveRunId: null });
        const stayed = rows.filter(({ source }) => source === 'sidecar');
        expect(stayed.map(({ index }) => index)).toEqual([...sidecar.keys()].filter((at) => !replaced.includes(at)));
        for (const { row: one, index } of stayed)
          if (one !== sidecar[index]) expect(one).toMatchObject(sidecar[index]!);
        for (const at of replaced) expect(isMarkerRow(sidecar[at]!)).toBe(true);
      }),
    );
  });

  it('[RC2] a row under an id of ours is there exactly once, whoever has it, unless it is a marker that gave way', () => {
    check(
      fc.property(sidecarRows, stateRows, fences, (sidecar, state, edit) => {
        const { rows } = reconcile({ sidecar, state, fences: edit, liveRunId: null });
        for (const one of [...sidecar, ...state]) {
          const id = idOf(one);
          if (id === null || isMarkerRow(one)) continue;
          const under = rows.filter((placed) => {
            const twin =
              placed.twin === null ? null : placed.source === 'sidecar' ? state[placed.twin] : sidecar[placed.twin];
            return idOf(placed.row) === id || (twin && idOf(twin) === id);
          });
          expect(under).toHaveLength(1);
        }
      }),
    );
  });

  it('[RC4] twins are mutual: no row is taken for two', () => {
    check(
      fc.property(sidecarRows, stateRows, (sidecar, state) => {
        const { rows } = reconcile({ sidecar, state, fences: NO_FENCES, liveRunId: null });
        const used = rows.flatMap(({ source, index, twin }) =>
          source === 'state' ? [index] : twin === null ? [] : [twin],
        );
        expect(new Set(used).size).toBe(used.length);
      }),
    );
  });
});

describe('a conversation of which each store kept a part', { timeout: 60_000 }, () => {
  /** Runs of ours: a prompt and its output, in the order in which they happened. Texts repeat, for people repeat them. */
  const truth = fc
    .array(fc.tuple(fc.constantFrom('go', 'yes', 'go on'), fc.nat({ max: 3 })), { minLength: 1, maxLength: 6 })
    .map((turns) =>
      turns.flatMap(([prompt, outputs], at): RawRow[] => {
        const id = (n: number): string => `${String(at).padStart(32, 'f')}.${n}`;
        const output = Array.from({ length: outputs }, (_, n) => ({ role: 'assistant', content: 'ok', id: id(n + 1) }));
        return [{ role: 'user', content: prompt, id: id(0) }, ...output].map((one, n) => ({
          ...one,
          timestamp: at * 10 + n + 1,
        }));
      }),
    );
  const reconciled = (sidecar: readonly RawRow[], state: readonly RawRow[]) =>
    reconcile({ sidecar, state, fences: NO_FENCES, liveRunId: null }).rows.map((placed) => placed.row);

  it('[RC2] comes back whole from a sidecar that lost any rows and a state DB that wrote some twice', () => {
    const kept = truth.chain((all) => fc.tuple(fc.constant(all), fc.subarray(all), fc.subarray(all)));
    check(
      fc.property(kept, ([all, some, twice]) => {
        const state = all.flatMap((one) => (twice.includes(one) ? [one, { ...one }] : [one]));
        expect(reconciled(some, state)).toEqual(all);
      }),
    );
  });

  it('[RC2] stays whole in the sidecar, whatever the state DB has lost', () => {
    const kept = truth.chain((all) => fc.tuple(fc.constant(all), fc.subarray(all)));
    check(
      fc.property(kept, ([all, some]) => {
        expect(reconciled(all, some)).toEqual(all);
      }),
    );
  });

  it('[RC2] comes back whole when the sidecar is old and the state DB lost rows that the sidecar has', () => {
    const kept = truth.chain((all) => {
      const old = fc.nat({ max: all.length }).map((length) => all.slice(0, length));
      return fc.tuple(
        fc.constant(all),
        old.chain((some) => fc.tuple(fc.constant(some), fc.subarray(some.slice(0, -1)))),
      );
    });
    check(
      fc.property(kept, ([all, [old, lost]]) => {
        expect(
          reconciled(
            old,
            all.filter((one) => !lost.includes(one)),
          ),
        ).toEqual(all); // The last of the old is in both.
      }),
    );
  });

  it('[RC5] without ids and under new times adds nothing that is there, and all turns behind it', () => {
    const distinct = fc.uniqueArray(fc.string({ minLength: 8, maxLength: 8 }), { minLength: 4, maxLength: 12 });
    check(
      fc.property(distinct, fc.nat(), (texts, at) => {
        const all = texts.flatMap((said, n): RawRow[] => [
          { role: 'user', content: `ask ${said}`, timestamp: n * 10 + 1 },
          { role: 'assistant', content: `say ${said}`, timestamp: n * 10 + 2 },
        ]);
        const old = all.slice(0, 4 + 2 * (at % (texts.length - 1)));
        const anew = all.map((one, n) => ({ ...one, timestamp: 1000.5 + n }));
        const contents = reconciled(old, anew).map((one) => one.content);
        expect(contents).toEqual(all.map((one) => one.content));
      }),
    );
  });
});
