/** A conversation that went through compressions is imported as its person saw it: one, with all that was said in it. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome, stateBelow } from '../foreign/webui-home.ts';
import type { TestServer } from '../support/test-server.ts';
import { ask, counts, goOn, importFrom, providerHome, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;
const COMPRESSED = { end_reason: 'compression' };

const listed = async (server: TestServer): Promise<string[]> =>
  (await server.call('GET', '/api/sessions')).json.sessions.map((one: { session_id: string }) => one.session_id);

/** Three sessions, each behind a compression of the one before it; the last begins with what was carried over. */
async function chain() {
  const { theirs, home } = await twoHomes();
  const hermes = openHermesHome(theirs);
  hermes.session('root', { title: 'Talk', ...COMPRESSED, ended_at: T + 5 }, turn('q1', 'a1', T));
  hermes.session(
    'middle',
    { parent_session_id: 'root', started_at: T + 10, ...COMPRESSED, ended_at: T + 15 },
    turn('q2', 'a2', T + 10),
  );
  hermes.session('tip', { parent_session_id: 'middle', started_at: T + 20 }, [
    { role: 'user', content: '[CONTEXT COMPACTION] of q1 and q2', timestamp: T + 20, display_kind: 'hidden' },
    ...turn('q2', 'a2', T + 10),
    ...turn('q3', 'a3', T + 30),
  ]);
  return { theirs, home, hermes };
}

const WHOLE = ['q1', 'a1', 'q2', 'a2', 'q3', 'a3'];
const GIVEN = [
  // A provider is sent no two prompts in a row.
  'user: [CONTEXT COMPACTION] of q1 and q2\n\nq2',
  'assistant: a2',
  'user: q3',
  'assistant: a3',
  'user: and now?',
];

describe('sessions of a state.db, one behind the compression of the other', () => {
  it('[IM7] are one in the list, with all that was said, and its model is given what it was given there', async () => {
    const { theirs, home, hermes } = await chain();
    hermes.close();
    const provider = await providerHome(home);
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 3 });
    const server = await serve(home);
    expect(await listed(server)).toEqual(['tip']);
    expect(await server.call('GET', '/api/sessions/tip')).toMatchObject({
      json: { session: { title: 'Talk', created_at: T, message_count: 6 } },
    });
    expect(textsOf(await server.messages('tip'))).toEqual(WHOLE);
    const files = stateBelow(path.join(home, 'sessions'));
    expect(textsOf(await server.messages('tip'))).toEqual(WHOLE);
    expect(stateBelow(path.join(home, 'sessions'))).toEqual(files);
    // Links to those before it go on working.
    expect(textsOf(await server.messages('middle'))).toEqual(['q1', 'a1', 'q2', 'a2']);
    const sent = await goOn(server, provider, 'tip');
    expect(sent).toEqual(GIVEN);
    const again = await goOn(server, provider, 'tip', 'and then?');
    expect([again[0], again.length, again.at(-1)]).toEqual([GIVEN[0], 7, 'user: and then?']);
    expect(again.join('\n')).not.toMatch(/q1$/m);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 3 });
  });

  it('[IM3] that are compressed once more there are one again, unless somebody went on with it here', async () => {
    const { theirs, home, hermes } = await chain();
    const provider = await providerHome(home);
    await importFrom(theirs, home);
    hermes.db.prepare("UPDATE sessions SET end_reason = 'compression', ended_at = ? WHERE id = 'tip'").run(T + 35);
    hermes.session('next', { parent_session_id: 'tip', started_at: T + 40 }, turn('q4', 'a4', T + 40));
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1, unchanged: 3 });
    const server = await serve(home);
    expect(await listed(server)).toEqual(['next']);
    expect(textsOf(await server.messages('next'))).toEqual([...WHOLE, 'q4', 'a4']);
    // No row of it says that it follows a compression: its model was given these alone all the same.
    expect(await goOn(server, provider, 'next')).toEqual(['user: q4', 'assistant: a4', 'user: and now?']);
    expect(await goOn(server, provider, 'next', 'and then?')).toHaveLength(5);
    hermes.db.prepare("UPDATE sessions SET end_reason = 'compression', ended_at = ? WHERE id = 'next'").run(T + 45);
    hermes.session('last', { parent_session_id: 'next', started_at: T + 50 }, turn('q5', 'a5', T + 50));
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1, unchanged: 4 });
    expect((await listed(server)).sort()).toEqual(['last', 'next']);
    expect(textsOf(await server.messages('last'))).toEqual([...WHOLE, 'q4', 'a4', 'q5', 'a5']);
  });

  it('[IM1] are one in another home of Turnkeep as well, and in the next one', async () => {
    const { theirs, home, hermes } = await chain();
    hermes.session('hidden', { hidden: 1 }, turn('h', 'h', T));
    hermes.close();
    openWebuiHome(theirs).save('hidden', turn('h', 'h', T));
    await importFrom(theirs, home);
    const first = await serve(home);
    expect(await listed(first)).toEqual(['tip']);
    await first.close();
    const next = `${home}-next`;
    expect(counts(await importFrom(home, next))).toEqual({ imported: 4 });
    const provider = await providerHome(next);
    const server = await serve(next);
    expect(await listed(server)).toEqual(['tip']);
    expect(textsOf(await server.messages('tip'))).toEqual(WHOLE);
    expect(await goOn(server, provider, 'tip')).toEqual(GIVEN);
    expect(counts(await importFrom(home, next))).toEqual({ unchanged: 4 });
  });

  it('[IM1] come before what continues them, and branches and helpers stay what they are', async () => {
    const { theirs, home, hermes } = await chain();
    hermes.session('branch', { parent_session_id: 'tip', model_config: '{"_branched_from": "tip"}' }, turn('b', 'b'));
    hermes.session('helper', { parent_session_id: 'root', started_at: T + 1, source: 'subagent' }, turn('h', 'h'));
    hermes.close();
    await importFrom(theirs, home);
    const server = await serve(home);
    expect((await listed(server)).sort()).toEqual(['branch', 'tip']);
    expect(ask(home, 'SELECT id, parent_session_id AS parent FROM sessions WHERE parent IS NOT NULL')).toEqual([
      { id: 'middle', parent: 'root' },
      { id: 'tip', parent: 'middle' },
    ]);
    expect(textsOf(await server.messages('branch'))).toEqual(['b', 'b']);
  });

  it('[IM7] that name each other in a circle come, and end', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    hermes.db.pragma('foreign_keys = OFF');
    hermes.session('a', { parent_session_id: 'b', ...COMPRESSED, ended_at: 1 }, turn('qa', 'aa'));
    hermes.session('b', { parent_session_id: 'a', ...COMPRESSED, ended_at: 1 }, turn('qb', 'ab'));
    hermes.session('self', { parent_session_id: 'self', ...COMPRESSED, ended_at: 1 }, turn('qs', 'as'));
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 3 });
    const server = await serve(home);
    const texts = await Promise.all((await listed(server)).map(async (id) => textsOf(await server.messages(id))));
    expect(texts.flat()).toEqual(expect.arrayContaining(['qa', 'aa', 'qb', 'ab', 'qs', 'as']));
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 3 });
  });
});

