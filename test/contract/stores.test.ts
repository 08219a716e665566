/** The stores contract over memory and over SQLite in a real file, and what only a file with two readers can show. */
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { openStateDb } from '../../db/client.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import type { AliveProbe, Stores } from '../../db/stores.ts';
import { createMemoryStores } from '../support/memory-stores.ts';
import { holderIn, newStateFile, stateDbOptions } from '../support/state-db.ts';
import { lease, newSession, OTHER, openBench, owner, reply, runId, SESSION, settlement } from './stores-bench.ts';
import { storesContract } from './stores-contract.ts';

async function openSqlite(alive: AliveProbe, file?: string) {
  const at = file ?? (await newStateFile());
  const stores = createSqliteStores(await openStateDb(stateDbOptions(at, { patienceMs: 5_000 })), alive);
  const holder = (sessionId: string) => holderIn(at, sessionId);
  return { stores, holder, file: at, close: () => stores.close() };
}

storesContract('memory', async (alive) => {
  const stores = createMemoryStores(alive);
  return { stores, holder: stores.holder, close: () => {} };
});
storesContract('SQLite', openSqlite);

/** Two servers' stores on one file. */
async function openTwice(): Promise<[Stores, Stores, file: string]> {
  const first = await openSqlite(() => true);
  const second = await openSqlite(() => true, first.file);
  onTestFinished(() => {
    first.close();
    second.close();
  });
  return [first.stores, second.stores, first.file];
}

/** Changes the file as another program may, behind the back of the stores. */
function change(file: string, statement: string): void {
  const other = new Database(file);
  other.exec(statement);
  other.close();
}

it('[LE1] two processes that want one session: one is granted, the other is told who holds it', async () => {
  const [first, second, file] = await openTwice();
  const outcomes = await Promise.all([
    first.leases.acquire(SESSION, lease(owner(100))),
    second.leases.acquire(SESSION, lease(owner(200))),
  ]);
  expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['granted', 'not_owned']);
  expect(outcomes).toContainEqual({ kind: 'not_owned', holder: holderIn(file, SESSION) });
});

it('[RE2] the data version grows when another connection changed something, and only then', async () => {
  const [first, second] = await openTwice();
  await first.sessions.create(newSession(SESSION));
  const before = first.dataVersion();
  await first.sessions.patch(SESSION, { title: 'mine' }, { now: 2_000, revision: null });
  await second.sessions.get(SESSION);
  expect(first.dataVersion()).toBe(before);
  await second.sessions.patch(SESSION, { title: 'theirs' }, { now: 2_000, revision: null });
  expect(first.dataVersion()).toBeGreaterThan(before);
});

it('[DB4, DB2] inactive rows and hidden sessions are neither listed nor found', async () => {
  let file = '';
  const bench = await openBench(async (alive) => {
    const opened = await openSqlite(alive);
    file = opened.file;
    return opened;
  });
  const { stores, session, run } = bench;
  await session();
  await session(OTHER);
  const fence = await run(1, { text: 'oak' });
  await stores.admissions.settle(settlement(fence, { rows: [reply(1, 1, { content: 'oak' })] }));
  await run(2, { text: 'oak', session_id: OTHER });
  const found = async () => (await stores.messages.search('oak', 10)).map((hit) => hit.message_id).sort();
  expect(await found()).toEqual([`${runId(1)}.0`, `${runId(1)}.1`, `${runId(2)}.0`]);
  change(file, `UPDATE messages SET active = 0 WHERE message_id = '${runId(1)}.1'`);
  expect(await found()).toEqual([`${runId(1)}.0`, `${runId(2)}.0`]);
  expect((await stores.messages.list(SESSION)).map((row) => row.id)).toEqual([`${runId(1)}.0`]);
  change(file, `UPDATE sessions SET hidden = 1 WHERE id = '${OTHER}'`);
  expect(await found()).toEqual([`${runId(1)}.0`]);
  const query = { limit: 9, cursor: null, archived: 'yes', q: null, project_id: null, source: null } as const;
  const listed = await stores.sessions.list(query);
  expect([listed.total, listed.sessions.map((one) => one.session_id)]).toEqual([1, [SESSION]]);
});

it('[DB2] a page may be as large as the interface allows', async () => {
  const { stores, file, close } = await openSqlite(() => true);
  onTestFinished(close);
  change(
    file,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
     INSERT INTO sessions (id, source, started_at, updated_at, last_activity_at) SELECT 's' || i, 'web', i, i, i FROM n`,
  );
  const query = { cursor: null, archived: 'no', q: null, project_id: null, source: null } as const;
  const { sessions, total } = await stores.sessions.list({ ...query, limit: 100_000 });
  expect([sessions.length, total]).toEqual([40_000, 40_000]);
});
