/** The kept counter of the list: as exact as counting, whoever changed what. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStateDb, type StateDb } from '../../db/client.ts';
import { sessions } from '../../db/schema.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import type { SessionListQuery } from '../../db/stores.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { newStateFile, stateDbOptions } from '../support/state-db.ts';
import { newSession } from './stores-bench.ts';

const MIGRATIONS = path.join(import.meta.dirname, '../../db/migrations');
const QUERY: SessionListQuery = { limit: 1, cursor: null, archived: 'no', q: null, project_id: null, source: null };

async function open(file: string): Promise<StateDb> {
  const state = await openStateDb(stateDbOptions(file, { patienceMs: 5_000 }));
  onTestFinished(() => state.close());
  return state;
}

/** A connection as another program has it, which knows nothing of any counter. */
function openRaw(file: string): Database.Database {
  const raw = new Database(file, { timeout: 5_000 });
  onTestFinished(() => void raw.close());
  return raw;
}

/** What the list says, and what is there. */
async function totals(state: StateDb, raw: Database.Database): Promise<{ listed: number[]; counted: unknown[] }> {
  const { sessions: store } = createSqliteStores(state, () => true);
  const listed: number[] = [];
  const counted: unknown[] = [];
  for (const archived of ['no', 'only', 'yes'] as const) {
    listed.push((await store.list({ ...QUERY, archived })).total);
    const where = { no: 'AND archived = 0', only: 'AND archived = 1', yes: '' }[archived];
    counted.push(raw.prepare(`SELECT count(*) FROM sessions WHERE hidden = 0 ${where}`).pluck().get());
  }
  return { listed, counted };
}

describe('the total of the list', () => {
  it('[DB2] is exact after whatever two processes and another program do', async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
    const file = await newStateFile();
    const states = [await open(file), await open(file)];
    const raw = openRaw(file);
    const columns = '(id, source, started_at, updated_at, archived, hidden)';
    const put = raw.prepare(
      `INSERT INTO sessions ${columns} VALUES (?, 'cli', 1, 1, ?, ?)
       ON CONFLICT (id) DO UPDATE SET archived = excluded.archived, hidden = excluded.hidden`,
    );
    const keep = raw.prepare(`INSERT OR IGNORE INTO sessions ${columns} VALUES (?, 'cli', 1, 1, ?, ?)`);
    for (let step = 0; step < 300; step += 1) {
      const id = `s${Math.floor(random() * 12)}`;
      const store = createSqliteStores(pick(states), () => true).sessions;
      const flag = pick([0, 1]);
      const act = pick(['create', 'archive', 'remove', 'title', 'put', 'keep', 'hide', 'delete']);
      if (act === 'create') await store.create(newSession(`${id}.${step}`, { now: step }));
      if (act === 'archive') await store.patch(id, { archived: flag === 1 }, { now: step, revision: null });
      if (act === 'title') await store.patch(id, { title: `${step}` }, { now: step, revision: null });
      if (act === 'remove') await store.remove(id, step);
      if (act === 'put') put.run(id, flag, pick([0, 1]));
      if (act === 'keep') keep.run(id, flag, pick([0, 1]));
      if (act === 'hide') raw.prepare('UPDATE sessions SET hidden = ? WHERE id = ?').run(flag, id);
      if (act === 'delete') raw.prepare('DELETE FROM sessions WHERE id LIKE ?').run(`${id}.%`);
      const { listed, counted } = await totals(pick(states), raw);
      expect(listed, `seed ${seed}, step ${step}: ${act} ${id}`).toEqual(counted);
    }
  });

  it('[DB2] is what it was when a change is rolled back', async () => {
    const file = await newStateFile();
    const state = await open(file);
    await createSqliteStores(state, () => true).sessions.create(newSession('s1'));
    const failing = state.write((db) => {
      db.delete(sessions).run();
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect((await totals(state, openRaw(file))).listed).toEqual([1, 0, 1]);
  });

  it('[DB6] counts what an older database holds', async () => {
    const file = await newStateFile();
    const older = new Database(file);
    for (const name of ['0000_initial.sql', '0001_full_text.sql']) {
      older.exec((await readFile(path.join(MIGRATIONS, name), 'utf8')).replaceAll('--> statement-breakpoint', ''));
    }
    older.exec(`
      CREATE TABLE schema_version (version INTEGER NOT NULL);
      INSERT INTO schema_version VALUES (1), (2);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
        INSERT INTO sessions (id, source, started_at, updated_at, archived, hidden)
          SELECT 's' || i, 'web', i, i, i % 4 = 0, i % 5 = 0 FROM n;
      PRAGMA application_id = ${0x544b4550};`);
    older.close();
    expect((await totals(await open(file), openRaw(file))).listed).toEqual([12, 4, 16]);
  });

  it('[DB2] is the same for a query with filters, which is counted', async () => {
    const file = await newStateFile();
    const { sessions: store } = createSqliteStores(await open(file), () => true);
    for (let n = 0; n < 6; n += 1) {
      await store.create(newSession(`s${n}`, { now: n, title: n % 2 ? 'Oak' : 'Elm', source: n < 4 ? 'cli' : 'web' }));
    }
    const total = async (part: Partial<SessionListQuery>) => (await store.list({ ...QUERY, ...part })).total;
    expect([await total({}), await total({ q: 'oak' }), await total({ source: 'cli' })]).toEqual([6, 3, 4]);
    expect(await total({ q: 'oak', source: 'cli', cursor: { pinned: false, activity: 3, session_id: 's3' } })).toBe(2);
  });
});
