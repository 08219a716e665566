/** Contract of the session list: order, pages, filters. */
import { expect, it } from 'vitest';
import type { SessionListCursor, SessionListQuery, SessionRow, Stores } from '../../db/stores.ts';
import { lease, newAdmission, newSession, type OpenStores, OTHER, openBench, runId, SESSION } from './stores-bench.ts';

const QUERY: SessionListQuery = { limit: 1_000, cursor: null, archived: 'no', q: null, project_id: null, source: null };

async function ids(stores: Stores, query: Partial<SessionListQuery> = {}): Promise<string[]> {
  const { sessions, total } = await stores.sessions.list({ ...QUERY, ...query });
  expect(total).toBe(sessions.length);
  return sessions.map((session) => session.session_id);
}

/** All pages of a list, with the cursor through JSON, as a client brings it back. */
async function pages(stores: Stores, query: Partial<SessionListQuery>): Promise<SessionRow[][]> {
  const found: SessionRow[][] = [];
  for (let cursor: SessionListCursor | null = null; ; ) {
    const page: Awaited<ReturnType<Stores['sessions']['list']>> = await stores.sessions.list({
      ...QUERY,
      ...query,
      cursor,
    });
    found.push(page.sessions);
    if (!page.next) return found;
    cursor = JSON.parse(JSON.stringify(page.next)) as SessionListCursor;
  }
}

