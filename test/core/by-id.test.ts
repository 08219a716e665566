/** Reconcile of rows that all carry ids: they are matched by these alone. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_FENCES, reconcile } from '../../server/core/reconcile/reconcile.ts';
import type { Message, MessageRole } from '../../server/core/terms.ts';

interface ByIds {
  sidecar: readonly Message[];
  state: readonly Message[];
  liveRunId: string | null;
}

function reconcileById(input: ByIds) {
  const { rows, changed } = reconcile({ ...input, fences: NO_FENCES });
  return { rows: rows.map((placed) => placed.row as Message), sidecarBehind: changed };
}

const row = (id: string, part: Partial<Message> = {}): Message => ({
  id,
  role: 'assistant',
  content: `content of ${id}`,
  timestamp: 1,
  ...part,
});
const rows = (ids: string): Message[] => [...ids].map((id) => row(id));
const merged = (sidecar: string, state: string): string =>
  reconcileById({ sidecar: rows(sidecar), state: rows(state), liveRunId: null })
    .rows.map((one) => one.id)
    .join('');

describe('a row that only the state DB has', () => {
  const table: [sidecar: string, state: string, transcript: string][] = [
    ['', '', ''],
    ['abc', '', 'abc'],
    ['', 'abc', 'abc'],
    ['abc', 'abc', 'abc'],
    ['ab', 'abc', 'abc'],
    ['ac', 'abc', 'abc'],
    ['bc', 'abc', 'abc'],
    ['c', 'abc', 'abc'],
    ['a', 'abc', 'abc'],
    ['ad', 'abcd', 'abcd'],
    // Rows that only the sidecar has stay where they are; what is missing comes right behind its predecessor.
    ['axc', 'abc', 'abxc'],
    ['xac', 'abc', 'xabc'],
    ['xyz', 'abc', 'abcxyz'],
    ['xby', 'abc', 'axbcy'],
    // The sidecar's order is right, also against the state DB's.
    ['ca', 'abc', 'cab'],
    ['cba', 'abxc', 'cbxa'],
  ];

  it.each(table)('[RC2] is put where it belongs: %j and %j give %j', (sidecar, state, transcript) => {
    expect(merged(sidecar, state)).toBe(transcript);
  });

  it('[RC2] that both have appears once, as the sidecar has it', () => {
    const mine = row('a', { content: 'as the person saw it' });
    const { rows: all, sidecarBehind } = reconcileById({ sidecar: [mine], state: rows('a'), liveRunId: null });
    expect(all).toEqual([mine]);
    expect(sidecarBehind).toBe(false);
  });

  it('[RC2] appears once also behind a row that a damaged sidecar has twice', () => {
    expect(merged('aab', 'acb')).toBe('acab');
    expect(merged('aa', 'ab')).toBe('aba');
  });

  it('[RC2] makes the sidecar behind, and only such a row does', () => {
    const behind = (sidecar: string, state: string) =>
      reconcileById({ sidecar: rows(sidecar), state: rows(state), liveRunId: null }).sidecarBehind;
    expect([behind('', ''), behind('ab', 'ab'), behind('ab', 'a'), behind('ba', 'ab')]).toEqual(Array(4).fill(false));
    expect([behind('a', 'ab'), behind('', 'a'), behind('b', 'ab')]).toEqual(Array(3).fill(true));
  });
});

describe('the run that is live', () => {
  const live = { run_id: 'live' };
  const prompt = row('p', { ...live, role: 'user' });
  const output = [row('o1', live), row('o2', { ...live, role: 'tool' })];

  it('[RE2] shows its prompt only, whichever store has more', () => {
    const ids = (sidecar: Message[], state: Message[]) => {
      const result = reconcileById({ sidecar, state, liveRunId: 'live' });
      return [result.rows.map((one) => one.id).join(' '), result.sidecarBehind];
    };
    expect(ids([row('a'), prompt], [row('a'), prompt, ...output])).toEqual(['a p', false]);
    expect(ids([row('a')], [row('a'), prompt, ...output])).toEqual(['a p', true]);
    expect(ids([row('a'), prompt, ...output], [])).toEqual(['a p', false]);
    expect(ids([], [...output])).toEqual(['', false]);
  });

  it('[RE2] shows everything when it is no longer live', () => {
    const { rows: all } = reconcileById({ sidecar: [], state: [prompt, ...output], liveRunId: null });
    expect(all).toEqual([prompt, ...output]);
  });
});

describe('any two lists', () => {
  /** The same id is the same row in both stores: of a run that is live, of one that is done, or of another program. */
  const roles: MessageRole[] = ['user', 'assistant', 'tool'];
  const pool = [...'abcdefghi'].map((id, n) =>
    row(id, { role: roles[n % 3]!, ...(n < 3 ? { run_id: 'live' } : n < 6 ? { run_id: 'done' } : {}) }),
  );
  const list = fc.shuffledSubarray(pool).map((some) => some.map((one) => ({ ...one })));
  const liveRunId = fc.constantFrom(null, 'live');

  it('[RC1] reconcile is deterministic and idempotent, and never removes or reorders sidecar rows', () => {
    const property = fc.property(list, list, liveRunId, (sidecar, state, live) => {
      const before = JSON.stringify([sidecar, state]);
      const first = reconcileById({ sidecar, state, liveRunId: live });
      expect(reconcileById({ sidecar, state, liveRunId: live })).toEqual(first);
      expect(JSON.stringify([sidecar, state])).toBe(before);
      const again = reconcileById({ sidecar: first.rows, state, liveRunId: live });
      expect(again).toEqual({ rows: first.rows, sidecarBehind: false });
      const shown = sidecar.filter((one) => !(live && one.run_id === live && one.role !== 'user'));
      const kept = new Set(sidecar);
      expect(first.rows.filter((one) => kept.has(one))).toEqual(shown);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it('[RC2] every row of both is there once, and those of the state DB alone follow their predecessor', () => {
    const spoken = list.map((rows) => rows.filter((one) => one.role !== 'tool'));
    const property = fc.property(spoken, spoken, (sidecar, state) => {
      const { rows: all } = reconcileById({ sidecar, state, liveRunId: null });
      const ids = all.map((one) => one.id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(new Set(ids)).toEqual(new Set([...sidecar, ...state].map((one) => one.id)));
      const mine = new Set(sidecar.map((one) => one.id));
      for (const [n, one] of state.entries()) {
        if (mine.has(one.id)) continue;
        const before = state[n - 1]?.id;
        expect(ids[ids.indexOf(one.id) - 1]).toBe(before);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });
});
