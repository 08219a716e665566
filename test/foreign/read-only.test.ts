/**
 * What one may do with a session of another program: see it, search it, take a copy. What would write into its home is
 * refused with the way that there is, and a start on such a home as our own is, too.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { openHermesHome, turn } from './hermes-home.ts';
import { openWebuiHome, stateBelow } from './webui-home.ts';

async function withBoth() {
  const folder = await temporaryFolder();
  const hermes = openHermesHome(path.join(folder, 'hermes'));
  const webui = openWebuiHome(path.join(folder, 'webui'));
  const config = `foreign:\n  state_db: ${hermes.file}\n  sessions_dir: ${webui.sessions}\n`;
  return { folder, hermes, webui, config };
}

describe("another program's session", () => {
  it('[FH8] takes no prompt, edit, change or deletion; the refusal says how to go on with it', async () => {
    const { folder, hermes, webui, config } = await withBoth();
    hermes.session('theirs', { title: 'Theirs' }, turn('one', 'two'));
    webui.save('file', turn('one', 'two'));
    const before = stateBelow(webui.folder);
    const server = await startTestServer({ config });
    const run = '0'.repeat(32);
    for (const id of ['theirs', 'file']) {
      const at = `/api/sessions/${id}`;
      const attempts: [method: string, address: string, body?: object][] = [
        ['POST', `${at}/prompts`, { text: 'hello' }],
        ['POST', `${at}/prompts?wait=1`, { text: 'hello' }],
        ['POST', `${at}/rewind`, { turns: 1, revision: 1 }],
        ['POST', `${at}/clear`, { revision: 1 }],
        ['POST', `${at}/retry`, {}],
        ['POST', `${at}/interrupt`, {}],
        ['POST', `${at}/prompts/${run}/resolve`, { outcome: 'interrupted' }],
        ['DELETE', `${at}/prompts/${run}`],
        ['PATCH', at, { title: 'Mine' }],
        ['PATCH', at, { draft: 'mine' }],
        ['PATCH', at, { pinned: true }],
        ['DELETE', at],
        ['DELETE', `${at}?stop=1`],
      ];
      for (const [method, address, body] of attempts) {
        const { status, json } = await server.call(method, address, body);
        expect({ status, code: json?.code }, `${method} ${address}`).toEqual({ status: 422, code: 'foreign_home' });
        expect(json.error).toContain(`turnkeep import ${path.join(folder, 'hermes')}`);
      }
      expect(await server.messages(id)).toHaveLength(2);
    }
    expect(stateBelow(webui.folder)).toEqual(before);
    // Bad input is refused as such, and what is nowhere is not found.
    expect((await server.call('POST', '/api/sessions/theirs/prompts', {})).status).toBe(400);
    expect((await server.call('POST', '/api/sessions/nobody/prompts', { text: 'x' })).status).toBe(404);
  });

  it('[FH8] pages, tags and exports as ours does', async () => {
    const { hermes, config } = await withBoth();
    const rows = Array.from({ length: 150 }, (_, n) =>
      turn(`question ${n}`, `answer ${n}`, 1_700_000_000 + 2 * n),
    ).flat();
    hermes.session('theirs', { title: 'Theirs' }, rows);
    const server = await startTestServer({ config });
    const page = await server.call('GET', '/api/sessions/theirs/messages?limit=10');
    expect(page.json).toMatchObject({ has_more: true });
    expect(page.json.messages.at(-1).content).toBe('answer 149');
    const before = page.json.messages[0].id;
    const older = await server.call('GET', `/api/sessions/theirs/messages?limit=5&before=${before}`);
    expect(older.json.messages.at(-1).content).toBe('answer 144');
    const etag = page.headers.get('etag')!;
    const again = (tag: string) =>
      server.call('GET', '/api/sessions/theirs/messages?limit=10', undefined, { 'if-none-match': tag });
    expect((await again(etag)).status).toBe(304);
    hermes.rows('theirs', turn('late', 'later', 1_700_001_000));
    expect((await again(etag)).status).toBe(200);
    expect((await server.call('GET', '/api/sessions/theirs?messages=all')).json.messages).toHaveLength(302);
    expect((await server.call('GET', '/api/sessions/theirs/prompts')).json.admissions).toEqual([]);
    const document = (await server.call('GET', '/api/sessions/theirs/export')).json;
    expect(document.session.title).toBe('Theirs');
    expect(document.messages).toHaveLength(302);
    expect((await server.call('GET', '/api/sessions/theirs/export?format=md')).text).toContain('answer 149');
    const imported = await server.call('POST', '/api/sessions/import', document);
    expect(imported.status).toBe(201);
    expect(await server.messages(imported.json.session.session_id)).toHaveLength(302);
  });

  it('[FH8] can be forked into our home, where the copy goes on; ours of the same id hides theirs', async () => {
    const { hermes, config } = await withBoth();
    hermes.session('theirs', { title: 'Theirs' }, turn('one', 'two'));
    const server = await startTestServer({ config });
    const { status, json } = await server.call('POST', '/api/sessions/theirs/fork', {});
    expect(status).toBe(201);
    expect(json.session).toMatchObject({ title: 'Theirs (fork)', source: 'fork', flags: [], message_count: 2 });
    const copy = json.session.session_id;
    expect((await server.ask(copy, 'hello')).message).toBeDefined();
    expect(await server.messages('theirs')).toHaveLength(2);
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 2000 });
    db.prepare(
      "INSERT INTO sessions (id, source, title, started_at, updated_at, last_activity_at) VALUES ('theirs', 'import', 'Ours now', 1, 1, 1)",
    ).run();
    db.close();
    const { sessions, total } = (await server.call('GET', '/api/sessions')).json;
    expect(total).toBe(2);
    expect(sessions.map((one: { title: string }) => one.title)).toEqual(['Theirs (fork)', 'Ours now']);
    expect((await server.call('GET', '/api/sessions/theirs')).json.session.title).toBe('Ours now');
    expect(await server.messages('theirs')).toEqual([]);
    expect((await server.call('PATCH', '/api/sessions/theirs', { title: 'Mine' })).status).toBe(200);
  });

  it('[FH8] its event stream is a snapshot, by itself and beside others', async () => {
    const { hermes, config } = await withBoth();
    hermes.session('theirs', { title: 'Theirs' }, turn('one', 'two'));
    const server = await startTestServer({ config });
    const one = await server.stream('/api/sessions/theirs/events');
    const snapshot = await one.next((event) => event.type === 'session.snapshot');
    expect(snapshot.json.payload.session).toMatchObject({ title: 'Theirs', flags: ['foreign'], status: 'idle' });
    const many = await server.stream('/api/events?session=theirs');
    await many.next((event) => event.type === 'session.snapshot');
  });

  it('[FH9] is found by what was said, behind ours, and a hit names a place in it', async () => {
    const { hermes, webui, config } = await withBoth();
    hermes.session('theirs', { title: 'Theirs' }, [
      ...turn('where are the zebras', 'in the savanna'),
      { role: 'user', content: 'hidden zebras', display_kind: 'hidden' },
      { role: 'user', content: 'rewound zebras', active: 0 },
      { role: 'user', content: 'archived zebras', active: 0, compacted: 1 },
    ]);
    hermes.session('job', { source: 'cron' }, turn('cron zebras', 'x'));
    webui.save('file', turn('zebras in a file', 'yes'), { title: 'File' });
    const server = await startTestServer({ config });
    const own = await server.session({ title: 'Ours' });
    await server.ask(own, 'zebras of ours');
    const search = async (q: string) => (await server.call('GET', `/api/search?q=${encodeURIComponent(q)}`)).json.hits;
    const hits = await search('zebras');
    const ours = hits.filter((hit: { session_id: string }) => hit.session_id === own).length;
    expect(ours).toBeGreaterThan(0);
    const rest = hits.slice(ours);
    expect(rest.map((hit: { session_id: string }) => hit.session_id)).toEqual(['theirs', 'theirs', 'file']);
    expect(rest.map((hit: { snippet: string }) => hit.snippet).sort()).toEqual([
      'archived zebras',
      'where are the zebras',
      'zebras in a file',
    ]);
    const hit = rest.find((one: { snippet: string }) => one.snippet.startsWith('where'));
    const after = await server.call('GET', `/api/sessions/theirs/messages?after=${hit.message_id}`);
    expect(after.json.messages.map((row: { content: string }) => row.content)).toEqual([
      'in the savanna',
      'archived zebras',
    ]);
    // Without a whole index the rows themselves are looked through.
    hermes.db.prepare("INSERT INTO state_meta VALUES ('fts_rebuild_progress', '5')").run();
    expect((await search('zebras')).slice(ours)).toHaveLength(3);
    hermes.db.exec('DROP TABLE messages_fts; DROP TRIGGER messages_fts_insert');
    const found = await search('zebras "the" where');
    expect(found.map((one: { session_id: string }) => one.session_id)).toContain('theirs');
  });
});

describe('a start on the home of another program', () => {
  it('[FH10] is refused with the way to bring its conversations over, and makes no file there', async () => {
    const { hermes, webui } = await withBoth();
    hermes.session('theirs', {}, turn('one', 'two'));
    hermes.close();
    webui.save('file', turn('one', 'two'));
    webui.index();
    for (const home of [hermes.folder, webui.folder]) {
      const before = stateBelow(home);
      await expect(startTestServer({ home })).rejects.toThrow(`turnkeep import ${home}`);
      expect(stateBelow(home)).toEqual(before);
    }
  });

  it('[FH10] a wrong place in the configuration is an error; one that is not there yet is waited for', async () => {
    const home = await temporaryFolder();
    const start = (line: string) => startTestServer({ home, config: `foreign: {${line}}` });
    await expect(start('state_db: relative/state.db')).rejects.toThrow('foreign.state_db must be an absolute path');
    await expect(start(`state_db: ${path.join(home, 'state.db')}`)).rejects.toThrow("this server's own home");
    await expect(start('folder: /x')).rejects.toThrow('foreign has no key "folder"');
    const later = path.join(await temporaryFolder(), 'later');
    const server = await start(`state_db: ${later}/state.db, sessions_dir: ${later}/sessions`);
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
    expect((await server.call('GET', '/api/sessions/theirs')).status).toBe(404);
    const hermes = openHermesHome(later);
    hermes.session('theirs', {}, turn('one', 'two'));
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
    openWebuiHome(later).save('file', turn('one', 'two'));
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(2);
    hermes.close();
  });

  it('[FH10] what is no database, or none that can be read, costs our own sessions nothing', async () => {
    const folder = await temporaryFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'state.db'), 'no database at all '.repeat(100));
    const server = await startTestServer({
      config: `foreign: {state_db: ${folder}/state.db, sessions_dir: ${folder}/state.db}`,
    });
    const own = await server.session({ title: 'Ours' });
    const { json } = await server.call('GET', '/api/sessions');
    expect(json.sessions.map((one: { session_id: string }) => one.session_id)).toEqual([own]);
    expect((await server.call('GET', '/api/search?q=anything')).status).toBe(200);
    expect((await server.call('GET', '/api/sessions/theirs')).status).toBe(404);
    expect(server.logs.some((line) => line.msg.includes('cannot be read now'))).toBe(true);
  });
});
