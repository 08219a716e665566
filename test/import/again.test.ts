/** The second import: only what is new comes, nothing is there twice, and two ways of going on are never mixed. */
import { readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome, stateBelow } from '../foreign/webui-home.ts';
import { startMain } from '../support/main-process.ts';
import { ask, counts, goOn, importFrom, providerHome, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;

async function homeWith(...ids: string[]) {
  const { theirs, home } = await twoHomes();
  const hermes = openHermesHome(theirs);
  for (const id of ids) hermes.session(id, { title: `About ${id}` }, turn(`${id}: a question`, `${id}: an answer`));
  return { theirs, home, hermes };
}

describe('a conversation that was imported before', () => {
  it('[IM3] is left alone while nothing is new there, and changes no byte of it', async () => {
    const { theirs, home, hermes } = await homeWith('one', 'two');
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 2 });
    const before = ask(home, 'SELECT * FROM messages');
    const there = stateBelow(theirs);
    const again = await importFrom(theirs, home);
    expect([again.code, counts(again)]).toEqual([0, { unchanged: 2 }]);
    expect(ask(home, 'SELECT * FROM messages')).toEqual(before);
    expect(stateBelow(theirs)).toEqual(there);
    hermes.close();
  });

  it('[IM3] grows by what was said there since, behind rows that keep their ids', async () => {
    const { theirs, home, hermes } = await homeWith('one', 'two');
    await importFrom(theirs, home);
    const server = await serve(home);
    const before = await server.messages('one');
    hermes.rows('one', turn('one: another question', 'one: another answer', T + 10));
    const again = await importFrom(theirs, home);
    expect([again.code, counts(again), again.report.messages]).toEqual([0, { extended: 1, unchanged: 1 }, 2]);
    const after = await server.messages('one');
    expect(after.slice(0, 2)).toEqual(before);
    expect(textsOf(after).slice(2)).toEqual(['one: another question', 'one: another answer']);
    expect((await server.call('GET', '/api/sessions/one')).json.session.message_count).toBe(4);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 2 });
    hermes.close();
  });

  it('[IM3][IM4] that went on there and here becomes two sessions, neither with a row of the other', async () => {
    const { theirs, home, hermes } = await homeWith('one');
    const provider = await providerHome(home);
    await importFrom(theirs, home);
    const server = await serve(home);
    await goOn(server, provider, 'one', 'said here');
    const here = await server.messages('one');
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
    hermes.rows('one', turn('said there', 'answered there', T + 10));
    const again = await importFrom(theirs, home);
    expect([again.code, counts(again)]).toEqual([1, { parted: 1 }]);
    expect(again.report.problems).toMatchObject([{ id: 'one', code: 'parted' }]);
    expect(await server.messages('one')).toEqual(here);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    const second = sessions.find((one: { session_id: string }) => one.session_id !== 'one');
    expect(second.title).toBe('About one (from theirs)');
    expect(textsOf(await server.messages(second.session_id))).toEqual([
      'one: a question',
      'one: an answer',
      'said there',
      'answered there',
    ]);
    // From now on it is the second one that follows what is said there.
    hermes.rows('one', turn('more', 'and more', T + 20));
    expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
    expect(await server.messages('one')).toEqual(here);
    expect(await goOn(server, provider, second.session_id)).toHaveLength(7);
    hermes.close();
  });

  it('[IM4] an edit here counts as going on', async () => {
    const { theirs, home, hermes } = await homeWith('one');
    await importFrom(theirs, home);
    const server = await serve(home);
    await server.messages('one');
    const { revision } = (await server.call('GET', '/api/sessions/one')).json.session;
    expect((await server.call('POST', '/api/sessions/one/clear', { revision })).status).toBe(200);
    hermes.rows('one', turn('said there', 'answered there', T + 10));
    expect(counts(await importFrom(theirs, home))).toEqual({ parted: 1 });
    expect(await server.messages('one')).toEqual([]);
    hermes.close();
  });

  it('[IM4] that is open in another process is left to the next run', async () => {
    const { theirs, home, hermes } = await homeWith('one');
    await importFrom(theirs, home);
    hermes.rows('one', turn('more', 'and more', T + 10));
    const db = new Database(path.join(home, 'state.db'));
    db.prepare(
      `INSERT INTO active_sessions (session_id, lease_id, surface, pid, live_session_id, epoch, started_at, updated_at)
       VALUES ('one', 'l', 'turnkeep', ?, 'x', 1, 1, 1)`,
    ).run(process.ppid);
    const busy = await importFrom(theirs, home);
    expect([busy.code, counts(busy)]).toEqual([1, { busy: 1 }]);
    db.exec('DELETE FROM active_sessions');
    db.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
    hermes.close();
  });

  it('[IM1] by two imports at the same time is there once, and nobody is told to do anything', async () => {
    const ids = Array.from({ length: 60 }, (_, n) => `s-${n}`);
    const { theirs, home, hermes } = await homeWith(...ids);
    const both = [startMain(['import', theirs, '--home', home]), startMain(['import', theirs, '--home', home])];
    for (const main of both) {
      expect(await main.exited, `${main.stderr()}${main.stdout()}`).toBe(0);
      expect(main.stdout()).not.toContain('run the import again');
    }
    expect(ask(home, 'SELECT count(*) AS n FROM sessions')).toEqual([{ n: 60 }]);
    expect(ask(home, 'SELECT count(*) AS n FROM messages')).toEqual([{ n: 120 }]);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 60 });
    hermes.close();
  });

  it('[IM4] a beginning that was edited there is another conversation', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    webui.save('one', [...turn('first', 'answer', T), ...turn('second', 'answer', T + 2)]);
    await importFrom(theirs, home);
    webui.save('one', [...turn('first', 'answer', T), ...turn('instead', 'other', T + 4), ...turn('x', 'y', T + 6)]);
    expect(counts(await importFrom(theirs, home))).toEqual({ parted: 1 });
    const server = await serve(home);
    expect(textsOf(await server.messages('one'))).toEqual(['first', 'answer', 'second', 'answer']);
  });

  it('[IM3] keeps the ids of its rows, also where its program has given them others since', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const rows = turn('a question', 'an answer', T);
    webui.save('one', rows);
    await importFrom(theirs, home);
    const server = await serve(home);
    const before = await server.messages('one');
    webui.save('one', [...rows.map((row, at) => ({ ...row, id: `m${at}` })), ...turn('more', 'and more', T + 10)]);
    expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
    const after = await server.messages('one');
    expect(after.slice(0, 2)).toEqual(before);
    expect(textsOf(after)).toEqual(['a question', 'an answer', 'more', 'and more']);
    expect(ask(home, 'SELECT message_id AS id FROM messages ORDER BY id')).toHaveLength(4);
  });

  it('[IM3] that was deleted here stays away, until it is asked for', async () => {
    const { theirs, home, hermes } = await homeWith('one');
    await importFrom(theirs, home);
    const server = await serve(home);
    expect((await server.call('DELETE', '/api/sessions/one')).status).toBe(204);
    hermes.rows('one', turn('said there', 'answered there', T + 10));
    const again = await importFrom(theirs, home);
    expect([again.code, counts(again)]).toEqual([0, { deleted: 1 }]);
    expect(counts(await importFrom(theirs, home, '--again'))).toEqual({ imported: 1 });
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions).toHaveLength(1);
    expect(textsOf(await server.messages(sessions[0].session_id))).toHaveLength(4);
    hermes.close();
  });

  it('[IM3] is known again when its home has moved', async () => {
    const { theirs, home, hermes } = await homeWith('one', 'two');
    hermes.close();
    await importFrom(theirs, home);
    await rename(theirs, `${theirs}-moved`);
    const more = openHermesHome(`${theirs}-moved`);
    more.rows('two', turn('more', 'and more', T + 10));
    more.close();
    expect(counts(await importFrom(`${theirs}-moved`, home))).toEqual({ unchanged: 1, extended: 1 });
    expect(counts(await importFrom(`${theirs}-moved`, home))).toEqual({ unchanged: 2 });
  });

  it('[IM3] a turn that was settled here is told better by what came of it there', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const run = 'cd'.repeat(16);
    const rows = turn('a question', 'an answer', T);
    const pending = { active_stream_id: run, pending_user_message: 'the next one', pending_started_at: T + 10 };
    webui.save('one', rows, pending);
    webui.journal('one', run, [['token', { text: 'half' }]], T + 11);
    await importFrom(theirs, home);
    const server = await serve(home);
    expect(textsOf(await server.messages('one')).slice(2, 4)).toEqual(['the next one', 'half']);
    webui.save('one', [...rows, ...turn('the next one', 'half and whole', T + 10)]);
    expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
    const after = await server.messages('one');
    expect(textsOf(after)).toEqual(['a question', 'an answer', 'the next one', 'half and whole']);
    expect(await server.messages('one')).toEqual(after);
  });
});

