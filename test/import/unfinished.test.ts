/** An import that ends before its end: what is visible is whole, and the next run finishes it, with nothing twice. */
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome } from '../foreign/webui-home.ts';
import { startMain } from '../support/main-process.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { until } from '../support/until.ts';
import { ask, counts, goOn, importFrom, providerHome, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;
const SESSIONS = 120;

const idOf = (n: number): string => `many-${String(n).padStart(3, '0')}`;

/** Sessions with sidecars that have a field and a context which no other store knows. */
async function manySessions() {
  const { theirs, home } = await twoHomes();
  const webui = openWebuiHome(theirs);
  const hermes = openHermesHome(theirs);
  for (let n = 0; n < SESSIONS; n += 1) {
    const rows = turn(`question ${n}`, `answer ${n}`, T + n);
    webui.save(idOf(n), rows, { personality: `p${n}`, created_at: T + n });
    hermes.session(idOf(n), { source: 'webui', started_at: T + n }, rows);
  }
  hermes.close();
  return { theirs, home };
}

async function expectAllThere(home: string): Promise<void> {
  expect(ask(home, 'SELECT count(*) AS n FROM sessions')).toEqual([{ n: SESSIONS }]);
  const rows = ask<{ n: number }>(home, 'SELECT count(*) AS n FROM messages GROUP BY session_id');
  expect(rows.every(({ n }) => n === 2)).toBe(true);
  expect(ask(home, 'SELECT * FROM active_sessions')).toEqual([]);
  expect(ask(home, 'SELECT count(*) AS n FROM imported_sessions WHERE files_done = 1')).toEqual([{ n: SESSIONS }]);
  for (let n = 0; n < SESSIONS; n += 1) {
    const sidecar = JSON.parse(await readFile(path.join(home, 'sessions', `${idOf(n)}.json`), 'utf8'));
    expect(sidecar).toMatchObject({ personality: `p${n}`, message_count: 2 });
    expect(textsOf(sidecar.messages)).toEqual([`question ${n}`, `answer ${n}`]);
  }
}

const sidecarsIn = async (home: string): Promise<number> =>
  (await readdir(path.join(home, 'sessions')).catch(() => [])).filter((name) => name.endsWith('.json')).length;

describe('a process that ends', () => {
  it('[IM1] killed again and again at any moment it gets there, each conversation once', async () => {
    const { theirs, home } = await manySessions();
    const seed = testSeed();
    const random = seededRandom(seed);
    for (let round = 0; round < 4; round += 1) {
      const before = await sidecarsIn(home);
      const main = startMain(['import', theirs, '--home', home]);
      const goal = before + 1 + Math.floor(random() * 25);
      await until(
        `some more are there (seed ${seed})`,
        async () => (await sidecarsIn(home)) >= Math.min(goal, SESSIONS),
      );
      main.process.kill('SIGKILL');
      await main.exited;
      // Whatever is visible is whole.
      const shown = ask<{ n: number }>(
        home,
        'SELECT count(m.id) AS n FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id',
      );
      expect(shown.every(({ n }) => n === 2)).toBe(true);
    }
    const last = startMain(['import', theirs, '--home', home]);
    expect(await last.exited, last.stderr()).toBe(0);
    await expectAllThere(home);
    const again = await importFrom(theirs, home);
    expect(counts(again)).toEqual({ unchanged: SESSIONS });
  });

  it('[IM1] interrupted it ends in order, says so, and goes on the next time', async () => {
    const { theirs, home } = await manySessions();
    const main = startMain(['import', theirs, '--home', home]);
    await until('some are there', async () => (await sidecarsIn(home)) > 3);
    main.process.kill('SIGINT');
    expect(await main.exited, main.stderr()).toBe(130);
    expect(main.stdout()).toContain('Interrupted. Run it again');
    expect(ask(home, 'SELECT * FROM active_sessions')).toEqual([]);
    expect(ask(home, 'SELECT * FROM imported_sessions WHERE files_done = 0')).toEqual([]);
    const last = startMain(['import', theirs, '--home', home]);
    expect(await last.exited, last.stderr()).toBe(0);
    await expectAllThere(home);
  });
});

describe('a session whose files did not come any more', () => {
  async function withoutFiles() {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const row = { role: 'assistant', content: 'an answer', timestamp: T + 1, _turnDuration: 7 };
    const rows = [turn('a question', '', T)[0]!, row];
    const context_messages = [...rows.map(({ role, content, timestamp }) => ({ role, content, timestamp }))];
    webui.save('one', rows, { personality: 'kept', context_messages });
    await importFrom(theirs, home);
    // As after a death between the two steps.
    await rm(path.join(home, 'sessions', 'one.json'));
    const db = new Database(path.join(home, 'state.db'));
    db.exec('UPDATE imported_sessions SET files_done = 0');
    db.close();
    const sidecar = async () => JSON.parse(await readFile(path.join(home, 'sessions', 'one.json'), 'utf8'));
    return { theirs, home, sidecar };
  }

  it('[IM1] is readable at once, and the next run brings what only its sidecar has', async () => {
    const { theirs, home, sidecar } = await withoutFiles();
    const server = await serve(home);
    expect(textsOf(await server.messages('one'))).toEqual(['a question', 'an answer']);
    expect((await sidecar()).personality).toBeUndefined();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    expect(await sidecar()).toMatchObject({ personality: 'kept', messages: [{}, { _turnDuration: 7 }] });
    expect(textsOf(await server.messages('one'))).toEqual(['a question', 'an answer']);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
  });

  it('[IM1] that somebody went on with meanwhile keeps what was said, and gets the rest', async () => {
    const { theirs, home, sidecar } = await withoutFiles();
    const provider = await providerHome(home);
    const server = await serve(home);
    await goOn(server, provider, 'one', 'said here');
    const before = await server.messages('one');
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    expect(await sidecar()).toMatchObject({ personality: 'kept', messages: [{}, { _turnDuration: 7 }, {}, {}] });
    expect(await server.messages('one')).toEqual(before);
    const sent = await goOn(server, provider, 'one', 'and more');
    expect([sent.length, sent[0], sent[2], sent.at(-1)]).toEqual([
      5,
      'user: a question',
      'user: said here',
      'user: and more',
    ]);
  });
});

describe('beside a server', () => {
  it('[IM1] what is imported is in its list and goes on, while it answers somebody else', async () => {
    const { theirs, home } = await manySessions();
    const provider = await providerHome(home);
    const server = await serve(home);
    const own = await server.session({ title: 'Ours' });
    const asked = server.prompt(own, 'script:chunks=200,delay=5,id=a');
    const main = startMain(['import', theirs, '--home', home]);
    await asked;
    const isThere = async () => (await server.call('GET', `/api/sessions/${idOf(0)}`)).status === 200;
    await until('the first is there', isThere);
    expect(textsOf(await server.messages(idOf(0)))).toEqual(['question 0', 'answer 0']);
    expect(await main.exited, main.stderr()).toBe(0);
    expect((await goOn(server, provider, idOf(5))).slice(0, 2)).toEqual(['user: question 5', 'assistant: answer 5']);
    const { total } = (await server.call('GET', '/api/sessions')).json;
    expect(total).toBe(SESSIONS + 1);
  });

  it('[IM4] a session that runs right now goes on here: it is not touched', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const hermes = openHermesHome(theirs);
    hermes.session('one', {}, turn('a question', 'an answer'));
    await importFrom(theirs, home);
    const server = await serve(home);
    const hold = provider.hold();
    provider.next({ hold }, { text: 'at last' });
    await server.prompt('one', 'wait');
    await provider.waitForRequests(1);
    hermes.rows('one', turn('said there', 'answered there', T + 10));
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ parted: 1 });
    hold.release();
    await until('it has ended', async () => (await server.messages('one')).length === 4);
    expect(textsOf(await server.messages('one'))).toEqual(['a question', 'an answer', 'wait', 'at last']);
  });
});
