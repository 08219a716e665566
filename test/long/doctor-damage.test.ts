/** Each kind of damage: it is found, nothing is changed by finding it, and what can be mended is, once. */
import { access, appendFile, mkdir, readFile, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { doctor, type Home, homeWithSessions, problems, stateOf } from '../doctor/doctor-home.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

const NOBODY = '20200101_000000_abcdef';

const journal = ({ file, ids, runs }: Home, n = 0): string =>
  file('sessions', '_run_journal', ids[n]!, `${runs[n]}.jsonl`);
const sidecar = ({ file, ids }: Home, n = 0): string => file('sessions', `${ids[n]}.json`);

/** Overwrites a page of the state DB that a table or index has, in the file. */
async function breakPage(home: Home, name: string): Promise<void> {
  home.sql('PRAGMA wal_checkpoint(TRUNCATE)');
  const page = home.ask<number>(`SELECT rootpage FROM sqlite_master WHERE name = '${name}'`);
  const size = home.ask<number>('SELECT page_size FROM pragma_page_size');
  const bytes = await readFile(home.file('state.db'));
  bytes.fill(0xa5, (page - 1) * size, page * size);
  await writeFile(home.file('state.db'), bytes);
}

interface Damage {
  what: string;
  damage(home: Home): unknown;
  /** Codes of the problems that it is. */
  found: string[];
  /** What is left of them after --repair. */
  left: string[];
}

const message = (session: string) =>
  `INSERT INTO messages (session_id, role, content, timestamp) VALUES ('${session}', 'user', 'lost words', 1)`;

const DAMAGES: Damage[] = [
  { what: 'messages without a session', damage: (h) => h.sql(message(NOBODY)), found: ['orphan_messages'], left: [] },
  {
    what: 'prompts without a session',
    damage: (h) => h.sql(`UPDATE session_admissions SET target_session_id = '${NOBODY}' WHERE run_id = '${h.runs[0]}'`),
    found: ['orphan_admissions'],
    left: [],
  },
  {
    what: 'a session row that was lost',
    damage: (h) => h.sql(`DELETE FROM sessions WHERE id = '${h.ids[0]}'`),
    found: ['orphan_admissions', 'orphan_messages'],
    left: [],
  },
  {
    what: 'a wrong number of messages',
    damage: (h) => h.sql(`UPDATE sessions SET message_count = 7 WHERE id = '${h.ids[0]}'`),
    found: ['message_count_off'],
    left: [],
  },
  {
    what: 'a wrong number of sessions',
    damage: (h) => h.sql('UPDATE session_counts SET sessions = 9 WHERE archived = 0'),
    found: ['session_counts_off'],
    left: [],
  },
  {
    what: 'flags that are no JSON',
    damage: (h) => h.sql(`UPDATE sessions SET flags = '["rec' WHERE id = '${h.ids[0]}'`),
    found: ['unreadable_flags'],
    left: [],
  },
  {
    what: 'a prompt that is no JSON',
    damage: (h) => h.sql(`UPDATE session_admissions SET payload_json = '{"te' WHERE run_id = '${h.runs[0]}'`),
    found: ['unreadable_json'],
    left: ['unreadable_json'],
  },
  {
    what: 'a project that is lost',
    damage: (h) => h.sql(`UPDATE sessions SET project_id = 'p' WHERE id = '${h.ids[0]}'`),
    found: ['broken_reference'],
    left: [],
  },
  {
    what: 'a search index that lacks a message',
    damage: (h) => h.sql('DELETE FROM messages_fts_docsize WHERE id = 1'),
    found: ['search_stale'],
    left: [],
  },
  {
    what: 'a search index of other words',
    damage: (h) =>
      h.sql(
        `DROP TRIGGER messages_fts_update; UPDATE messages SET content = 'else' WHERE id = 1;
         CREATE TRIGGER messages_fts_update AFTER UPDATE OF content, role ON messages BEGIN SELECT 1; END`,
      ),
    found: ['search_stale'],
    left: [],
  },
  {
    what: 'an index that lost an entry',
    damage: (h) =>
      h.sql(
        `PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = sql || ' WHERE id > 1' WHERE name = 'messages_by_run';
         PRAGMA writable_schema = RESET; REINDEX messages_by_run;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = replace(sql, ' WHERE id > 1', '') WHERE name = 'messages_by_run';`,
      ),
    found: ['not_sound'],
    left: [],
  },
  {
    what: 'an index whose page is broken',
    damage: (h) => breakPage(h, 'messages_by_run'),
    found: ['not_sound'],
    left: [],
  },
  {
    what: 'a table that is missing',
    damage: (h) => h.sql('DROP TABLE state_meta'),
    found: ['schema_incomplete'],
    left: [],
  },
  {
    what: 'a lease of a dead process',
    damage: (h) =>
      h.sql(`INSERT INTO active_sessions VALUES ('${h.ids[0]}', 'l', 'web', 4194000, 'x/1', 'aa', 1, 1, 1)`),
    found: ['dead_lease'],
    left: [],
  },
  {
    what: 'a prompt of unknown fate',
    damage: (h) => h.sql(`UPDATE session_admissions SET status = 'unknown' WHERE run_id = '${h.runs[0]}'`),
    found: ['unknown_prompt'],
    left: ['unknown_prompt'],
  },
  {
    what: 'a deletion that was not finished',
    damage: (h) => h.sql(deletion(h.ids[0]!, 0)),
    found: ['deletion_unfinished'],
    left: [],
  },
  {
    what: 'files of a deleted session',
    damage: (h) => h.sql(deletion(h.ids[0]!, 1)),
    found: ['deletion_unfinished'],
    left: [],
  },
  ...['', '{"session_id": "x", "mess', '[]', '{}', 'null', '\0\0\0\0'].map((text) => ({
    what: `a sidecar that is ${JSON.stringify(text)}`,
    damage: (h: Home) => writeFile(sidecar(h), text),
    found: ['sidecar_damaged'],
    left: [],
  })),
  {
    what: 'a sidecar of another session',
    damage: async (h) => writeFile(sidecar(h, 0), await readFile(sidecar(h, 1))),
    found: ['sidecar_damaged'],
    left: [],
  },
  {
    what: 'a folder in the place of a sidecar',
    damage: async (h) => {
      await rm(sidecar(h));
      await mkdir(sidecar(h));
      await writeFile(path.join(sidecar(h), 'mine'), 'mine');
    },
    found: ['sidecar_damaged'],
    left: [],
  },
  {
    what: 'a message id that a sidecar has twice',
    damage: async (h) => {
      const found = JSON.parse(await readFile(sidecar(h), 'utf8'));
      found.messages.push(found.messages[1]);
      await writeFile(sidecar(h), JSON.stringify(found, null, 2));
    },
    found: ['sidecar_repeats'],
    left: ['sidecar_repeats'],
  },
  {
    what: 'a journal that is broken in its middle',
    damage: async (h) => {
      const lines = (await readFile(journal(h), 'utf8')).split('\n');
      await writeFile(journal(h), [lines[0], '{"broken', ...lines.slice(2)].join('\n'));
    },
    found: ['journal_damaged'],
    left: [],
  },
  {
    what: 'a journal of another session',
    damage: async (h) => {
      const text = (await readFile(journal(h), 'utf8')).replaceAll(h.ids[0]!, h.ids[1]!);
      await writeFile(journal(h), text);
    },
    found: ['journal_of_another'],
    left: [],
  },
  {
    what: 'a folder in the place of a journal',
    damage: async (h) => {
      await rm(journal(h));
      await mkdir(journal(h));
    },
    found: ['journal_damaged'],
    left: [],
  },
  {
    what: 'a damaged journal of a turn of unknown fate',
    damage: async (h) => {
      h.sql(`UPDATE session_admissions SET status = 'unknown' WHERE run_id = '${h.runs[0]}'`);
      await writeFile(journal(h), 'no\njournal\nat all\n');
    },
    found: ['journal_damaged', 'unknown_prompt'],
    left: ['journal_damaged', 'unknown_prompt'],
  },
  {
    what: 'what was put aside of a deleted session',
    damage: async (h) => {
      h.sql(deletion(h.ids[0]!, 1));
      await rm(sidecar(h));
      await rm(h.file('sessions', '_run_journal', h.ids[0]!), { recursive: true });
      for (const ending of ['damaged-5', 'bak', 'tmp.1.1']) await writeFile(`${sidecar(h)}.${ending}`, 'said');
      await mkdir(h.file('sessions', '_run_journal', `${h.ids[0]}.damaged-7`));
    },
    found: ['left_of_deleted'],
    left: [],
  },
  {
    what: 'attachments of a deleted session',
    damage: async (h) => {
      h.sql(deletion(h.ids[0]!, 1));
      await rm(sidecar(h));
      await rm(h.file('sessions', '_run_journal', h.ids[0]!), { recursive: true });
      await mkdir(h.file('attachments', h.ids[0]!), { recursive: true });
      await writeFile(h.file('attachments', h.ids[0]!, 'picture.png'), 'shown');
    },
    found: ['deletion_unfinished'],
    left: [],
  },
  {
    what: 'a temporary file of a save that never ended',
    damage: async (h) => {
      await writeFile(`${sidecar(h)}.tmp.1.1`, '{');
      await utimes(`${sidecar(h)}.tmp.1.1`, 1, 1);
    },
    found: ['stale_temporary'],
    left: [],
  },
  {
    what: 'an upload that never ended',
    damage: async (h) => {
      const half = h.file('attachments', h.ids[0]!, `.${'a'.repeat(32)}.tmp.1.0`);
      await mkdir(path.dirname(half), { recursive: true });
      await writeFile(half, 'half');
      await utimes(half, 1, 1);
    },
    found: ['stale_temporary'],
    left: [],
  },
  {
    what: 'a .bak of another program with more rows',
    damage: async (h) => {
      const found = JSON.parse(await readFile(sidecar(h), 'utf8'));
      const more = { id: 'theirs', role: 'assistant', content: 'lost', timestamp: 9 };
      const messages = [...found.messages, more];
      await writeFile(`${sidecar(h)}.bak`, JSON.stringify({ ...found, messages, message_count: 3 }, null, 2));
    },
    found: ['backup_has_more'],
    left: [],
  },
  {
    what: 'a backup that never ended',
    damage: async (h) => {
      await mkdir(h.file('backups', 'turnkeep.tar.gz.unfinished.77'), { recursive: true });
      await utimes(h.file('backups', 'turnkeep.tar.gz.unfinished.77'), 1, 1);
    },
    found: ['unfinished_backup'],
    left: ['unfinished_backup'],
  },
  {
    what: 'a configuration that no server takes',
    damage: (h) => writeFile(h.file('config.yaml'), 'server: {prot: 1}\n'),
    found: ['config_refused'],
    left: ['config_refused'],
  },
  { what: 'a state DB that is missing', damage: (h) => rm(h.file('state.db')), found: ['missing'], left: ['missing'] },
  {
    what: 'a state DB that is empty',
    damage: (h) => truncate(h.file('state.db')),
    found: ['no_database'],
    left: [],
  },
  {
    what: 'a state DB that is something else',
    damage: (h) => writeFile(h.file('state.db'), 'x'.repeat(5000)),
    found: ['no_database'],
    left: [],
  },
];

const deletion = (id: string, filesRemoved: number): string => `
  DELETE FROM session_admissions WHERE target_session_id = '${id}';
  DELETE FROM messages WHERE session_id = '${id}';
  DELETE FROM sessions WHERE id = '${id}';
  INSERT INTO session_tombstones VALUES ('${id}', 1, ${filesRemoved})`;

describe('damage', () => {
  it.each(DAMAGES)('[DR1][DR2][DR3] $what: found as it is, mended once', async ({ damage, found, left }) => {
    const home = await homeWithSessions();
    await damage(home);
    const before = await stateOf(home.home);
    expect(await problems(home.home)).toEqual(found);
    expect(await stateOf(home.home)).toEqual(before);
    expect(await problems(home.home, '--repair')).toEqual(left);
    const after = await stateOf(home.home);
    if (left.length === found.length) expect(after).toEqual(before);
    expect(await problems(home.home, '--repair')).toEqual(left);
    expect(await stateOf(home.home)).toEqual(after);
  });

  it.each(DAMAGES.filter(({ left }) => left.length === 0))(
    '[DR5] $what: what the repair touched is in its copies, byte for byte',
    async ({ damage }) => {
      const home = await homeWithSessions();
      await damage(home);
      const before = await stateOf(home.home);
      const { json } = await doctor(home.home, '--repair', '--json');
      const after = await stateOf(home.home);
      const content = (state: string | undefined): string | undefined => state?.split(' ').at(-1);
      for (const [name, state] of before) {
        if (content(state) === '' || content(after.get(name)) === content(state)) continue;
        expect(content(after.get(path.join(json.copies, name))), name).toBe(content(state));
      }
      expect(json.repairs.length).toBeGreaterThan(0);
    },
  );
});

describe('what is no problem', () => {
  it('[DR2] a home that was stopped well: every area is ok', async () => {
    const { home } = await homeWithSessions();
    const before = await stateOf(home);
    const { code, json } = await doctor(home, '--json');
    expect(json.findings.filter((one: { severity: string }) => one.severity !== 'ok')).toEqual([]);
    expect(code).toBe(0);
    expect(await stateOf(home)).toEqual(before);
    expect((await doctor(home, '--repair')).code).toBe(0);
    expect(await stateOf(home)).toEqual(before);
  });

  it('[DR2] what the server does by itself, or nobody may guess, is told and left alone', async () => {
    const home = await homeWithSessions(3);
    const { file, ids } = home;
    await rm(sidecar(home, 0));
    await appendFile(journal(home, 1), '{"half');
    await writeFile(file('sessions', `${NOBODY}.json`), `{"session_id": "${NOBODY}", "messages": []}`);
    await mkdir(file('sessions', '_run_journal', NOBODY));
    await mkdir(file('attachments', NOBODY), { recursive: true });
    await writeFile(`${sidecar(home, 1)}.damaged-1`, 'old');
    await writeFile(`${sidecar(home, 1)}.tmp.1.1`, 'being written');
    home.sql(`UPDATE session_admissions SET ended_at = 1 WHERE target_session_id = '${ids[2]}'`);
    const before = await stateOf(home.home);
    const { code, json } = await doctor(home.home, '--json', '--repair');
    const told = json.findings.filter((one: { severity: string }) => one.severity === 'info');
    expect(told.map((one: { code: string }) => one.code).sort()).toEqual([
      'attachment_without_session',
      'journal_torn',
      'journals_past_time',
      'journals_without_session',
      'put_aside',
      'sidecar_without_session',
      'sidecars_missing',
    ]);
    expect(code).toBe(0);
    expect(await stateOf(home.home)).toEqual(before);
  });
});

describe('a state DB with a broken page', () => {
  it('[DR6] what can be read is in a new one, and the server goes on with it', async () => {
    const home = await homeWithSessions(3);
    await breakPage(home, 'session_tombstones');
    expect(await problems(home.home)).toContain('not_sound');
    const { code, json, out } = await doctor(home.home, '--repair', '--json');
    expect([code, json.repairs.map((one: { code: string }) => one.code)], out).toEqual([0, ['make_sound']]);
    const notes = JSON.parse(await readFile(home.file(json.copies, 'salvage.json'), 'utf8'));
    expect(notes).toMatchObject({ isSound: true, remade: [] });
    const server = await startTestServer({ home: home.home, overrides: { runner: createEchoRunner().runner } });
    for (const id of home.ids) expect(await server.messages(id)).toHaveLength(2);
    await server.ask(home.ids[0]!, 'and on');
    expect(await server.messages(home.ids[0]!)).toHaveLength(4);
  });

  it('[DR6] sessions whose row is lost come back by their messages and prompts', async () => {
    const home = await homeWithSessions(2);
    await breakPage(home, 'sessions');
    expect((await problems(home.home)).length).toBeGreaterThan(0);
    const { code, json, out } = await doctor(home.home, '--repair', '--json');
    expect(code, out).toBe(0);
    expect(json.repairs[0].message).toContain('2 sessions made anew');
    const server = await startTestServer({ home: home.home, overrides: { runner: createEchoRunner().runner } });
    for (const id of home.ids) expect(await server.messages(id)).toHaveLength(2);
  });

  it('[DR6] rows around a broken page are kept, and those on it are named', async () => {
    const home = await homeWithSessions(1);
    const [id] = home.ids;
    home.sql(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO messages (session_id, role, content, timestamp, message_id)
      SELECT '${id}', 'user', hex(zeroblob(200)), i, 'm' || i FROM n; PRAGMA wal_checkpoint(TRUNCATE)`);
    const pages = home.ask<string>(
      `SELECT json_group_array(pageno) FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'`,
    );
    const page = (JSON.parse(pages) as number[])[5]!;
    const bytes = await readFile(home.file('state.db'));
    const size = home.ask<number>('SELECT page_size FROM pragma_page_size');
    bytes.fill(0xa5, (page - 1) * size, page * size);
    await writeFile(home.file('state.db'), bytes);
    const { json } = await doctor(home.home, '--repair', '--json');
    const { tables } = JSON.parse(await readFile(home.file(json.copies, 'salvage.json'), 'utf8'));
    const messages = tables.find((one: { table: string }) => one.table === 'messages');
    expect(messages.lost).toHaveLength(1);
    const [[from, to]] = messages.lost;
    expect(messages.kept).toBe(402 - (to - from + 1));
    expect(to - from).toBeLessThan(20);
    expect(await problems(home.home)).toEqual([]);
  });
});

describe('a home elsewhere', () => {
  it('[DR1] a link to a home is examined like the home', async () => {
    const { home } = await homeWithSessions(1);
    await symlink(home, `${home}-link`);
    expect((await doctor(`${home}-link`)).code).toBe(0);
    await rm(`${home}-link`);
    await access(home);
  });
});
