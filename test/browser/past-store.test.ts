import { describe, expect, test } from 'vitest';

// The page is plain JavaScript: its modules have no types to import.
// biome-ignore-start lint/suspicious/noExplicitAny: the state of the page is looked at as it is.
type State = any;
// biome-ignore-end lint/suspicious/noExplicitAny: as above.
const moduleOf = (name: string): Promise<State> => import(new URL(`../../static/${name}`, import.meta.url).href);
const { initialState, reduce } = await moduleOf('store.js');
const { shownRows } = await moduleOf('past-store.js');

const ID = '20260303_130002_abcdef';
const ALL = 3_000;
const PAGE = 40;
const rowsFrom = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from) }, (_, at) => ({ id: `m${from + at}`, role: 'user', content: 'x' }));
const place = (row: { id: string }) => Number(row.id.slice(1));
const act = (state: State, type: string, more: object = {}): State => reduce(state, { type, sessionId: ID, ...more });

/** A conversation of 3,000 rows, open at its end. */
function opened(): State {
  const state = act(reduce(initialState(), { type: 'session.open', sessionId: ID }), 'rows.requested');
  return act(state, 'rows.loaded', { messages: rowsFrom(ALL - PAGE, ALL), has_more: true, revision: 1 });
}

/** What the server gives for the rows before the first one shown. */
function older(state: State): State {
  const [first] = shownRows(state.open).rows;
  const from = Math.max(0, place(first) - PAGE);
  const messages = rowsFrom(from, place(first));
  return act(state, 'older.loaded', { before: first.id, messages, has_more: from > 0 });
}

function newer(state: State, end = ALL): State {
  const last = shownRows(state.open).rows.at(-1);
  const to = Math.min(end, place(last) + 1 + PAGE);
  const messages = rowsFrom(place(last) + 1, to);
  return act(state, 'newer.loaded', { after: last.id, messages, has_more: to < end });
}

/** That the rows shown are in order without a gap; their first and last places. */
function span(state: State): [number, number] {
  const { rows } = shownRows(state.open);
  expect(rows.map(place)).toEqual(rows.map((_: unknown, at: number) => place(rows[0]) + at));
  return [place(rows[0]), place(rows.at(-1))];
}

describe('how much of a long conversation is held', () => {
  test('[UI20] reading back to the beginning and forth to the end shows every row, and never holds more than a piece', () => {
    let state = opened();
    while (shownRows(state.open).hasOlder) {
      state = older(state);
      expect(shownRows(state.open).rows.length).toBeLessThanOrEqual(800);
      span(state);
    }
    expect(span(state)[0]).toBe(0);
    expect(shownRows(state.open).hasNewer).toBe(true);
    while (shownRows(state.open).hasNewer) {
      state = newer(state);
      expect(shownRows(state.open).rows.length).toBeLessThanOrEqual(900);
      span(state);
    }
    expect(span(state)[1]).toBe(ALL - 1);
    expect(state.open).toMatchObject({ past: null, hasOlder: true });
  });

  test('[UI20] what came at the end meanwhile is there when the end is reached', () => {
    let state = act(opened(), 'past.opened', { messages: rowsFrom(2_800, 2_880), has_older: true });
    state = act({ ...state, open: { ...state.open, wanted: 2 } }, 'rows.requested');
    state = act(state, 'rows.loaded', { messages: rowsFrom(ALL - PAGE, ALL + 6), has_more: true, revision: 2 });
    expect(span(state)).toEqual([2_800, 2_879]);
    while (shownRows(state.open).hasNewer) state = newer(state, ALL + 6);
    expect(span(state)).toEqual([2_800, ALL + 5]);
  });

  test('[UI20] an answer for rows that are no longer at the edge changes nothing', () => {
    const state = older(opened());
    const late = { before: 'm2960', messages: rowsFrom(2_920, 2_960), has_more: true };
    expect(act(state, 'older.loaded', late).open).toBe(state.open);
    const away = act(state, 'past.opened', { messages: rowsFrom(100, 180), has_older: true });
    const stale = { after: 'm50', messages: rowsFrom(51, 91), has_more: true };
    expect(act(away, 'newer.loaded', stale).open).toBe(away.open);
    expect(span(act(away, 'past.left'))).toEqual([2_920, ALL - 1]);
  });

  test('[UI20] rows that are asked for again after a turn bring nothing in front of what is shown', () => {
    let state = opened();
    state = act({ ...state, open: { ...state.open, wanted: 2 } }, 'rows.requested');
    state = act(state, 'rows.loaded', { messages: rowsFrom(ALL - 198, ALL + 2), has_more: true, revision: 2 });
    expect(span(state)).toEqual([ALL - PAGE, ALL + 1]);
    expect(state.open.hasOlder).toBe(true);
  });

  test('[UI20] a conversation that grew long at its end lets its beginning go, and only there', () => {
    const long = { ...opened() };
    long.open = { ...long.open, rows: rowsFrom(0, 1_000), hasOlder: false };
    const trimmed = act(long, 'rows.trimmed');
    expect(span(trimmed)).toEqual([900, 999]);
    expect(trimmed.open.hasOlder).toBe(true);
    const away = act(long, 'past.opened', { messages: rowsFrom(0, 80), has_older: false });
    expect(act(away, 'rows.trimmed').open).toBe(away.open);
  });
});
