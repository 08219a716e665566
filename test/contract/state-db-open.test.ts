/** Opening the state DB: making it, migrating it, and leaving alone what is not ours. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStateDb, type StateDb, type StateDbOptions, StateDbRefused } from '../../db/client.ts';
import { createSqliteStores } from '../../db/sqlite-stores.ts';
import { StorageTrouble } from '../../db/storage-trouble.ts';
import { childEntry } from '../support/compile-children.ts';
import { temporaryFolder } from '../support/home.ts';
import { newStateFile, stateDbOptions } from '../support/state-db.ts';
import { until } from '../support/until.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const OURS = 0x544b4550;
/** How many migrations there are. */
const SCHEMA = (await readdir(path.join(ROOT, 'db/migrations'))).filter((name) => name.endsWith('.sql')).length;

async function open(file: string, part: Partial<StateDbOptions> = {}): Promise<StateDb> {
  const state = await openStateDb(stateDbOptions(file, part));
  onTestFinished(() => state.close());
  return state;
}

/** A connection as another program has it. */
function raw(file: string): Database.Database {
  const sqlite = new Database(file, { timeout: 0 });
  onTestFinished(() => void sqlite.close());
  return sqlite;
}

const versionOf = (file: string): unknown =>
  raw(file).prepare('SELECT max(version) AS v FROM schema_version').pluck().get();

/** A state DB as the first release left it, with one session and its prompt. */
async function makeOlder(file: string): Promise<void> {
  const sqlite = new Database(file);
  const sql = await readFile(path.join(ROOT, 'db/migrations/0000_initial.sql'), 'utf8');
  sqlite.pragma('journal_mode = WAL');
  sqlite.exec(sql.replaceAll('--> statement-breakpoint', ''));
  sqlite.exec(`
    CREATE TABLE schema_version (version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (1);
    INSERT INTO sessions (id, source, started_at, updated_at, title) VALUES ('s1', 'web', 1, 1, 'Kept');
    INSERT INTO messages (session_id, role, content, timestamp, message_id) VALUES ('s1', 'user', 'old oak', 1, 'm1');
    PRAGMA application_id = ${OURS};`);
  sqlite.close();
}

/** Every file of a folder with the digest of its bytes; the shared memory of a WAL is no content. */
async function bytesOf(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).filter((name) => !name.endsWith('-shm')).sort();
  const entries = names.map(async (name) => [
    name,
    createHash('sha256')
      .update(await readFile(path.join(folder, name)))
      .digest('hex'),
  ]);
  return Object.fromEntries(await Promise.all(entries));
}

async function refusal(file: string): Promise<Error> {
  const error = await openStateDb(stateDbOptions(file)).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StateDbRefused);
  return error as Error;
}

