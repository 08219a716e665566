/** Homes that get damaged, and what must be the same before and after: what people see, and every byte at the second start. */
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, onTestFinished } from 'vitest';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

export interface Kept {
  home: string;
  /** Sessions in the order in which they were made, each with two turns. */
  ids: string[];
  /** Run ids of their first turns. */
  runs: string[];
  /** What each showed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
  rows: Map<string, any[]>;
  file(...parts: string[]): string;
}

export const sidecarOf = (home: Kept, n = 0): string => home.file('sessions', `${home.ids[n]}.json`);
export const journalOf = (home: Kept, n = 0): string =>
  home.file('sessions', '_run_journal', home.ids[n]!, `${home.runs[n]}.jsonl`);

const overrides = { runner: createEchoRunner().runner };

/** Starts a server on a home. */
export const start = (home: string): Promise<TestServer> => startTestServer({ home, overrides });

/** One home of a server that was stopped well, made by the first test that needs it; each test damages a copy. */
export function sharedHome(sessions: number): () => Promise<Kept> {
  let made: Promise<Kept> | null = null;
  afterAll(async () => {
    if (made) await rm((await made).home, { recursive: true, force: true });
  });
  return async () => {
    made ??= makeHome(sessions);
    return copyOf(await made);
  };
}

async function makeHome(sessions: number): Promise<Kept> {
  const home = await mkdtemp(path.join(tmpdir(), 'turnkeep-damage-'));
  const { ids, runs, rows } = await fill(home, sessions);
  return at(home, ids, runs, rows);
}

async function fill(home: string, sessions: number) {
  const server = await startTestServer({ home, overrides });
  const ids: string[] = [];
  const runs: string[] = [];
  const rows: Kept['rows'] = new Map();
  for (let n = 0; n < sessions; n += 1) {
    const id = await server.session({ title: `Title ${n}` });
    await server.ask(id, `first ${n}`);
    await server.ask(id, `second ${n}`);
    const shown = await server.messages(id);
    ids.push(id);
    runs.push(shown[0].run_id);
    rows.set(id, shown);
  }
  await server.close();
  return { ids, runs, rows };
}

const at = (home: string, ids: string[], runs: string[], rows: Kept['rows']): Kept => ({
  home,
  ids,
  runs,
  rows,
  file: (...parts) => path.join(home, ...parts),
});

async function copyOf({ home, ids, runs, rows }: Kept): Promise<Kept> {
  const copy = await mkdtemp(path.join(tmpdir(), 'turnkeep-damage-'));
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  await cp(home, copy, { recursive: true, preserveTimestamps: true });
  return at(copy, ids, runs, rows);
}

/** What the list says: titles by session, once all of these are in it. */
export async function listed(server: TestServer, count: number): Promise<Map<string, string>> {
  const page = await until(`${count} sessions are listed`, async () => {
    const { json, status } = await server.call('GET', '/api/sessions?limit=200');
    return status === 200 && json.sessions.length >= count ? json : undefined;
  });
  return new Map(page.sessions.map((one: { session_id: string; title: string }) => [one.session_id, one.title]));
}

/** Every file of a home but the database's, and every row of the tables that people's words are in. */
export async function everythingIn(home: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    const name = path.relative(home, path.join(entry.parentPath, entry.name));
    if (/^state\.db/.test(name)) continue;
    found.set(name, entry.isFile() ? (await readFile(path.join(home, name))).toString('base64') : 'no file');
  }
  const db = new Database(path.join(home, 'state.db'), { readonly: true });
  for (const table of ['sessions', 'messages', 'session_admissions', 'session_tombstones', 'projects']) {
    found.set(`rows of ${table}`, JSON.stringify(db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all()));
  }
  db.close();
  return found;
}
