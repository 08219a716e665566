/** Homes of other programs that were never meant to be read: pipes and links among the files, locks that stay, half writes. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { cp, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { openHermesHome, turn } from './hermes-home.ts';
import { openWebuiHome, stateBelow } from './webui-home.ts';

describe('files', () => {
  it('[FH1] that are pipes and devices: nobody waits for them, and the other sessions are there', async () => {
    const folder = path.join(await temporaryFolder(), 'webui');
    const webui = openWebuiHome(folder);
    webui.save('good', turn('q', 'a'), { title: 'Good' });
    webui.save('run', turn('q', 'a'), { pending_user_message: 'p', active_stream_id: 'ab'.repeat(16) });
    const pipe = (...names: string[]) => execFileSync('mkfifo', [path.join(webui.sessions, ...names)]);
    for (const name of ['_run_journal/run', '_turn_journal'])
      mkdirSync(path.join(webui.sessions, name), { recursive: true });
    pipe('_run_journal', 'run', `${'ab'.repeat(16)}.jsonl`);
    pipe('_turn_journal', 'good~1.jsonl');
    for (const name of ['a-pipe.json', 'good.json.bak', '_index.json', '_deleted_webui_sessions.json']) pipe(name);
    await symlink('/dev/zero', path.join(webui.sessions, 'no-end.json'));
    const server = await startTestServer({ config: `foreign: {sessions_dir: ${webui.sessions}}` });
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions.map((one: { session_id: string }) => one.session_id)).toEqual(
      expect.arrayContaining(['good', 'run']),
    );
    expect(await server.messages('good')).toHaveLength(2);
    expect((await server.messages('run'))[2]!.content).toBe('p');
    expect((await server.call('GET', '/api/sessions/good/export')).status).toBe(200);
  });
});

describe('a database', () => {
  it('[FH2][FH3] whose program died in the middle of a write is read as it was committed, and left so', async () => {
    const home = path.join(await temporaryFolder(), 'hermes');
    const hermes = openHermesHome(home, 'current', 'DELETE');
    hermes.session('one', {}, turn('q', 'a'));
    hermes.db.pragma('cache_size = 2');
    hermes.db.exec("BEGIN; UPDATE messages SET content = 'never committed'");
    const insert = hermes.db.prepare(
      "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('one', 'user', ?, 1)",
    );
    for (let n = 0; n < 200; n += 1) insert.run('x'.repeat(3_000));
    // What a power cut leaves: half of the write, and the journal that takes it back.
    await cp(home, `${home}-cut`, { recursive: true });
    hermes.db.exec('ROLLBACK');
    hermes.close();
    const before = stateBelow(`${home}-cut`);
    const server = await startTestServer({ config: `foreign: {state_db: ${path.join(`${home}-cut`, 'state.db')}}` });
    expect((await server.messages('one')).map((row) => row.content)).toEqual(['q', 'a']);
    expect(stateBelow(`${home}-cut`)).toEqual(before);
    // Its program comes back.
    const again = openHermesHome(`${home}-cut`, 'current', 'DELETE');
    again.rows('one', turn('more', 'and more', 1_700_000_010));
    expect(await server.messages('one')).toHaveLength(4);
    again.close();
  });

  it('[FH1] that stays locked costs our own list one wait and no more, and is read again once it can be', async () => {
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'), 'current', 'DELETE');
    hermes.session('theirs', { title: 'Theirs' }, turn('q', 'a'));
    const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
    await server.session({ title: 'Ours' });
    const titles = async () =>
      (await server.call('GET', '/api/sessions')).json.sessions.map((one: { title: string }) => one.title).sort();
    expect(await titles()).toEqual(['Ours', 'Theirs']);
    hermes.db.exec("BEGIN EXCLUSIVE; UPDATE sessions SET title = 'Another'");
    expect(await titles()).toEqual(['Ours', 'Theirs']);
    // Fifty waits would be a hundred seconds, more than a test has.
    for (let n = 0; n < 50; n += 1) expect(await titles()).toEqual(['Ours', 'Theirs']);
    hermes.db.exec('COMMIT');
    expect(await titles()).toEqual(['Another', 'Ours']);
    hermes.close();
  });
});