describe('sidecars, one behind the compression of the other', () => {
  it('[IM7][IM6] are one as well, with the attachments of all of them', async () => {
    const { theirs, home } = await twoHomes();
    const provider = await providerHome(home);
    const webui = openWebuiHome(theirs);
    const photo = [{ name: 'photo.png', path: path.join(theirs, 'attachments', 'z-first', 'photo.png') }];
    await mkdir(path.dirname(photo[0]!.path), { recursive: true });
    await writeFile(photo[0]!.path, 'a photo');
    // By their names the one that goes on would come first.
    webui.save(
      'z-first',
      [{ role: 'user', content: 'look', timestamp: T, attachments: photo }, turn('', 'a cat', T)[1]!],
      {
        pre_compression_snapshot: true,
      },
    );
    const context_messages = [
      { role: 'user', content: '[CONTEXT COMPACTION] a cat', timestamp: T + 5 },
      ...turn('and this', 'a dog', T + 10),
    ];
    webui.save('a-second', turn('and this', 'a dog', T + 10), { parent_session_id: 'z-first', context_messages });
    webui.save('fork', turn('look', 'a bird', T), { parent_session_id: 'a-second', session_source: 'fork' });
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 3 });
    const server = await serve(home);
    expect((await listed(server)).sort()).toEqual(['a-second', 'fork']);
    const rows = await server.messages('a-second');
    expect(textsOf(rows)).toEqual(['look', 'a cat', 'and this', 'a dog']);
    expect(rows[0].attachments).toEqual(['photo.png']);
    expect(await readdir(path.join(home, 'attachments', 'a-second'))).toEqual(['photo.png']);
    expect(await readFile(path.join(home, 'attachments', 'a-second', 'photo.png'), 'utf8')).toBe('a photo');
    expect(await goOn(server, provider, 'a-second')).toEqual([
      'user: [CONTEXT COMPACTION] a cat\n\nand this',
      'assistant: a dog',
      'user: and now?',
    ]);
    expect(textsOf(await server.messages('fork'))).toEqual(['look', 'a bird']);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 3 });
  });
});

describe('profiles', () => {
  it('[IM8] below a home are homes of their own, and a line of the report names them', async () => {
    const { theirs, home, hermes } = await chain();
    hermes.close();
    const profile = path.join(theirs, 'profiles', 'work');
    const other = openHermesHome(profile);
    other.session('of-work', {}, turn('q', 'a', T));
    other.close();
    const imported = await importFrom(theirs, home);
    expect([imported.code, counts(imported)]).toEqual([0, { imported: 3 }]);
    expect(imported.report.problems).toMatchObject([{ id: null, code: 'profile' }]);
    expect(imported.report.problems[0]!.message).toContain(profile);
    expect(counts(await importFrom(profile, home))).toEqual({ imported: 1 });
  });
});