describe('a session here that has the same id', () => {
  it('[IM1] keeps it, and what is imported gets another one', async () => {
    const { theirs, home } = await twoHomes();
    const other = openHermesHome(`${theirs}-other`);
    other.session('one', {}, turn('of another home', 'indeed'));
    other.close();
    await importFrom(`${theirs}-other`, home);
    const hermes = openHermesHome(theirs);
    hermes.session('one', {}, turn('of this home', 'indeed'));
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
    const server = await serve(home);
    expect(textsOf(await server.messages('one'))[0]).toBe('of another home');
    expect((await server.call('GET', '/api/sessions')).json.sessions).toHaveLength(2);
  });
});

describe('a check', () => {
  it('[IM8] says what would be done, and makes and changes nothing', async () => {
    const { theirs, home, hermes } = await homeWith('one', 'two');
    hermes.close();
    const first = await importFrom(theirs, home, '--check');
    expect([first.code, counts(first), first.report.messages]).toEqual([0, { imported: 2 }, 4]);
    await expect(readFile(path.join(home, 'state.db'))).rejects.toThrow('ENOENT');
    await importFrom(theirs, home);
    const more = openHermesHome(theirs);
    more.rows('two', turn('more', 'and more', T + 10));
    more.close();
    const before = stateBelow(home);
    expect(counts(await importFrom(theirs, home, '--check'))).toEqual({ unchanged: 1, extended: 1 });
    const after = stateBelow(home);
    delete before['state.db-shm'];
    delete after['state.db-shm'];
    expect(after).toEqual(before);
  });
});
