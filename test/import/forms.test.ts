/** All that can be imported, and what of it is kept. */
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome, stateBelow } from '../foreign/webui-home.ts';
import { startMain } from '../support/main-process.ts';
import { counts, goOn, importCommand, importFrom, providerHome, refusal, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;

describe('what is kept', () => {
  it('[IM5] title, flags, project, workspace, times, usage and source of a session', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    webui.save('web', turn('q', 'a', T), {
      title: 'Named by hand',
      manual_title: true,
      pinned: true,
      archived: true,
      workspace: '/srv/work',
      cache_read_tokens: 5,
    });
    await writeFile(
      path.join(theirs, 'projects.json'),
      JSON.stringify([{ project_id: 'their-project', name: 'Garden', color: '#00ff00' }]),
    );
    const hermes = openHermesHome(theirs);
    hermes.session(
      'tele',
      { source: 'telegram', title: 'From the phone', actual_cost_usd: 0.25, last_activity_at: T + 9 },
      turn('q', 'a', T),
    );
    hermes.session('helper', { source: 'subagent' }, turn('do it', 'done', T));
    hermes.session('silent', {}, []);
    hermes.close();
    const imported = await importFrom(theirs, home);
    expect(counts(imported)).toEqual({ imported: 3, empty: 1 });
    const server = await serve(home);
    const session = async (id: string) => (await server.call('GET', `/api/sessions/${id}`)).json.session;
    const project = (await server.call('GET', '/api/projects')).json.projects[0];
    expect(project).toMatchObject({ name: 'Garden', color: '#00ff00' });
    expect(await session('web')).toMatchObject({
      title: 'Named by hand',
      pinned: true,
      archived: true,
      source: 'webui',
      workspace: '/srv/work',
      project_id: project.project_id,
      created_at: 1_700_000_000.25,
      updated_at: 1_700_000_500.5,
      last_message_at: T + 1,
      usage: { input_tokens: 11, output_tokens: 12, cached_tokens: 5, cost_usd: 0.5, context_length: 1000 },
    });
    expect(await session('tele')).toMatchObject({
      title: 'From the phone',
      source: 'telegram',
      usage: { cost_usd: 0.25 },
    });
    const { sessions } = (await server.call('GET', '/api/sessions?archived=1')).json;
    expect(sessions.map((one: { session_id: string }) => one.session_id).sort()).toEqual(['tele', 'web']);
    expect(textsOf(await server.messages('helper'))).toEqual(['do it', 'done']);
  });

  it('[IM2] fields of the sidecar and of its rows that nobody here knows', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const answer = {
      role: 'assistant',
      content: 'a',
      timestamp: T + 1,
      _turnUsage: { x: 1 },
      reasoning_details: [{ y: 2 }],
    };
    webui.save('one', [{ role: 'user', content: 'q', timestamp: T }, answer], {
      personality: 'pirate',
      anchor_activity_scenes: { s: 1 },
      share_token: 'kept',
    });
    await importFrom(theirs, home);
    const server = await serve(home);
    const rows = await server.messages('one');
    expect(JSON.stringify(rows)).not.toMatch(/_turnUsage|reasoning_details/);
    const sidecar = JSON.parse(await readFile(path.join(home, 'sessions', 'one.json'), 'utf8'));
    expect(sidecar).toMatchObject({ personality: 'pirate', share_token: 'kept', anchor_activity_scenes: { s: 1 } });
    expect(sidecar.messages[1]).toMatchObject({ ...answer, id: rows[1].id });
    expect(sidecar.imported_from).toMatchObject({ session_id: 'one', model: 'm-2' });
  });

  it('[IM2] both stores reconciled: what only one of them has is there once', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const hermes = openHermesHome(theirs);
    webui.save('one', turn('first', 'answer', T));
    hermes.session('one', { source: 'webui' }, [
      ...turn('[Workspace::v1: /w]\nfirst', 'answer', T),
      ...turn('from the desktop', 'indeed', T + 10),
    ]);
    hermes.close();
    await importFrom(theirs, home);
    const server = await serve(home);
    const rows = await server.messages('one');
    expect(textsOf(rows)).toEqual(['first', 'answer', 'from the desktop', 'indeed']);
    const before = stateBelow(path.join(home, 'sessions'));
    expect(await server.messages('one')).toEqual(rows);
    expect(stateBelow(path.join(home, 'sessions'))).toEqual(before);
  });

  it('[IM6] attachments, under names that are safe here and that their rows have', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const uploads = path.join(theirs, 'attachments', 'one');
    await mkdir(uploads, { recursive: true });
    await writeFile(path.join(uploads, 'photo.png'), 'a photo');
    await writeFile(path.join(uploads, '.hidden$(x).txt'), 'odd');
    await writeFile(path.join(theirs, 'secret.txt'), 'not for you');
    await symlink(path.join(theirs, 'secret.txt'), path.join(uploads, 'link.txt'));
    const attachments = [
      { name: 'My photo.png', path: path.join(uploads, 'photo.png'), mime: 'image/png' },
      { name: '.hidden$(x).txt', path: path.join(uploads, '.hidden$(x).txt') },
      { name: 'secret.txt', path: path.join(theirs, 'secret.txt') },
      { name: 'link.txt', path: path.join(uploads, 'link.txt') },
    ];
    webui.save('one', [{ role: 'user', content: 'look', timestamp: T, attachments }, ...turn('q', 'a', T + 1)]);
    const imported = await importFrom(theirs, home);
    expect(imported.report).toMatchObject({ attachments: 2, counts: { imported: 1 } });
    expect(imported.report.problems.map(({ message }) => message).sort()).toEqual([
      'the attachment "link.txt" is not there',
      'the attachment "secret.txt" is not there',
    ]);
    expect((await readdir(path.join(home, 'attachments', 'one'))).sort()).toEqual(['hidden_(x).txt', 'photo.png']);
    expect(await readFile(path.join(home, 'attachments', 'one', 'photo.png'), 'utf8')).toBe('a photo');
    const server = await serve(home);
    const [row] = await server.messages('one');
    expect(row.attachments).toEqual(['photo.png', 'hidden_(x).txt', 'secret.txt', 'link.txt']);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
  });

  it('[IM2] a journal under another id here still is the journal of its turn', async () => {
    const { theirs, home } = await twoHomes();
    const run = 'ef'.repeat(16);
    const taken = openWebuiHome(`${theirs}-first`);
    taken.save('one', turn('of another', 'home', T));
    await importFrom(`${theirs}-first`, home);
    const webui = openWebuiHome(theirs);
    webui.save('one', turn('q', 'a', T), {
      active_stream_id: run,
      pending_user_message: 'p',
      pending_started_at: T + 5,
    });
    webui.journal('one', run, [['token', { text: 'half of it' }]], T + 6);
    await importFrom(theirs, home);
    const server = await serve(home);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const id = sessions.map((one: { session_id: string }) => one.session_id).find((one: string) => one !== 'one');
    expect(textsOf(await server.messages(id)).slice(0, 4)).toEqual(['q', 'a', 'p', 'half of it']);
  });
});

