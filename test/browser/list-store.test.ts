/** The list of the page as pure functions: what it knows, and line by line what it shows. */
import { describe, expect, test } from 'vitest';

// The page is plain JavaScript: its modules have no types to import.
// biome-ignore-start lint/suspicious/noExplicitAny: the state of the page is looked at as it is.
type State = any;
interface Pure {
  emptyList(): State;
  reduceList(list: State, action: object): State;
  createGrouping(now: number, locale: string): (seconds: number) => { key: string; title: string };
  layOut(list: State, groupOf: (seconds: number) => object): { lines: any[]; pending: number; total: number };
  inSight(view: object): { first: number; end: number };
  lineAfter(lines: any[], from: number, key: string, page: number): number | null;
  markWords(text: string, q: string): { text: string; isMarked: boolean }[];
  plainWords(markdown: string): string;
  isUnread(seen: object, session: object): boolean;
  afterSeeing(seen: object, session: object): any;
}
// biome-ignore-end lint/suspicious/noExplicitAny: as above.
const load = (name: string) => import(new URL(`../../static/${name}.js`, import.meta.url).href);
const {
  emptyList,
  reduceList,
  createGrouping,
  layOut,
  inSight,
  lineAfter,
  markWords,
  plainWords,
  isUnread,
  afterSeeing,
}: Pure = Object.assign({}, ...(await Promise.all(['list-store', 'list-layout', 'snippet', 'unread'].map(load))));

const seconds = (year: number, month: number, day: number, hour = 12) =>
  new Date(year, month - 1, day, hour).getTime() / 1000;
const NOW = seconds(2026, 3, 15);

const session = (id: string, at: number, more: object = {}) => ({
  session_id: id,
  title: `title of ${id}`,
  status: 'idle',
  project_id: null,
  pinned: false,
  archived: false,
  last_activity_at: at,
  last_message_at: at,
  ...more,
});
type Session = ReturnType<typeof session>;
const changed = (one: Session, reason = 'changed') => ({
  type: 'sessions.changed',
  session_id: one.session_id,
  session: one,
  reason,
});
const ids = (list: State): string => list.sessions.map((one: Session) => one.session_id).join(' ');

/** A list with sessions that the server gave for its view. */
function loaded(
  sessions: Session[],
  { next = null as string | null, total = sessions.length, list = emptyList() } = {},
) {
  const asked = reduceList(list, { type: 'list.requested' });
  return reduceList(asked, { type: 'list.loaded', view: asked.view, sessions, next_cursor: next, total });
}
const shown = (list: State) =>
  layOut(list, createGrouping(NOW, 'en')).lines.map((line) =>
    line === null ? '' : line.kind === 'heading' ? `# ${line.title}` : line.key,
  );

describe('what the list knows', () => {
  test('[UI6] a page of the list does not undo what was told while it was on its way', () => {
    const old = session('a', 5, { title: 'old' });
    const asked = reduceList(emptyList(), { type: 'list.requested' });
    const told = [
      changed(session('a', 5, { title: 'new' })),
      { type: 'sessions.changed', session_id: 'b', reason: 'deleted' },
    ].reduce(reduceList, asked);
    const page = { sessions: [session('b', 9), old], next_cursor: null, total: 2 };
    const list = reduceList(told, { type: 'list.loaded', view: told.view, ...page });
    expect(list.sessions.map((one: Session) => one.title)).toEqual(['new']);
  });

  test('[UI8] what changes moves to its place: pinned first, then the newest', () => {
    let list = loaded([session('a', 30), session('b', 20), session('c', 10)]);
    list = reduceList(list, changed(session('c', 40)));
    expect(ids(list)).toBe('c a b');
    list = reduceList(list, changed(session('b', 20, { pinned: true })));
    expect(ids(list)).toBe('b c a');
    list = reduceList(list, changed(session('d', 35), 'created'));
    expect(ids(list)).toBe('b c d a');
    expect(list.total).toBe(4);
  });

  test('[UI8] what does not fit the view leaves it, what does joins it', () => {
    const project = { type: 'list.view', view: { project: 'p' } };
    const projects = { type: 'projects.loaded', projects: [{ project_id: 'p', name: 'P', color: null }] };
    const inProject = session('a', 30, { project_id: 'p' });
    const list = [projects, project].reduce(reduceList, loaded([inProject, session('b', 20)]));
    expect(ids(list)).toBe('a');
    const both = reduceList(list, changed(session('b', 20, { project_id: 'p' })));
    expect(ids(both)).toBe('a b');
    expect(ids(reduceList(both, changed(session('a', 30, { project_id: 'p', archived: true }))))).toBe('b');
    const gone = reduceList(both, { type: 'projects.loaded', projects: [] });
    expect(gone.view.project).toBeNull();
  });

  test('[UI8] an answer to a view that was left is dropped', () => {
    const first = reduceList(emptyList(), { type: 'list.requested' });
    const second = reduceList(first, { type: 'list.view', view: { q: 'pears' } });
    const late = { type: 'list.loaded', view: first.view, sessions: [session('a', 1)], next_cursor: null, total: 1 };
    expect(reduceList(second, late)).toBe(second);
    expect(reduceList(second, { type: 'hits.loaded', view: first.view, hits: [] })).toBe(second);
  });

  test('[UI8] a session behind the loaded part waits there; the rest is counted', () => {
    const list = loaded([session('a', 30), session('b', 20)], { next: 'cursor', total: 500 });
    const more = reduceList(list, changed(session('old', 3)));
    expect(ids(more)).toBe('a b');
    expect(layOut(more, createGrouping(NOW, 'en'))).toMatchObject({ pending: 498, total: 500 });
  });
});

