/**
 * The state DB is damaged, lost or half lost: the server starts, shows every session with all that any store has of it, keeps
 * the old one, and the second start changes nothing.
 */
import { mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { problems } from '../doctor/doctor-home.ts';
import { everythingIn, type Kept, listed, sharedHome, start } from '../recovery/damaged-homes.ts';
import { serveMain, startMain } from '../support/main-process.ts';
import { until } from '../support/until.ts';

const home3 = sharedHome(3);

const ask = <T>(home: Kept, text: string): T => {
  const db = new Database(home.file('state.db'));
  try {
    return db.prepare(text).pluck().get() as T;
  } finally {
    db.close();
  }
};

const pageOf = (home: Kept, name: string): number =>
  ask<number>(home, `SELECT rootpage FROM sqlite_master WHERE name = '${name}'`);

async function overwrite(home: Kept, page: number): Promise<void> {
  const bytes = await readFile(home.file('state.db'));
  bytes.fill(0xa5, (page - 1) * 4096, page * 4096);
  await writeFile(home.file('state.db'), bytes);
}

/** Overwrites the page at which a table or an index begins. */
const breakPage = (name: string) => (home: Kept) => overwrite(home, pageOf(home, name));

const cutAt = (share: number) => async (home: Kept) => {
  const { length } = await readFile(home.file('state.db'));
  await truncate(home.file('state.db'), Math.floor(length * share));
};

/** Makes the home as a killed server may leave it: all of its rows in the WAL, none in the file. */
async function intoWal(home: Kept): Promise<void> {
  const bytes = await readFile(home.file('state.db'));
  await rm(home.file('state.db'));
  const db = new Database(home.file('state.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('wal_autocheckpoint = 0');
  db.pragma('application_id = 0x544b4550');
  const from = path.join(home.home, 'from.db');
  await writeFile(from, bytes);
  const source = new Database(from);
  const objects = source
    .prepare(
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT IN ('messages_fts_data', 'messages_fts_idx', 'messages_fts_docsize', 'messages_fts_config') AND name NOT LIKE 'sqlite_%' ORDER BY type = 'trigger', type = 'index', type = 'view' DESC, rowid",
    )
    .pluck()
    .all() as string[];
  const triggers = source.prepare("SELECT sql FROM sqlite_master WHERE type = 'trigger'").pluck().all() as string[];
  db.exec(objects.filter((sql) => !triggers.includes(sql)).join(';\n'));
  for (const table of [
    'schema_version',
    'projects',
    'sessions',
    'session_counts',
    'messages',
    'session_admissions',
    'runtime_epochs',
    'state_meta',
  ]) {
    const rows = source.prepare(`SELECT * FROM ${table}`).raw().all() as unknown[][];
    for (const row of rows) db.prepare(`INSERT INTO ${table} VALUES (${row.map(() => '?').join()})`).run(...row);
  }
  db.exec(triggers.join(';\n'));
  db.exec("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')");
  source.close();
  await rm(from);
  // What stands there before it is closed is what a kill leaves.
  const left = await Promise.all(['state.db', 'state.db-wal'].map((name) => readFile(home.file(name))));
  db.close();
  await writeFile(home.file('state.db'), left[0]!);
  await writeFile(home.file('state.db-wal'), left[1]!);
}

interface Damage {
  what: string;
  damage(home: Kept): unknown;
  /** Whether the old file is worth a copy. */
  keepsCopy?: boolean;
}

const DAMAGES: Damage[] = [
  { what: 'missing', damage: (h) => rm(h.file('state.db')), keepsCopy: false },
  { what: 'empty', damage: (h) => truncate(h.file('state.db')), keepsCopy: false },
  { what: 'of other bytes', damage: (h) => writeFile(h.file('state.db'), 'x'.repeat(9000)) },
  { what: 'one byte long', damage: (h) => writeFile(h.file('state.db'), 'S'), keepsCopy: false },
  ...[0.001, 0.1, 0.37, 0.5, 0.8].map((share) => ({ what: `cut at ${share}`, damage: cutAt(share) })),
  ...[
    'sessions',
    'messages',
    'session_admissions',
    'runtime_epochs',
    'session_counts',
    'schema_version',
    'messages_by_run',
    'messages_fts_data',
    'sessions_by_activity',
  ].map((name) => ({ what: `broken where ${name} begins`, damage: breakPage(name) })),
  {
    what: 'without its first page',
    damage: async (h) => {
      const bytes = await readFile(h.file('state.db'));
      await writeFile(h.file('state.db'), bytes.fill(0, 0, 4096));
    },
  },
  {
    what: 'a folder',
    damage: async (h) => {
      await rm(h.file('state.db'));
      await mkdir(h.file('state.db', 'within'), { recursive: true });
    },
  },
  {
    what: 'a link that leads nowhere',
    damage: async (h) => {
      await rm(h.file('state.db'));
      await symlink('/nowhere/at/all', h.file('state.db'));
    },
    keepsCopy: false,
  },
  {
    what: 'a WAL without its database',
    damage: async (h) => {
      await intoWal(h);
      await rm(h.file('state.db'));
      await rm(h.file('sessions'), { recursive: true });
    },
  },
  {
    what: 'a WAL beside an empty file',
    damage: async (h) => {
      await intoWal(h);
      await truncate(h.file('state.db'));
      await rm(h.file('sessions'), { recursive: true });
    },
  },
  {
    what: 'a WAL beside other bytes',
    damage: async (h) => {
      await intoWal(h);
      await writeFile(h.file('state.db'), 'x'.repeat(9000));
      await rm(h.file('sessions'), { recursive: true });
    },
    keepsCopy: false,
  },
  {
    what: 'missing, with a WAL that is none',
    damage: async (h) => {
      await rm(h.file('state.db'));
      await writeFile(h.file('state.db-wal'), 'y'.repeat(9000));
    },
  },
  {
    what: 'missing, with a stale shared memory',
    damage: async (h) => {
      await rm(h.file('state.db'));
      await writeFile(h.file('state.db-shm'), 'z'.repeat(32_768));
    },
    keepsCopy: false,
  },
  {
    what: 'sound, with a stale shared memory',
    damage: (h) => writeFile(h.file('state.db-shm'), 'z'.repeat(32_768)),
    keepsCopy: false,
  },
  {
    what: 'sound, with a WAL that is none',
    damage: (h) => writeFile(h.file('state.db-wal'), 'y'.repeat(9000)),
    keepsCopy: false,
  },
  {
    what: 'sound, with a folder where its WAL should be',
    damage: (h) => mkdir(h.file('state.db-wal')),
    keepsCopy: false,
  },
];

describe('a state DB that is', () => {
  it.each(DAMAGES)(
    '[RE6][RE1] $what: every session is there with its words, and the second start changes nothing',
    async ({ damage, keepsCopy = true }) => {
      const home = await home3();
      await damage(home);
      const old = await readFile(home.file('state.db')).catch(() => null);
      let after: Map<string, string> | null = null;
      for (let round = 0; round < 2; round += 1) {
        const server = await start(home.home);
        expect([...(await listed(server, 3))].sort()).toEqual(home.ids.map((id, n) => [id, `Title ${n}`]).sort());
        for (const id of home.ids) expect(await server.messages(id)).toEqual(home.rows.get(id));
        await server.close();
        const found = await everythingIn(home.home);
        if (after) expect(found).toEqual(after);
        after = found;
      }
      const copies = (await readdir(home.home)).filter((name) => name.startsWith('doctor-'));
      if (keepsCopy) expect(copies).toHaveLength(1);
      if (keepsCopy && old) expect(await readFile(home.file(copies[0]!, 'state.db'))).toEqual(old);
      const server = await start(home.home);
      await server.ask(home.ids[0]!, 'and on');
      expect(await server.messages(home.ids[0]!)).toHaveLength(6);
    },
  );
});

describe('a repair', () => {
  it('[RE6][DR5] that is killed at any moment costs nothing: the next start makes it', async () => {
    for (const at of [/^doctor-[^/]+$/, /state\.db$/, /salvaged\.db$/, /salvage\.json$/]) {
      const home = await home3();
      await breakPage('sessions')(home);
      const repair = startMain(['doctor', '--repair', '--home', home.home]);
      let isOver = false;
      void repair.exited.then(() => {
        isOver = true;
      });
      const isThere = async () => {
        const names = await readdir(home.home, { recursive: true }).catch(() => []);
        return isOver || names.some((name) => name.startsWith('doctor-') && at.test(name));
      };
      await until(`there is ${at}`, isThere);
      repair.process.kill('SIGKILL');
      await repair.exited;
      const server = await start(home.home);
      expect([...(await listed(server, 3))].sort()).toEqual(home.ids.map((id, n) => [id, `Title ${n}`]).sort());
      for (const id of home.ids) expect(await server.messages(id)).toEqual(home.rows.get(id));
      await server.close();
      expect(await problems(home.home)).toEqual([]);
    }
  });

  it('[RE6][DR4] is not made under a process that has the damaged one open: a start says so, and keeps nothing', async () => {
    const home = await home3();
    const page = pageOf(home, 'messages_by_run');
    const first = await serveMain(home.home);
    await overwrite(home, page);
    const before = await readdir(home.home);
    const second = startMain(['serve', '--home', home.home, '--port', '0']);
    expect(await second.exited).toBe(1);
    expect(second.stderr()).toContain('another process has it open');
    expect(await readdir(home.home)).toEqual(before);
    first.process.kill('SIGKILL');
    await first.exited;
    const server = await start(home.home);
    for (const id of home.ids) expect(await server.messages(id)).toEqual(home.rows.get(id));
  });

  it('[RE6] by two servers that start at once is made once, and both serve', async () => {
    const home = await home3();
    await breakPage('messages')(home);
    const servers = await Promise.all([serveMain(home.home), serveMain(home.home)]);
    for (const server of servers) {
      expect((await server.call('GET', '/api/sessions')).json.sessions).toHaveLength(3);
      for (const id of home.ids) {
        expect((await server.call('GET', `/api/sessions/${id}/messages`)).json.messages).toEqual(home.rows.get(id));
      }
    }
  });
});
