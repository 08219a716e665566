/**
 * A home of Hermes beside ours: its `state.db` is listed and read, in every build and state in which its program leaves
 * it, and nothing is written there.
 */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { type Build, openHermesHome, turn } from './hermes-home.ts';
import { stateBelow } from './webui-home.ts';

async function withHermes(build: Build = 'current', journal = 'WAL') {
  const folder = path.join(await temporaryFolder(), 'hermes');
  const hermes = openHermesHome(folder, build, journal);
  const start = () => startTestServer({ config: `foreign:\n  state_db: ${hermes.file}\n` });
  return { hermes, start };
}

describe('reading a state.db of another program', () => {
  it('[FH1] its sessions are in the list with their source, between ours, and are read like ours', async () => {
    const { hermes, start } = await withHermes();
    hermes.session(
      '20260101_000000_aaaaaa',
      { title: 'Elsewhere', source: 'telegram', model: 'm-1', cwd: '/w', input_tokens: 5, output_tokens: 7 },
      turn('hello there', 'general answer'),
    );
    const server = await start();
    const own = await server.session({ title: 'Ours' });
    const { json } = await server.call('GET', '/api/sessions');
    expect(json.total).toBe(2);
    expect(json.sessions.map((one: { session_id: string }) => one.session_id)).toEqual([own, '20260101_000000_aaaaaa']);
    expect(json.sessions[1]).toMatchObject({
      title: 'Elsewhere',
      source: 'telegram',
      model: 'm-1',
      workspace: '/w',
      flags: ['foreign'],
      message_count: 2,
      status: 'idle',
      created_at: 1_700_000_000,
      last_message_at: 1_700_000_001,
      usage: { input_tokens: 5, output_tokens: 7 },
    });
    const rows = await server.messages('20260101_000000_aaaaaa');
    expect(rows.map((row) => [row.role, row.content, row.timestamp])).toEqual([
      ['user', 'hello there', 1_700_000_000],
      ['assistant', 'general answer', 1_700_000_001],
    ]);
    hermes.close();
  });

  it.each([
    ['v16', 'WAL'],
    ['current', 'WAL'],
    ['bare', 'WAL'],
    ['current', 'DELETE'],
  ] as const)(
    '[FH2] a %s build with journal %s is read while its program runs and when it has ended',
    async (build, journal) => {
      const { hermes, start } = await withHermes(build, journal);
      hermes.session('s1', {}, turn('one', 'two'));
      const server = await start();
      const texts = async () => (await server.messages('s1')).map((row) => row.content);
      expect(await texts()).toEqual(['one', 'two']);
      hermes.rows('s1', turn('three', 'four', 1_700_000_100));
      expect(await texts()).toEqual(['one', 'two', 'three', 'four']);
      hermes.close();
      expect(await texts()).toEqual(['one', 'two', 'three', 'four']);
      const again = openHermesHome(hermes.folder, build, journal);
      again.rows('s1', turn('five', 'six', 1_700_000_200));
      expect((await texts()).slice(4)).toEqual(['five', 'six']);
      again.close();
      expect(await texts()).toHaveLength(6);
    },
  );

  it('[FH2] what its program wrote while it came and went between two reads is there at the second', async () => {
    const { hermes, start } = await withHermes();
    hermes.session('s1', {}, turn('one', 'two'));
    hermes.close();
    const server = await start();
    for (let n = 1; n <= 4; n += 1) {
      expect(await server.messages('s1')).toHaveLength(2 * n);
      const again = openHermesHome(hermes.folder);
      again.rows('s1', turn(`question ${n}`, `answer ${n}`, 1_700_000_100 * n));
      again.close();
    }
    expect(await server.messages('s1')).toHaveLength(10);
  });

  it('[FH3] no file of a home is made or changed by reading it, whether its program runs or not', async () => {
    const { hermes, start } = await withHermes();
    hermes.session('s1', {}, turn('one', 'two'));
    hermes.close();
    const before = stateBelow(hermes.folder);
    const server = await start();
    await server.call('GET', '/api/sessions');
    expect(await server.messages('s1')).toHaveLength(2);
    await server.call('GET', '/api/search?q=one');
    expect(stateBelow(hermes.folder)).toEqual(before);
    expect(Object.keys(before)).toHaveLength(1);
    await server.close();
    expect(stateBelow(hermes.folder)).toEqual(before);
  });

  it('[FH3] beside a program that has it open, nothing is written into its files, and none is made', async () => {
    const { hermes, start } = await withHermes();
    hermes.session('s1', {}, turn('one', 'two'));
    const content = () =>
      Object.fromEntries(Object.entries(stateBelow(hermes.folder)).filter(([name]) => !name.endsWith('-shm')));
    const before = content();
    const server = await start();
    await server.call('GET', '/api/sessions');
    expect(await server.messages('s1')).toHaveLength(2);
    expect(content()).toEqual(before);
    // Its end is not held up either: what it had in its log is still there for it.
    hermes.close();
    await server.close();
    const again = openHermesHome(hermes.folder);
    expect(again.db.prepare('SELECT count(*) FROM messages').pluck().get()).toBe(2);
    again.close();
  });

  it('[FH3] an own home without the section looks at nothing of another program', async () => {
    const { hermes } = await withHermes();
    hermes.session('s1', {}, turn('one', 'two'));
    const server = await startTestServer();
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
    expect((await server.call('POST', '/api/sessions/s1/prompts', { text: 'x' })).status).toBe(404);
    hermes.close();
  });

  it.each([
    ['no tables', 'CREATE TABLE notes (text)', 0],
    ['no messages', 'CREATE TABLE sessions (id TEXT PRIMARY KEY); INSERT INTO sessions VALUES (1), (2)', 2],
    [
      'messages without what matters',
      "CREATE TABLE sessions (id TEXT, source TEXT); INSERT INTO sessions VALUES ('a', NULL); CREATE TABLE messages (session_id, text)",
      1,
    ],
    [
      'no row numbers',
      "CREATE TABLE sessions (id TEXT PRIMARY KEY, title) WITHOUT ROWID; INSERT INTO sessions VALUES ('a', 't')",
      0,
    ],
    [
      'ids that are none',
      "CREATE TABLE sessions (id, title); INSERT INTO sessions VALUES (NULL, 't'), (x'00', 't'), ('../x', 't')",
      0,
    ],
  ])('[FH1] a database with %s is read as far as it is one', async (_name, sql, count) => {
    const folder = await temporaryFolder();
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, 'other.db');
    const db = new Database(file);
    db.exec(sql);
    db.close();
    const server = await startTestServer({ config: `foreign: {state_db: ${file}}` });
    const own = await server.session();
    const { status, json } = await server.call('GET', '/api/sessions');
    expect({ status, total: json.total }).toEqual({ status: 200, total: count + 1 });
    for (const { session_id: id } of json.sessions) {
      if (id !== own) expect(await server.messages(id)).toEqual([]);
    }
    expect((await server.call('GET', '/api/search?q=anything')).json.hits).toEqual([]);
  });
});
