/** Homes that were never meant to be read: odd names, pipes and links among the files, locks, and one that is ours. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Db } from '../../db/client.ts';
import { insertRecords } from '../../db/message-records.ts';
import { toMessageRecord } from '../../db/rows.ts';
import type { Message } from '../../server/core/terms.ts';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { openWebuiHome, stateBelow } from '../foreign/webui-home.ts';
import { ask, counts, importFrom, refusal, serve, textsOf, twoHomes } from './homes.ts';

const T = 1_700_000_000;

describe('names', () => {
  it('[IM1] that no address or file can have are ids of conversations all the same: these get others', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    const ids = [
      '../x',
      '/etc/passwd',
      'a'.repeat(300),
      'agent:main:☃',
      'a b',
      '.',
      '__proto__',
      'constructor',
      'Case',
      'case',
    ];
    for (const id of ids) hermes.session(id, {}, turn(`said in ${id}`, 'a', T));
    mkdirSync(path.join(theirs, 'attachments', 'a b'), { recursive: true });
    appendFileSync(path.join(theirs, 'attachments', 'a b', 'x.txt'), 'x');
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: ids.length });
    const server = await serve(home);
    const { sessions } = (await server.call('GET', '/api/sessions?limit=50')).json;
    const texts = await Promise.all(
      sessions.map(async (one: { session_id: string }) => textsOf(await server.messages(one.session_id))[0]),
    );
    expect(texts.sort()).toEqual(ids.map((id) => `said in ${id}`).sort());
    expect((await readdir(path.join(home, '..'))).sort()).toEqual(['ours', 'theirs']);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: ids.length });
  });
});

describe('files', () => {
  it('[IM6][IM8] that are pipes, folders and links: nobody waits for them, and no link leads out', async () => {
    const { theirs, home } = await twoHomes();
    const webui = openWebuiHome(theirs);
    const secret = path.join(theirs, '..', 'secret', 'linked');
    await mkdir(secret, { recursive: true });
    await writeFile(path.join(secret, 'key.txt'), 'secret');
    for (const id of ['good', 'linked', 'piped']) webui.save(id, turn(`of ${id}`, 'a', T));
    await mkdir(path.join(theirs, 'attachments', 'good'), { recursive: true });
    const pipe = (...names: string[]) => execFileSync('mkfifo', [path.join(theirs, ...names)]);
    await symlink(secret, path.join(theirs, 'attachments', 'linked'));
    await symlink('/dev/zero', path.join(theirs, 'attachments', 'good', 'zero'));
    pipe('attachments', 'good', 'pipe');
    await mkdir(path.join(theirs, 'attachments', 'good', 'folder'));
    await writeFile(path.join(theirs, 'attachments', 'good', 'real.txt'), 'real');
    mkdirSync(path.join(webui.sessions, '_run_journal', 'good'), { recursive: true });
    pipe('sessions', '_run_journal', 'good', `${'ab'.repeat(16)}.jsonl`);
    await symlink(secret, path.join(webui.sessions, '_run_journal', 'linked'));
    mkdirSync(path.join(webui.sessions, '_turn_journal'));
    pipe('sessions', '_turn_journal', 'piped~1.jsonl');
    pipe('sessions', 'a-pipe.json');
    pipe('sessions', 'good.json.bak');
    await mkdir(path.join(webui.sessions, 'a-folder.json'));
    pipe('projects.json');
    pipe('sessions', '_deleted_webui_sessions.json');
    pipe('sessions', '_index.json');
    const imported = await importFrom(theirs, home);
    expect(counts(imported)).toEqual({ imported: 3, unreadable: 2 });
    expect(imported.report).toMatchObject({ attachments: 1, journals: 0 });
    expect(await readdir(path.join(home, 'attachments'))).toEqual(['good']);
    expect(await readdir(path.join(home, 'attachments', 'good'))).toEqual(['real.txt']);
    expect(await refusal(path.join(theirs, 'projects.json'), home)).toContain('neither a folder nor a file');
  });

  it('[IM1] a long transcript of long messages is no text that is too long', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    const long = 'word '.repeat(500_000);
    const rows = Array.from({ length: 9 }, (_, n) => ({ role: n % 2 ? 'assistant' : 'user', content: `${n}${long}` }));
    hermes.session('long', {}, rows);
    hermes.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    expect(ask(home, 'SELECT count(*) AS n, min(length(content)) AS least FROM messages')).toEqual([
      { n: 9, least: long.length + 1 },
    ]);
    // A statement takes a few millions of characters: all rows as one text could be longer than any text.
    const statements: unknown[] = [];
    const counting = { run: (statement: unknown) => statements.push(statement) } as unknown as Db;
    insertRecords(counting, rows, (row) => toMessageRecord('long', { id: 'x', timestamp: 1, ...row } as Message));
    expect(statements).toHaveLength(3);
  });
});

describe('a database', () => {
  it.each(['DELETE', 'TRUNCATE', 'PERSIST', 'MEMORY', 'OFF', 'WAL'])(
    '[IM1] in journal mode %s, open and closed, is read and left as it is',
    async (mode) => {
      const { theirs, home } = await twoHomes();
      const hermes = openHermesHome(theirs, 'current', mode);
      hermes.session('one', {}, turn('q', 'a', T));
      expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
      hermes.rows('one', turn('more', 'and more', T + 10));
      hermes.close();
      const before = stateBelow(theirs);
      expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
      expect(stateBelow(theirs)).toEqual(before);
    },
  );

  it('[IM1] that stays locked ends the import with a sentence, and what is there is no conversation that cannot be read', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs, 'current', 'DELETE');
    hermes.session('one', {}, turn('q', 'a', T));
    hermes.db.exec('BEGIN EXCLUSIVE');
    expect(await refusal(theirs, home)).toContain('stays locked');
    hermes.db.exec('COMMIT');
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 1 });
    hermes.close();
  });

  it('[IM1] a copy of the home in the middle of a write is what was committed', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs, 'current', 'DELETE');
    hermes.session('one', {}, turn('q', 'a', T));
    hermes.db.pragma('cache_size = 2');
    hermes.db.exec('BEGIN');
    hermes.db.prepare("UPDATE messages SET content = 'never committed'").run();
    for (let n = 0; n < 200; n += 1) {
      hermes.db
        .prepare("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('one', 'user', ?, 1)")
        .run('x'.repeat(3_000));
    }
    await cp(theirs, `${theirs}-copy`, { recursive: true });
    hermes.db.exec('ROLLBACK');
    hermes.close();
    expect((await readdir(`${theirs}-copy`)).sort()).toContain('state.db-journal');
    const before = stateBelow(`${theirs}-copy`);
    const imported = await importFrom(`${theirs}-copy`, home).catch((error: Error) => error);
    expect(stateBelow(`${theirs}-copy`)).toEqual(before);
    if (imported instanceof Error) throw imported;
    expect(counts(imported)).toEqual({ imported: 1 });
    expect(textsOf(ask(home, 'SELECT content FROM messages ORDER BY id'))).toEqual(['q', 'a']);
  });

  it('[IM3] that was vacuumed, or made anew with the same conversations, brings nothing twice', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    hermes.session('gone', {}, turn('x', 'y', T));
    hermes.session('one', {}, turn('q', 'a', T));
    await importFrom(theirs, home);
    hermes.db.exec("DELETE FROM messages WHERE session_id = 'gone'; DELETE FROM sessions WHERE id = 'gone'; VACUUM");
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 1 });
    hermes.close();
    await rename(theirs, `${theirs}-old`);
    const anew = openHermesHome(theirs);
    anew.session('one', {}, [...turn('q', 'a', T), ...turn('more', 'and more', T + 10)]);
    anew.close();
    expect(counts(await importFrom(theirs, home))).toEqual({ extended: 1 });
  });
});

describe('our own home', () => {
  it('[IM1] is not imported into itself, by whatever name; one inside it is', async () => {
    const { theirs, home } = await twoHomes();
    const hermes = openHermesHome(theirs);
    hermes.session('one', {}, turn('q', 'a', T));
    hermes.close();
    await importFrom(theirs, home);
    await symlink(home, `${home}-link`);
    for (const place of [home, `${home}-link`, path.join(home, 'state.db'), path.join(home, 'sessions')]) {
      expect(await refusal(place, home), place).toContain('is this home itself');
    }
    expect(await refusal(path.join(home, 'sessions', 'one.json'), home)).toContain('is this home itself');
    expect(await refusal(home, `${home}-link`)).toContain('is this home itself');
    await rename(theirs, path.join(home, 'old'));
    expect(counts(await importFrom(path.join(home, 'old'), home))).toEqual({ unchanged: 1 });
    expect(ask(home, 'SELECT count(*) AS n FROM sessions')).toEqual([{ n: 1 }]);
  });
});

/** A disk of its own; null where nobody may make one. */
function smallDisk(place: string, size: string): boolean {
  mkdirSync(place, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', place], { stdio: 'ignore' });
  } catch {
    return false;
  }
  onTestFinished(() => void execFileSync('umount', ['-l', place]));
  return true;
}

