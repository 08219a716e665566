/** A registry of leases that cannot be read, written or understood: nobody is let in, and everybody may read (LE8). */
import { open } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** Changes the state DB as no server does. */
function change(home: string, sql: string): void {
  const db = new Database(path.join(home, 'state.db'), { timeout: 5000 });
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

/** Overwrites the first page of the registry, as a bad disk may. */
async function destroyPage(home: string): Promise<void> {
  const file = path.join(home, 'state.db');
  const db = new Database(file);
  db.pragma('wal_checkpoint(TRUNCATE)');
  const size = db.pragma('page_size', { simple: true }) as number;
  const page = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'active_sessions'").pluck().get() as number;
  db.close();
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(size, 0xff), 0, size, (page - 1) * size);
  await handle.close();
}

const lease = (id: string, pid: string, start = 'NULL') =>
  `INSERT INTO active_sessions (session_id, lease_id, surface, pid, process_start_time, live_session_id, epoch, started_at, updated_at)
   VALUES ('${id}', 'l', 'other', ${pid}, ${start}, 'runtime', 99, 0, 0)`;

async function expectClosedButReadable(server: TestServer, id: string): Promise<void> {
  const refused = await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'let me in' });
  expect(refused).toMatchObject({ status: 503, json: { code: 'session_coordination_unavailable' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  const rewind = await server.call('POST', `/api/sessions/${id}/clear`, {
    revision: (await read(server, id)).revision,
  });
  expect(rewind.json.code).toBe('session_coordination_unavailable');
  // Reading needs no lease: the session, its messages, its prompts, the list, and its events.
  expect((await server.messages(id)).map((row) => row.content)).toEqual(['first', 'echo: first']);
  expect((await server.call('GET', `/api/sessions/${id}/prompts`)).json.admissions).toHaveLength(1);
  expect((await server.call('GET', '/api/sessions')).json.sessions[0]).toMatchObject({
    session_id: id,
    status: 'idle',
  });
  const reader = await server.stream(`/api/sessions/${id}/events`);
  await reader.next((event) => event.type === 'session.snapshot');
  // And nothing else of the server has suffered.
  expect((await server.call('GET', '/ready')).status).toBe(200);
}

const read = async (server: TestServer, id: string) => (await server.call('GET', `/api/sessions/${id}`)).json.session;

/** A home with a session that has one turn. */
async function homeWithTurn() {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  await server.ask(id, 'first');
  return { server, id, home: server.home };
}

describe('a broken registry', () => {
  it.each<[string, (id: string) => string]>([
    ['that is not there', () => 'DROP TABLE active_sessions'],
    ['that lacks a column', () => 'ALTER TABLE active_sessions DROP COLUMN pid'],
    [
      'that takes no row',
      () => "CREATE TRIGGER t BEFORE INSERT ON active_sessions BEGIN SELECT raise(ABORT, 'never'); END",
    ],
    ['whose record has a word for a pid', (id) => lease(id, "'me'")],
    ['whose record has a group of processes for a pid', (id) => lease(id, '-1')],
    ['whose record has no process for a pid', (id) => lease(id, '0')],
    ['whose record has bytes for a start', (id) => lease(id, '1', "x'00ff'")],
  ])('[LE8] %s lets nobody in, stores nothing, and can be read past', async (_title, sql) => {
    const { server, id, home } = await homeWithTurn();
    change(home, sql(id));
    await expectClosedButReadable(server, id);
  });

  it('[LE8][RE6] on a destroyed page is mended by the next start, before anybody is let in', async () => {
    const { server, home, id } = await homeWithTurn();
    await server.close();
    await destroyPage(home);
    const next = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    const before = await next.messages(id);
    expect((await next.ask(id, 'and now?')).message.content).toBe('echo: and now?');
    expect((await next.messages(id)).slice(0, before.length)).toEqual(before);
    expect(before.length).toBeGreaterThan(0);
  });

  it('[LE8] that breaks under a running turn withholds neither its end nor the next prompt once it is whole', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const id = await server.session();
    const reader = await server.stream(`/api/sessions/${id}/events`);
    await server.prompt(id, 'first');
    const turn = await script.turn(0);
    change(server.home, 'ALTER TABLE active_sessions RENAME TO away');
    turn.text('said');
    turn.complete();
    const complete = await reader.next((event) => event.type === 'message.complete');
    expect(complete.json.payload).toMatchObject({ outcome: 'completed', text: 'said' });
    await until('it is said that a lease stays', () =>
      server.logs.some((line) => /could not be given back/.test(line.msg)),
    );
    const refused = await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'second' });
    expect(refused.json.code).toBe('session_coordination_unavailable');
    change(server.home, 'ALTER TABLE away RENAME TO active_sessions');
    await server.prompt(id, 'second');
    (await script.turn(1)).complete();
  });

  it('[LE8] keeps a prompt that waits, and who waits for it, until it is whole', async () => {
    const { server: first, home, id } = await homeWithTurn();
    await first.close();
    const closed = await startTestServer({ home, overrides: { check: async () => ({ reason: 'closed' }) } });
    await closed.prompt(id, 'second');
    await closed.close();
    change(home, 'ALTER TABLE active_sessions RENAME TO away');
    const server = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    await until('it is tried again', () => server.logs.some((line) => /trying again/.test(line.msg)));
    expect((await read(server, id)).status).toBe('queued');
    const cancel = await server.call(
      'DELETE',
      `/api/sessions/${id}/prompts/${(await waiting(server, id)).admission_id}`,
    );
    expect(cancel.json.code).toBe('session_coordination_unavailable');
    change(home, 'ALTER TABLE away RENAME TO active_sessions');
    await until('it has run', async () => (await read(server, id)).status === 'idle');
    expect((await server.messages(id)).at(-1)).toMatchObject({ content: 'echo: second' });
  });
});

const waiting = async (server: TestServer, id: string) =>
  (await server.call('GET', `/api/sessions/${id}/prompts?pending=1`)).json.admissions[0];