describe('a state DB', () => {
  it('[DB6] is made where there is none, and opened again as it is', async () => {
    const file = await newStateFile();
    const state = await openStateDb(stateDbOptions(file));
    state.close();
    expect(versionOf(file)).toBe(SCHEMA);
    expect(raw(file).pragma('application_id', { simple: true })).toBe(OURS);
    const again = await openStateDb(stateDbOptions(file));
    again.close();
    expect(raw(file).prepare('SELECT version FROM schema_version ORDER BY version').pluck().all()).toEqual(
      Array.from({ length: SCHEMA }, (_, n) => n + 1),
    );
    expect((await readdir(path.dirname(file))).filter((name) => name.includes('before-schema'))).toEqual([]);
  });

  it('[DB6] that is an empty file is made in it', async () => {
    const file = await newStateFile();
    await writeFile(file, '');
    await open(file);
    expect(versionOf(file)).toBe(SCHEMA);
  });

  it('[DB6] of an older release is copied, then migrated with its data', async () => {
    const file = await newStateFile();
    await makeOlder(file);
    const stores = createSqliteStores(await open(file), () => true);
    expect(versionOf(file)).toBe(SCHEMA);
    expect(await stores.sessions.get('s1')).toMatchObject({ title: 'Kept', flags: [], revision: 0 });
    expect((await stores.messages.list('s1')).map((row) => row.content)).toEqual(['old oak']);
    expect((await stores.messages.search('oak', 9)).map((hit) => hit.message_id)).toEqual(['m1']);
    const copy = `${file}.before-schema-${SCHEMA}-1772542802`;
    expect(versionOf(copy)).toBe(1);
    expect(raw(copy).prepare('SELECT title FROM sessions').pluck().all()).toEqual(['Kept']);
    expect(raw(copy).pragma('application_id', { simple: true })).toBe(OURS);
    expect(raw(copy).pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('[DB6] that is locked while it is to be migrated is waited for, and copied once', async () => {
    const file = await newStateFile();
    await makeOlder(file);
    const other = raw(file);
    other.exec('BEGIN IMMEDIATE');
    let naps = 0;
    const state = await openStateDb(
      stateDbOptions(file, {
        sleep: async () => {
          naps += 1;
          if (naps === 3) other.exec('COMMIT');
        },
      }),
    );
    state.close();
    expect(naps).toBe(3);
    expect(versionOf(file)).toBe(SCHEMA);
    expect((await readdir(path.dirname(file))).filter((name) => name.includes('before-schema'))).toHaveLength(1);
  });

  it('[DB6] whose migration fails stays as it was', async () => {
    const file = await newStateFile();
    await makeOlder(file);
    const sqlite = raw(file);
    sqlite.exec('CREATE TABLE messages_fts_src (in_the_way)');
    const names = () => sqlite.prepare('SELECT name FROM sqlite_master ORDER BY name').pluck().all();
    const before = names();
    await expect(openStateDb(stateDbOptions(file))).rejects.toMatchObject({ code: 'SQLITE_ERROR' });
    expect(versionOf(file)).toBe(1);
    expect(names()).toEqual(before);
  });

  it('[DB6] of a newer release is refused with a sentence that says what to do', async () => {
    const file = await newStateFile();
    (await openStateDb(stateDbOptions(file))).close();
    const sqlite = new Database(file);
    sqlite.exec(`INSERT INTO schema_version VALUES (${SCHEMA + 1})`);
    sqlite.close();
    const before = await bytesOf(path.dirname(file));
    const { message } = await refusal(file);
    expect(message).toContain(file);
    expect(message).toMatch(/written by a newer Turnkeep \(schema \d+, this one knows \d+\)\. Start the newer version/);
    expect(await bytesOf(path.dirname(file))).toEqual(before);
  });
});

describe('a database of another program', () => {
  const make: [what: string, statements: string][] = [
    ['with tables and no application id', 'CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES (1)'],
    ['with its own application id', 'PRAGMA application_id = 7; CREATE TABLE t (x); INSERT INTO t VALUES (1)'],
    ['with its own application id and no table', 'PRAGMA application_id = 7; VACUUM'],
    [
      'with a schema version of its own',
      'CREATE TABLE schema_version (version); INSERT INTO schema_version VALUES (1)',
    ],
  ];

  it.each(make)('[DB6] %s is refused and not changed by one byte', async (_what, statements) => {
    const file = await newStateFile();
    const sqlite = new Database(file);
    sqlite.exec(statements);
    sqlite.close();
    const before = await bytesOf(path.dirname(file));
    expect((await refusal(file)).message).toMatch(/belongs to another program\. Start with another home/);
    expect(await bytesOf(path.dirname(file))).toEqual(before);
  });

  it.each(make)('[DB6] %s, in WAL mode and in use, is not checkpointed either', async (_what, statements) => {
    const file = await newStateFile();
    const sqlite = raw(file);
    sqlite.pragma('journal_mode = WAL');
    sqlite.pragma('wal_autocheckpoint = 0');
    sqlite.exec(statements);
    sqlite.exec('CREATE TABLE more (x); INSERT INTO more VALUES (1)');
    const before = await bytesOf(path.dirname(file));
    expect(Object.keys(before)).toEqual(['state.db', 'state.db-wal']);
    await refusal(file);
    expect(await bytesOf(path.dirname(file))).toEqual(before);
  });

  it('[DB6] that died with a full WAL keeps it', async () => {
    const living = await newStateFile();
    const sqlite = raw(living);
    sqlite.pragma('journal_mode = WAL');
    sqlite.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1)');
    // What kill -9 leaves: both files, and nobody who has them open.
    const file = await newStateFile();
    for (const end of ['', '-wal']) await copyFile(`${living}${end}`, `${file}${end}`);
    const before = await bytesOf(path.dirname(file));
    await refusal(file);
    expect(await bytesOf(path.dirname(file))).toEqual(before);
  });

  it('[DB6] a file that is no database, or a folder in its place, is storage trouble and stays', async () => {
    const file = await newStateFile();
    await writeFile(file, 'These are the notes of somebody. '.repeat(100));
    const before = await bytesOf(path.dirname(file));
    await expect(openStateDb(stateDbOptions(file))).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await bytesOf(path.dirname(file))).toEqual(before);
    const folder = path.join(await temporaryFolder(), 'state.db');
    await mkdir(folder);
    await expect(openStateDb(stateDbOptions(folder))).rejects.toBeInstanceOf(StorageTrouble);
  });
});

describe('several that open one file at once', () => {
  it('[DB6] all succeed in one process, on a fresh and on an older file', async () => {
    for (const prepare of [async () => {}, makeOlder]) {
      const file = await newStateFile();
      await prepare(file);
      const states = await Promise.all([1, 2, 3, 4].map(() => openStateDb(stateDbOptions(file))));
      for (const state of states) state.close();
      expect(versionOf(file)).toBe(SCHEMA);
      const copies = (await readdir(path.dirname(file))).filter((name) => name.includes('before-schema'));
      expect(copies).toHaveLength(prepare === makeOlder ? 1 : 0);
    }
  });

  it('[DB6] all succeed as processes, on a fresh and on an older file', async () => {
    const files = [await newStateFile(), await newStateFile()];
    await makeOlder(files[1]!);
    const started = await Promise.all(
      files.flatMap((file) => [startOpener(file), startOpener(file), startOpener(file)]),
    );
    const answers = await Promise.all(started.map((opener) => opener.go()));
    expect(answers).toEqual(Array(6).fill('opened'));
    expect(files.map(versionOf)).toEqual([SCHEMA, SCHEMA]);
  });
});

/** Starts a process that is about to open the file. */
async function startOpener(file: string): Promise<{ go(): Promise<string> }> {
  const child: ChildProcess = spawn(process.execPath, [childEntry('open-state-db'), file], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  await until('the process is ready', () => said.includes('ready\n'));
  return {
    async go() {
      child.stdin?.write('go\n');
      await until('the process has answered', () => said.split('\n').length > 2);
      return said.split('\n')[1] ?? '';
    },
  };
}