describe('what the list shows', () => {
  test('[UI8] conversations stand under the day they belong to, and months have their names', () => {
    const list = loaded([
      session('pin', seconds(2020, 1, 1), { pinned: true }),
      session('ahead', NOW + 999),
      session('morning', seconds(2026, 3, 15, 0)),
      session('last night', seconds(2026, 3, 14, 23)),
      session('days ago', seconds(2026, 3, 8, 0)),
      session('just before', seconds(2026, 3, 7, 23)),
      session('in march', seconds(2026, 3, 1, 0)),
      session('in february', seconds(2026, 2, 28, 23)),
      session('last year', seconds(2025, 12, 31, 23)),
    ]);
    expect(shown(list)).toEqual([
      ...['# Pinned', 'pin'],
      ...['# Today', 'ahead', 'morning'],
      ...['# Yesterday', 'last night'],
      ...['# Previous 7 days', 'days ago'],
      ...['# March', 'just before', 'in march'],
      ...['# February', 'in february'],
      ...['# December 2025', 'last year'],
    ]);
  });

  test('[UI8] what is being deleted is not shown, and is back when that is undone', () => {
    const list = loaded([session('a', NOW), session('b', NOW)]);
    const removing = reduceList(list, { type: 'list.removing', id: 'a' });
    expect(shown(removing)).toEqual(['# Today', 'b']);
    expect(layOut(removing, createGrouping(NOW, 'en')).total).toBe(1);
    expect(shown(reduceList(removing, { type: 'list.kept', id: 'a' }))).toEqual(['# Today', 'a', 'b']);
  });

  test('[UI8] a search shows some titles, and then each message in two lines; or all titles', () => {
    const searching = reduceList(emptyList(), { type: 'list.view', view: { q: 'title' } });
    const found = loaded(
      Array.from({ length: 8 }, (_, at) => session(`s${at}`, 90 - at)),
      { list: searching },
    );
    const hits = [{ session_id: 'x', message_id: 'm.1' }];
    const list = reduceList(found, { type: 'hits.loaded', view: found.view, hits });
    expect(shown(list)).toEqual(['# Titles', 's0', 's1', 's2', 's3', 's4', 'expand', '# In messages', 'x/m.1', '']);
    const all = shown(reduceList(list, { type: 'list.expand' }));
    expect(all).toHaveLength(10);
    expect(all.slice(0, 3)).toEqual(['# Titles', 'expand', 's0']);
  });

  test('[UI9] of ten thousand lines only those in sight and some around them are drawn', () => {
    const view = { count: 10_000, lineHeight: 40, height: 600, around: 5 };
    expect(inSight({ ...view, top: 0 })).toEqual({ first: 0, end: 20 });
    expect(inSight({ ...view, top: 4010 })).toEqual({ first: 95, end: 121 });
    expect(inSight({ ...view, top: 9_999_999 })).toEqual({ first: 10_000, end: 10_000 });
    expect(inSight({ ...view, count: 3, top: -20 })).toEqual({ first: 0, end: 3 });
  });

  test('[UI9] the arrows go from conversation to conversation, over the names of groups', () => {
    const [h, s, hit] = [{ kind: 'heading' }, { kind: 'session' }, { kind: 'hit' }];
    const lines = [h, s, s, h, s, hit, null];
    const from = (at: number, key: string) => lineAfter(lines, at, key, 2);
    expect(from(2, 'ArrowDown')).toBe(4);
    expect(from(4, 'ArrowUp')).toBe(2);
    expect(from(1, 'ArrowUp')).toBeNull();
    expect(from(5, 'ArrowDown')).toBeNull();
    expect([from(4, 'Home'), from(1, 'End')]).toEqual([1, 5]);
    expect([from(1, 'PageDown'), from(5, 'PageUp')]).toEqual([2, 4]);
    expect(from(1, 'x')).toBeNull();
  });

  test('[UI8] the words of a search are marked where a word begins with them', () => {
    const marked = markWords('Pears, spears and a Pear.', 'pear pears');
    expect(marked.filter((piece) => piece.isMarked).map((piece) => piece.text)).toEqual(['Pears', 'Pear']);
    expect(marked.map((piece) => piece.text).join('')).toBe('Pears, spears and a Pear.');
    expect(markWords('a.b', '.*')).toEqual([{ text: 'a.b', isMarked: false }]);
  });

  test('[UI8] of a message that was found the words are shown, without the signs of Markdown', () => {
    const shown: [piece: string, words: string][] = [
      ['…bold** rest and **half', '…bold rest and half'],
      ['***Both*** and _low_, ~~gone~~', 'Both and low, gone'],
      ['`a *b*` and ``c ` d``', 'a *b* and c ` d'],
      ['```js\nx * y * z\n```', 'x * y * z'],
      ['see [the docs](https://example.org/a_(b) "x") or ![a map](map.png)', 'see the docs or a map'],
      ['cut [link](https://exam…', 'cut link'],
      ['## Head\n- [x] done\n> said', 'Head done said'],
      ['| a | b |\n|---|--:|\n| 1 | 2 |', 'a b 1 2'],
      ['2 * 3 * 4, snake_case_name, $x_1 + y_2$, 5 ~ 6', '2 * 3 * 4, snake_case_name, $x_1 + y_2$, 5 ~ 6'],
    ];
    for (const [piece, words] of shown) expect(plainWords(piece)).toBe(words);
    // Some texts have no words to cut them at, and signs without end.
    expect(plainWords('*_`[~'.repeat(100_000)).length).toBeLessThan(2_000);
    for (const sign of '-`*_[|~ ') {
      for (const end of ['', 'x', `x${sign}`]) expect(plainWords(sign.repeat(990) + end).length).toBeLessThan(1_000);
      expect(plainWords(`${sign.repeat(10_000)}x`).length).toBeLessThan(2_000);
    }
  });

  test('[UI8] unread is what came after the first visit and was not looked at since', () => {
    const seen = { since: 100, at: {} };
    expect(isUnread(seen, session('a', 90))).toBe(false);
    expect(isUnread(seen, session('a', 110))).toBe(true);
    expect(isUnread(seen, session('a', 110, { status: 'running' }))).toBe(false);
    const looked = afterSeeing(seen, session('a', 110));
    expect(isUnread(looked, session('a', 110))).toBe(false);
    expect(isUnread(looked, session('a', 111))).toBe(true);
    expect(afterSeeing(looked, session('a', 105))).toBe(looked);
  });

  test('[UI8] what was looked at is remembered for a bounded number of conversations', () => {
    const at = Object.fromEntries(Array.from({ length: 1000 }, (_, number) => [`s${number}`, 101 + number]));
    const many = afterSeeing({ since: 100, at }, session('one more', 1200));
    expect(Object.keys(many.at).length).toBeLessThan(1000);
    expect(isUnread(many, session('one more', 1200))).toBe(false);
    expect(isUnread(many, session('s3', 103))).toBe(false);
    expect(isUnread(many, session('later', 1601))).toBe(true);
  });
});
