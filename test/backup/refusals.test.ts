/** What backup and restore refuse, what they say then, and that they change nothing. */
import { writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { backUp } from '../../server/backup/backup.ts';
import { createProgress } from '../../server/backup/progress.ts';
import { filesOf } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { serveMain, startMain } from '../support/main-process.ts';
import { backedUp, fails, namesIn, quietHome, restored, succeeds } from './homes.ts';

describe('restore', () => {
  it('[BK4] never replaces a home, and names the process that works on it', async () => {
    const home = await quietHome(1);
    const file = await backedUp(home);
    const before = [await filesOf(home), await readFile(path.join(home, 'state.db'))];
    expect(await fails(1, 'restore', file, '--home', home)).toMatch(
      / is a home already, .*--home DIR\) or move it away/,
    );
    expect([await filesOf(home), await readFile(path.join(home, 'state.db'))]).toEqual(before);
    const server = await serveMain(home);
    expect(await fails(1, 'restore', file, '--home', home)).toContain(`(pid ${server.process.pid})`);
    // Also through a link, and when the files of the server are half gone.
    const link = path.join(await temporaryFolder(), 'link');
    await symlink(home, link);
    expect(await fails(1, 'restore', file, '--home', link)).toContain(`(pid ${server.process.pid})`);
    expect((await server.call('GET', '/api/sessions')).json.sessions).toHaveLength(1);
  });

  it('[BK4] never mixes with what is there, but takes the place of an empty folder', async () => {
    const file = await backedUp(await quietHome(1));
    const folder = await temporaryFolder();
    const home = path.join(folder, 'home');
    await mkdir(path.join(home, 'sessions'), { recursive: true });
    expect(await fails(1, 'restore', file, '--home', home)).toContain('is not empty');
    await writeFile(path.join(folder, 'file'), 'mine');
    expect(await fails(1, 'restore', file, '--home', path.join(folder, 'file'))).toContain('is a file');
    expect(await namesIn(folder)).toEqual(['file', 'home', 'home/sessions']);
    const empty = path.join(folder, 'empty');
    await mkdir(empty);
    const { stdout, stderr } = await succeeds('restore', file, '--home', empty);
    expect(stdout).toMatch(
      /^1 conversation with 4 messages, as of .*\nStart it with: turnkeep serve --home .*\/empty\n$/,
    );
    expect(stderr).toBe('');
    expect((await stat(path.join(empty, 'state.db'))).mode & 0o777).toBe(0o600);
  });

  it('[BK4] says how it is called, and what is wrong with a call', async () => {
    const help = await succeeds('restore', '--help');
    expect(help.stdout).toMatch(/^Usage: turnkeep restore FILE/);
    for (const args of [[], ['one', 'two'], ['one', '--what']]) {
      expect(await fails(1, 'restore', ...args)).toContain('Usage: turnkeep restore FILE');
    }
    expect(await fails(1, 'restore', 'one', '--home', '')).toContain('--home is empty');
    const folder = await temporaryFolder();
    expect(await fails(1, 'restore', folder, '--home', path.join(folder, 'home'))).toContain(
      'a folder where a file should be',
    );
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('backup', () => {
  it('[BK1][BK6] goes into the home without a server, changes nothing else there, and is in no other backup', async () => {
    const home = await quietHome(1);
    await writeFile(path.join(home, '.env'), 'TURNKEEP_LOG_LEVEL=warn\n');
    const [names, database] = [await namesIn(home), await readFile(path.join(home, 'state.db'))];
    const { stdout, stderr } = await succeeds('backup', '--home', home);
    const [backup = '', ...more] = await readdir(path.join(home, 'backups'));
    expect(backup).toMatch(/^turnkeep-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.tar\.gz$/);
    expect(more).toEqual([]);
    expect(stdout).toContain(`1 conversation with 4 messages: ${path.join(home, 'backups', backup)} (`);
    expect(stdout).toContain('It holds the secrets of .env');
    expect(stderr).toBe('');
    // Beside what SQLite makes for whoever looks at its file.
    const added = ['backups', `backups/${backup}`, 'state.db-shm', 'state.db-wal'];
    expect((await namesIn(home)).filter((name) => !added.includes(name))).toEqual(names);
    expect(await readFile(path.join(home, 'state.db'))).toEqual(database);

    const again = await backedUp(home);
    const there = await namesIn(await restored(again));
    expect(there).toEqual(names);
    expect(there).toContain('.env');
    const without = await backedUp(home, '--without-secrets');
    expect(await namesIn(await restored(without))).toEqual(there.filter((name) => name !== '.env'));
  });

  it('[BK6] follows no link, and refuses a home that is not whole without one', async () => {
    const home = await quietHome(1);
    const folder = await temporaryFolder();
    await writeFile(path.join(folder, 'secret'), 'of somebody else');
    await symlink(path.join(folder, 'secret'), path.join(home, 'link'));
    await symlink(folder, path.join(home, 'more'));
    const to = path.join(await temporaryFolder(), 'deep', 'my.tar.gz');
    const { stderr } = await succeeds('backup', '--home', home, '--to', to);
    expect(stderr).toMatch(/^turnkeep: link is left out: .*\nturnkeep: more is left out: .*\n$/);
    expect(await namesIn(await restored(to))).not.toEqual(expect.arrayContaining(['link']));
    await rename(path.join(home, 'sessions'), path.join(folder, 'sessions'));
    await symlink(path.join(folder, 'sessions'), path.join(home, 'sessions'));
    expect(await fails(1, 'backup', '--home', home)).toContain('sessions in');
    expect(await readdir(home)).not.toContain('backups');
  });

  it('[BK3] takes no place that is taken, and none within what it copies', async () => {
    const home = await quietHome(1);
    const folder = await temporaryFolder();
    const file = path.join(folder, 'mine.tar.gz');
    await writeFile(file, 'mine');
    expect(await fails(1, 'backup', '--home', home, '--to', file)).toContain('is there already');
    expect(await readFile(file, 'utf8')).toBe('mine');
    const within = path.join(home, 'sessions', 'backup.tar.gz');
    expect(await fails(1, 'backup', '--home', home, '--to', within)).toContain('lies in the home itself');
    expect(await fails(1, 'backup', '--home', folder)).toContain('there is no state.db');
    expect(await fails(1, 'backup', '--home', home, 'more')).toContain('Usage: turnkeep backup');
    expect((await succeeds('backup', '--help')).stdout).toMatch(/^Usage: turnkeep backup/);
    expect(await readdir(folder)).toEqual(['mine.tar.gz']);
    // A folder that is not there yet is told by the slash at its end.
    await succeeds('backup', '--home', home, '--to', `${path.join(folder, 'new')}/`);
    expect(await readdir(path.join(folder, 'new'))).toEqual([expect.stringMatching(/^turnkeep-.*\.tar\.gz$/)]);
  });

  it('[BK1][BK3] two in one second have two names, and neither has the copies of a repair', async () => {
    const home = await quietHome(1);
    await mkdir(path.join(home, 'doctor-20260101T000000Z'));
    await writeFile(path.join(home, 'doctor-20260101T000000Z', 'said'), 'and deleted');
    const { signal } = new AbortController();
    const parts = { now: () => 1_772_542_802, signal, progress: createProgress(null), warn: () => {} };
    const request = { home, to: null, secrets: true, version: '1.2.3' };
    const [first, second] = [await backUp(request, parts), await backUp(request, parts)];
    expect([first.file, second.file].map((file) => path.basename(file))).toEqual([
      'turnkeep-2026-03-03T13-00-02Z.tar.gz',
      'turnkeep-2026-03-03T13-00-02Z-1.tar.gz',
    ]);
    expect(second.manifest.files.map((one) => one.path).filter((name) => name.startsWith('doctor'))).toEqual([]);
  });

  it('[BK3] is refused for a database that is of a newer Turnkeep, another program’s, or damaged', async () => {
    const home = await quietHome(1);
    const file = path.join(home, 'state.db');
    const to = path.join(await temporaryFolder(), 'to');
    const database = new Database(file);
    database.exec('UPDATE schema_version SET version = 999 WHERE rowid = (SELECT max(rowid) FROM schema_version)');
    expect(await fails(1, 'backup', '--home', home, '--to', to)).toContain('newer Turnkeep (schema 999');
    database.pragma('application_id = 7');
    expect(await fails(1, 'backup', '--home', home, '--to', to)).toContain('no database of Turnkeep');
    database.close();
    await writeFile(file, Buffer.alloc(8192, 'no database'));
    expect(await fails(1, 'backup', '--home', home, '--to', to)).toContain('cannot be read or written');
    expect(await readdir(path.dirname(to))).toEqual([]);
  });

  it('[BK3] is read again, and is not there when what was written is not what was copied', async () => {
    const home = await quietHome(1);
    await writeFile(path.join(home, 'notes'), 'as they were');
    const folder = await temporaryFolder();
    const to = path.join(folder, 'my.tar.gz');
    const begin = (what: string): void => {
      if (what === 'packing') writeFileSync(`${to}.unfinished.${process.pid}/home/notes`, 'as they-were');
    };
    const progress = { begin, add() {}, clear() {} };
    const { signal } = new AbortController();
    const parts = { now: () => 1_772_542_802, signal, progress, warn: () => {} };
    const backup = backUp({ home, to, secrets: true, version: '1.2.3' }, parts);
    await expect(backup).rejects.toMatchObject({ name: 'ArchiveRefused', reason: 'notes is damaged' });
    expect(await readdir(folder)).toEqual([]);
  });

  it('[BK1] keeps a conversation that was damaged already as it is, and says so', async () => {
    const home = await quietHome(1);
    const [sidecar = ''] = (await readdir(path.join(home, 'sessions'))).filter((name) => name.endsWith('.json'));
    await writeFile(path.join(home, 'sessions', sidecar), '{"session_id": "torn');
    const main = startMain(['backup', '--home', home, '--json']);
    expect(await main.exited).toBe(0);
    expect(main.stderr()).toContain(`sessions/${sidecar} was damaged already`);
    const there = await restored(JSON.parse(main.stdout()).file);
    expect(await readFile(path.join(there, 'sessions', sidecar), 'utf8')).toBe('{"session_id": "torn');
    const server = await serveMain(there);
    const { messages } = (await server.call('GET', `/api/sessions/${sidecar.slice(0, -5)}/messages`)).json;
    expect(messages).toHaveLength(4);
  });
});
