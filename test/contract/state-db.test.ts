/** The connection to the state DB: how it waits, what its settings are, what its tables are called. */

import Database from 'better-sqlite3';
import { sql } from 'drizzle-orm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStateDb, type StateDb, type StateDbOptions } from '../../db/client.ts';
import { StorageTrouble, storageTroubleKind } from '../../db/storage-trouble.ts';
import { newStateFile, stateDbOptions } from '../support/state-db.ts';
import { until } from '../support/until.ts';

async function open(part: Partial<StateDbOptions> = {}): Promise<{ state: StateDb; other: Database.Database }> {
  const file = await newStateFile();
  const state = await openStateDb(stateDbOptions(file, part));
  const other = new Database(file, { timeout: 0 });
  onTestFinished(() => {
    other.close();
    state.close();
  });
  return { state, other };
}

const put = (state: StateDb, key: string): Promise<void> =>
  state.write((db) => void db.run(sql`INSERT INTO state_meta (key, value) VALUES (${key}, 'v')`));
const keys = (state: StateDb): Promise<string[]> =>
  state.read((db) => db.all<{ key: string }>(sql`SELECT key FROM state_meta ORDER BY key`).map((row) => row.key));

describe('a locked database', () => {
  it('[DB7] is waited for without blocking the event loop, and then written', async () => {
    const { state, other } = await open({ patienceMs: 10_000 });
    other.exec("BEGIN IMMEDIATE; INSERT INTO state_meta VALUES ('theirs', 'v')");
    let written = false;
    let ticks = 0;
    const ticking = setInterval(() => {
      ticks += 1;
    }, 1);
    onTestFinished(() => clearInterval(ticking));
    const writing = put(state, 'ours').then(() => {
      written = true;
    });
    await until('timers have fired many times', () => ticks >= 20);
    // Whoever only reads does not wait: it sees what was committed.
    expect(await keys(state)).toEqual([]);
    expect(written).toBe(false);
    other.exec('COMMIT');
    await writing;
    expect(await keys(state)).toEqual(['ours', 'theirs']);
  });

  it('[DB7] is tried again after 5 to 50 ms each, and refused as busy when patience is over', async () => {
    const { state, other } = await openWithClock();
    other.exec('BEGIN IMMEDIATE');
    const before = state.clock();
    await expect(put(state.db, 'x')).rejects.toMatchObject({ name: 'StorageTrouble', kind: 'busy' });
    expect(state.clock() - before).toBeGreaterThanOrEqual(1_000);
    expect(state.clock() - before).toBeLessThanOrEqual(1_050);
    expect(Math.min(...state.naps)).toBeGreaterThanOrEqual(5);
    expect(Math.max(...state.naps)).toBeLessThanOrEqual(50);
    expect(new Set(state.naps).size).toBeGreaterThan(1);
    other.exec('ROLLBACK');
    await put(state.db, 'y');
    expect(await keys(state.db)).toEqual(['y']);
  });

  it('[DB7] is not opened past the patience either', async () => {
    const file = await newStateFile();
    (await openStateDb(stateDbOptions(file))).close();
    const other = new Database(file, { timeout: 0 });
    onTestFinished(() => void other.close());
    other.pragma('locking_mode = EXCLUSIVE');
    other.exec('BEGIN EXCLUSIVE');
    other.exec("INSERT INTO state_meta VALUES ('x', 'v')");
    other.exec('COMMIT');
    const outcome = openStateDb(stateDbOptions(file, { patienceMs: 50 }));
    await expect(outcome).rejects.toMatchObject({ name: 'StorageTrouble', kind: 'busy' });
  });

  /** A state DB whose clock stands still but for its own naps. */
  async function openWithClock() {
    let clock = 0;
    const naps: number[] = [];
    const { state, other } = await open({
      patienceMs: 1_000,
      monotonic: () => clock,
      random: () => ((naps.length * 7) % 10) / 10,
      sleep: async (ms) => {
        naps.push(ms);
        clock += ms;
      },
    });
    return { state: { db: state, clock: () => clock, naps }, other };
  }
});