describe('other forms', () => {
  it('[IM1] another home of Turnkeep, whose conversations keep their ids and their rows', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(theirs);
    const first = await serve(theirs);
    const id = await first.session({ title: 'Ours' });
    await goOn(first, provider, id, 'one');
    await goOn(first, provider, id, 'two');
    const rows = await first.messages(id);
    await first.close();
    const there = await providerHome(home);
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    const server = await serve(home);
    expect(await server.messages(id)).toEqual(rows);
    expect(await goOn(server, there, id, 'three')).toHaveLength(5);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
    expect(await refusal(home, home)).toContain('is this home itself');
  });

  it('[IM1] an exported conversation, and a longer one of the same', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(theirs);
    const first = await serve(theirs);
    const id = await first.session({ title: 'Exported' });
    const file = path.join(path.dirname(theirs), 'conversation.json');
    const exported = async () =>
      writeFile(file, (await first.call('GET', `/api/sessions/${id}/export?format=json`)).text);
    await goOn(first, provider, id, 'one');
    await exported();
    expect(counts(await importFrom(file, home))).toEqual({ imported: 1 });
    expect(counts(await importFrom(file, home))).toEqual({ unchanged: 1 });
    await goOn(first, provider, id, 'two');
    await exported();
    expect(counts(await importFrom(file, home))).toEqual({ extended: 1 });
    const server = await serve(home);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions).toMatchObject([{ title: 'Exported', message_count: 4, workspace: null }]);
    expect(await server.messages(sessions[0].session_id)).toEqual(await first.messages(id));
  });

  it('[IM1] a state.db alone, a folder of sidecars, one sidecar, and the web page inside of a Hermes home', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs, 'current', 'DELETE');
    hermes.session('cli', {}, turn('q', 'a', T));
    hermes.close();
    const webui = openWebuiHome(path.join(theirs, 'webui'));
    for (const id of ['web-1', 'web-2']) webui.save(id, turn(id, 'a', T));
    expect(counts(await importFrom(path.join(theirs, 'state.db'), home))).toEqual({ imported: 1 });
    expect(counts(await importFrom(path.join(webui.sessions, 'web-1.json'), home))).toEqual({ imported: 1 });
    expect(counts(await importFrom(webui.sessions, home))).toEqual({ imported: 1, unchanged: 1 });
    expect(counts(await importFrom(path.join(theirs, 'webui'), home))).toEqual({ unchanged: 2 });
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 3 });
    const server = await serve(home);
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(3);
  });
});