describe('a disk', () => {
  it('[IM1] of the source that cannot be written to is no hindrance', async ({ skip }) => {
    const { theirs, home } = await twoHomes();
    if (!smallDisk(theirs, '20m')) return skip();
    const hermes = openHermesHome(theirs);
    hermes.session('one', {}, turn('q', 'a', T));
    const webui = openWebuiHome(theirs);
    webui.save('file', turn('q', 'a', T));
    hermes.close();
    execFileSync('mount', ['-o', 'remount,ro', theirs]);
    expect(counts(await importFrom(theirs, home))).toEqual({ imported: 2 });
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 2 });
  });

  it('[IM1] of ours that is full ends the import with a sentence, and once there is room it goes on', async ({
    skip,
  }) => {
    const { theirs, home } = await twoHomes();
    if (!smallDisk(home, '8m')) return skip();
    const hermes = openHermesHome(theirs);
    for (let n = 0; n < 40; n += 1) hermes.session(`s-${n}`, {}, turn(`q${n} ${'x'.repeat(100_000)}`, 'a', T + n));
    hermes.close();
    expect(await refusal(theirs, home)).toContain('the disk is full');
    execFileSync('mount', ['-o', 'remount,size=100m', home]);
    const db = new Database(path.join(home, 'state.db'), { readonly: true });
    const shown = db.prepare(
      'SELECT count(m.id) AS n FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id',
    );
    expect(shown.all().every((row) => (row as { n: number }).n === 2)).toBe(true);
    db.close();
    const rest = await importFrom(theirs, home);
    expect(rest.code).toBe(0);
    expect(ask(home, 'SELECT count(*) AS n FROM imported_sessions WHERE files_done = 1')).toEqual([{ n: 40 }]);
    const names = (await readdir(path.join(home, 'sessions'))).filter((name) => !name.startsWith('_'));
    expect(names).toHaveLength(40);
    expect(JSON.parse(await readFile(path.join(home, 'sessions', 's-39.json'), 'utf8')).messages).toHaveLength(2);
    expect(counts(await importFrom(theirs, home))).toEqual({ unchanged: 40 });
  });
});