describe('a transaction', () => {
  it('[DB7] that throws leaves nothing, and its error comes up as it is', async () => {
    const { state } = await open();
    const bug = new TypeError('a bug');
    const outcome = state.write((db) => {
      db.run(sql`INSERT INTO state_meta (key, value) VALUES ('x', 'v')`);
      throw bug;
    });
    await expect(outcome).rejects.toBe(bug);
    expect(await keys(state)).toEqual([]);
    await put(state, 'y');
    expect(await keys(state)).toEqual(['y']);
  });

  it('[DB7] on a full disk is storage trouble of that kind, and leaves nothing', async () => {
    const { state } = await open();
    await put(state, 'before');
    const pages = await state.read((db) => db.get<{ page_count: number }>(sql`PRAGMA page_count`));
    await state.read((db) => db.get(sql.raw(`PRAGMA max_page_count = ${pages.page_count + 2}`)));
    const big = state.write((db) => {
      db.run(sql`INSERT INTO state_meta (key, value) VALUES ('small', 'v')`);
      db.run(sql`INSERT INTO state_meta (key, value) VALUES ('big', ${'x'.repeat(100_000)})`);
    });
    await expect(big).rejects.toMatchObject({ name: 'StorageTrouble', kind: 'disk_full' });
    expect(await keys(state)).toEqual(['before']);
    await state.read((db) => db.get(sql.raw('PRAGMA max_page_count = 1000000')));
    await put(state, 'after');
    expect(await keys(state)).toEqual(['after', 'before']);
  });

  it('[DB7] is not alone in waiting: writes that come together all succeed, in their order', async () => {
    const { state } = await open();
    await Promise.all(Array.from({ length: 20 }, (_, n) => put(state, `k${n}`)));
    const order = await state.read((db) => db.all<{ key: string }>(sql`SELECT key FROM state_meta ORDER BY rowid`));
    expect(order.map((row) => row.key)).toEqual(Array.from({ length: 20 }, (_, n) => `k${n}`));
  });
});

it('[DB7] trouble is told by the codes of the system, at any depth, and never by a message', () => {
  const coded = (code: string, cause?: unknown): Error => Object.assign(new Error('x', { cause }), { code });
  const table: [error: unknown, kind: string | null][] = [
    [coded('SQLITE_BUSY'), 'busy'],
    [coded('SQLITE_BUSY_SNAPSHOT'), 'busy'],
    [coded('SQLITE_LOCKED'), 'busy'],
    [coded('SQLITE_FULL'), 'disk_full'],
    [coded('SQLITE_IOERR_WRITE'), 'unavailable'],
    [coded('SQLITE_CORRUPT'), 'unavailable'],
    [coded('ENOSPC'), 'disk_full'],
    [coded('EROFS'), 'unavailable'],
    [coded('SQLITE_CONSTRAINT_UNIQUE'), null],
    [coded('SQLITE_ERROR'), null],
    [coded('ENOENT'), null],
    [new Error('database is locked'), null],
    [new Error('wrapped', { cause: coded('SQLITE_BUSY') }), 'busy'],
    [coded('OUTER', new Error('middle', { cause: coded('ENOSPC') })), 'disk_full'],
    [new StorageTrouble('busy', null), 'busy'],
    ['SQLITE_BUSY', null],
    [null, null],
  ];
  for (const [error, kind] of table) expect(storageTroubleKind(error), String(error)).toBe(kind);
});

describe('the settings and the schema', () => {
  it('[DB7] commits are durable and references are kept', async () => {
    const { state } = await open();
    const pragma = (name: string) =>
      state.read((db) => Object.values(db.get<Record<string, unknown>>(sql.raw(`PRAGMA ${name}`)) ?? {})[0]);
    expect(await pragma('journal_mode')).toBe('wal');
    expect(await pragma('synchronous')).toBe(2);
    expect(await pragma('foreign_keys')).toBe(1);
    expect(await pragma('busy_timeout')).toBe(0);
    const orphan = state.write(
      (db) => void db.run(sql`INSERT INTO messages (session_id, role, timestamp) VALUES ('nobody', 'user', 1)`),
    );
    await expect(orphan).rejects.toThrow();
  });

  /** Columns with the names and types of a Hermes state.db, as `name type` and `!` for not null. */
  const HERMES = {
    sessions: `id text!, source text!, model text, parent_session_id text, started_at real!, ended_at real,
      end_reason text, message_count integer!, tool_call_count integer!, input_tokens integer!,
      output_tokens integer!, cache_read_tokens integer!, reasoning_tokens integer!, cwd text,
      estimated_cost_usd real, title text, title_source text, rewind_count integer!, archived integer!,
      pinned integer!, hidden integer!, last_activity_at real, runtime_revision integer!, runtime_generation integer!`,
    messages: `id integer!, session_id text!, role text!, content text, tool_call_id text, tool_calls text,
      tool_name text, timestamp real!, token_count integer, finish_reason text, reasoning text, active integer!,
      compacted integer!, display_kind text`,
  };

  it('[DB6] sessions and messages have the columns of a Hermes state.db under their names and types', async () => {
    const { other } = await open();
    for (const [table, columns] of Object.entries(HERMES)) {
      const info = other.pragma(`table_info(${table})`) as { name: string; type: string; notnull: number }[];
      const ours = info.map(({ name, type, notnull }) => `${name} ${type.toLowerCase()}${notnull ? '!' : ''}`);
      expect(ours).toEqual(expect.arrayContaining(columns.split(',').map((column) => column.trim())));
    }
  });
});