describe('what cannot be read', () => {
  it('[IM8] is a line of the report, and the rest is imported; the source is as it was', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    webui.save('good', turn('q', 'a', T));
    webui.write('torn.json', '{"session_id": "torn", "mess');
    webui.write(
      'session_20260101_000000_abcdef.json',
      JSON.stringify({ session_id: '20260101_000000_abcdef', messages: [] }),
    );
    webui.write('sessions.json', '{}');
    webui.backup('saved', turn('only in the backup', 'a', T));
    const hermes = openHermesHome(theirs);
    hermes.session('saved', { source: 'webui' }, turn('only in the backup', 'a', T));
    hermes.session('gone', { source: 'webui' }, turn('deleted there', 'a', T));
    hermes.close();
    webui.tombstones('gone');
    const before = stateBelow(theirs);
    const imported = await importFrom(theirs, home);
    expect([imported.code, counts(imported)]).toEqual([1, { imported: 2, unreadable: 1 }]);
    expect(imported.report.problems).toMatchObject([
      { id: 'torn', code: 'unreadable', message: 'the file is not JSON' },
    ]);
    expect(stateBelow(theirs)).toEqual(before);
  });

  it('[IM8] nothing to be imported is said in one sentence', async () => {
    const { theirs, home } = await twoHomes();
    expect(await refusal(theirs, home)).toContain('is not there');
    await mkdir(theirs);
    expect(await refusal(theirs, home)).toContain('holds no conversations');
    await writeFile(path.join(theirs, 'notes.json'), '{"of": "somebody"}');
    expect(await refusal(theirs, home)).toContain('holds no conversations');
    await writeFile(path.join(theirs, 'x.json'), '{"format": "turnkeep.session", "version": 9}');
    expect(await refusal(path.join(theirs, 'x.json'), home)).toContain('version 9');
    await writeFile(path.join(theirs, 'x.json'), 'words');
    expect(await refusal(path.join(theirs, 'x.json'), home)).toContain('is not JSON');
    await rm(home, { recursive: true, force: true });
  });
});

describe('the command', () => {
  it('[IM8] tells a person how far it is, and everybody what was done', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    for (let n = 0; n < 20; n += 1) hermes.session(`s-${n}`, {}, turn('q', 'a', T));
    hermes.close();
    let [out, err] = ['', ''];
    const terminal = {
      out: (text: string) => {
        out += text;
      },
      err: (text: string) => {
        err += text;
      },
      isPerson: true,
    };
    expect(await importCommand().run([theirs, '--home', home], terminal, {})).toBe(0);
    expect(out).toBe('20 conversations imported (40 messages), 0 skipped because unchanged, 0 unreadable.\n');
    expect(err).toMatch(/\[#+\.*\] 50% of 20 conversations/);
    expect(err.endsWith('\r\x1b[K')).toBe(true);
  });

  it('[IM8] says how it is used and how it ends', async () => {
    const help = startMain(['import', '--help']);
    expect(await help.exited).toBe(0);
    expect(help.stdout()).toMatch(/^Usage: turnkeep import <home or file>/);
    const wrong = startMain(['import', '/nowhere/at/all', '--home', (await twoHomes()).home]);
    expect(await wrong.exited).toBe(2);
    expect(wrong.stderr()).toBe('turnkeep: /nowhere/at/all is not there.\n');
  });
});