export function listContract(open: OpenStores): void {
  it('[DB2] pinned sessions come first, then the newest activity, then the greater id', async () => {
    const { stores } = await openBench(open);
    const create = (id: string, now: number) => stores.sessions.create(newSession(id, { now }));
    await create('s1', 1_000.25);
    await create('s2', 1_000.5);
    await create('s3', 1_000.25);
    await create('s4', 900);
    await create('s5', 1_100);
    expect(await ids(stores)).toEqual(['s5', 's2', 's3', 's1', 's4']);
    await stores.sessions.patch('s4', { pinned: true }, { now: 2_000, revision: null });
    expect(await ids(stores)).toEqual(['s4', 's5', 's2', 's3', 's1']);
    // A prompt is activity; a title or a draft is none.
    await stores.sessions.patch('s1', { title: 'x', draft: 'y' }, { now: 3_000, revision: null });
    expect(await ids(stores)).toEqual(['s4', 's5', 's2', 's3', 's1']);
    await stores.admissions.admit(newAdmission(1, { session_id: 's1', now: 2_000 }), { maxQueued: 9, lease: lease() });
    expect(await ids(stores)).toEqual(['s4', 's1', 's5', 's2', 's3']);
    await stores.admissions.admit(newAdmission(2, { session_id: 's3', now: 2_000.125, run_id: runId(8) }), {
      maxQueued: 9,
      lease: lease(),
    });
    await stores.admissions.claim('s1', 'admission-1', { epoch: 1, now: 2_001 });
    expect(await ids(stores)).toEqual(['s4', 's1', 's3', 's5', 's2']);
    const { sessions } = await stores.sessions.list(QUERY);
    expect(sessions.map((session) => session.open.map((row) => row.status))).toEqual([
      [],
      ['started'],
      ['queued'],
      [],
      [],
    ]);
  });

  it('[DB2] pages of every size give the whole list without gap or repeat', async () => {
    const { stores } = await openBench(open);
    for (let n = 0; n < 23; n += 1) {
      // Many ties in the activity, so that pages end inside of them; times with fractions, as a clock gives them.
      const now = 1_700_000_000.123 + (n % 4);
      await stores.sessions.create(newSession(`s${(n * 7) % 23}`, { now }));
      if (n % 5 === 0) await stores.sessions.patch(`s${(n * 7) % 23}`, { pinned: true }, { now, revision: null });
    }
    const whole = await stores.sessions.list(QUERY);
    expect(whole.sessions).toHaveLength(23);
    expect(whole.next).toBeNull();
    for (let limit = 1; limit <= 24; limit += 1) {
      const found = await pages(stores, { limit });
      expect(found.flat()).toEqual(whole.sessions);
      expect(found.slice(0, -1).every((page) => page.length === limit)).toBe(true);
    }
    const first = await stores.sessions.list({ ...QUERY, limit: 5 });
    const second = await stores.sessions.list({ ...QUERY, limit: 5, cursor: first.next });
    expect([first.total, second.total]).toEqual([23, 23]);
  });

  it('[DB2] a page goes on behind its cursor when that session has gone', async () => {
    const { stores } = await openBench(open);
    for (const n of [1, 2, 3, 4]) await stores.sessions.create(newSession(`s${n}`, { now: 1_000 + n }));
    const { sessions, next } = await stores.sessions.list({ ...QUERY, limit: 2 });
    expect(sessions.map((session) => session.session_id)).toEqual(['s4', 's3']);
    await stores.sessions.remove('s3', 2_000);
    const rest = await stores.sessions.list({ ...QUERY, limit: 2, cursor: next });
    expect(rest.sessions.map((session) => session.session_id)).toEqual(['s2', 's1']);
    expect(rest).toMatchObject({ next: null, total: 3 });
  });

  it('[DB2] filters choose by archive, project and source, together', async () => {
    const { stores } = await openBench(open);
    await stores.projects.create({ project_id: 'p1', name: 'P', color: null }, 900);
    await stores.sessions.create(newSession('s1', { now: 1, source: 'cli', project_id: 'p1' }));
    await stores.sessions.create(newSession('s2', { now: 2, source: 'web', project_id: 'p1' }));
    await stores.sessions.create(newSession('s3', { now: 3, source: 'cli' }));
    await stores.sessions.create(newSession('s4', { now: 4, source: 'cli', project_id: 'p1' }));
    await stores.sessions.patch('s4', { archived: true }, { now: 5, revision: null });
    expect(await ids(stores)).toEqual(['s3', 's2', 's1']);
    expect(await ids(stores, { archived: 'yes' })).toEqual(['s4', 's3', 's2', 's1']);
    expect(await ids(stores, { archived: 'only' })).toEqual(['s4']);
    expect(await ids(stores, { project_id: 'p1' })).toEqual(['s2', 's1']);
    expect(await ids(stores, { source: 'cli' })).toEqual(['s3', 's1']);
    expect(await ids(stores, { source: 'cli', project_id: 'p1', archived: 'yes' })).toEqual(['s4', 's1']);
    expect(await ids(stores, { project_id: 'nowhere' })).toEqual([]);
    expect(await ids(stores, { source: '' })).toEqual([]);
  });

  it('[DB2] the words of q must all be in the title, without regard to case and with no sign special', async () => {
    const { stores } = await openBench(open);
    const titles = ['Garden plans 100%', 'garden_shed', "Café ÄRGER in O'Hara", 'a\\b "quoted"', null];
    for (const [n, title] of titles.entries()) {
      await stores.sessions.create(newSession(`s${n}`, { now: 100 - n, title }));
    }
    const table: [q: string, found: number[]][] = [
      ['garden', [0, 1]],
      ['GARDEN', [0, 1]],
      ['  plans   gard ', [0]],
      ['plans shed', []],
      ['%', [0]],
      ['100%', [0]],
      ['_', [1]],
      ['garden_', [1]],
      ['CAFÉ', [2]],
      ['ärger', [2]],
      ["o'hara", [2]],
      ['\\', [3]],
      ['"quoted"', [3]],
      ['a\\b', [3]],
      ['', [0, 1, 2, 3, 4]],
      ['   ', [0, 1, 2, 3, 4]],
      ['null', []],
      ['\0', []],
      ["' OR 1=1 --", []],
    ];
    for (const [q, found] of table) {
      expect(await ids(stores, { q }), q).toEqual(found.map((n) => `s${n}`));
    }
  });

  it('[DB2] a q of many or of very long words is only a q', async () => {
    const { stores } = await openBench(open);
    const words = Array.from({ length: 3_000 }, (_, n) => `w${n}`).join(' ');
    await stores.sessions.create(newSession(SESSION, { title: words }));
    await stores.sessions.create(newSession(OTHER, { title: 'short' }));
    expect(await ids(stores, { q: words })).toEqual([SESSION]);
    expect(await ids(stores, { q: 'x'.repeat(100_000) })).toEqual([]);
  });
}
