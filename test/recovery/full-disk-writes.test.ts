/** Every write on a full disk: it is done or refused with a code, a refused one changes nothing, and all work once there is room. */
import { execFileSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { doctor, problems } from '../doctor/doctor-home.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { smallDisk, whyNoSmallDisk } from '../support/small-disk.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const reason = whyNoSmallDisk();
const skipped = reason === null ? '' : ` (skipped: ${reason})`;
const overrides = { runner: createEchoRunner().runner };
const LONG = 'word '.repeat(40_000);

/** Each kind of write that there is, large enough to need room. */
const WRITES: [what: string, method: string, address: (id: string) => string, body: (revision: number) => unknown][] = [
  ['a prompt', 'POST', (id) => `/api/sessions/${id}/prompts`, () => ({ text: LONG })],
  ['a session', 'POST', () => '/api/sessions', () => ({ title: 'New' })],
  ['a draft', 'PATCH', (id) => `/api/sessions/${id}`, () => ({ draft: LONG })],
  ['a rewind', 'POST', (id) => `/api/sessions/${id}/rewind`, (revision) => ({ turns: 1, revision })],
  ['a clear', 'POST', (id) => `/api/sessions/${id}/clear`, (revision) => ({ revision })],
  ['a fork', 'POST', (id) => `/api/sessions/${id}/fork`, () => ({})],
  ['a project', 'POST', () => '/api/projects', () => ({ name: 'New', color: '#112233' })],
];

const stateOf = async (server: TestServer, ids: string[]) => {
  const list = (await server.call('GET', '/api/sessions?limit=200')).json.sessions;
  const rows = await Promise.all(ids.map((id) => server.messages(id)));
  return JSON.stringify([list, rows, (await server.call('GET', '/api/projects')).json]);
};

describe.skipIf(reason !== null)(`on a full disk${skipped}`, () => {
  it('[RE7] a write is done or refused with a code, and a refused one changes nothing; all work once there is room', async () => {
    const disk = smallDisk(12);
    const server = await startTestServer({ home: disk.home, overrides });
    const ids: string[] = [];
    for (const [what] of WRITES) {
      const id = await server.session({ title: what });
      await server.ask(id, 'one');
      await server.ask(id, 'two');
      ids.push(id);
    }
    // Room that the log keeps for itself would take small writes.
    const db = new Database(path.join(disk.home, 'state.db'));
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    disk.fill();
    const refused: number[] = [];
    for (const [n, [what, method, address, body]] of WRITES.entries()) {
      const before = await stateOf(server, ids);
      const { revision } = (await server.call('GET', `/api/sessions/${ids[n]}`)).json.session;
      const answer = await server.call(method, address(ids[n]!), body(revision));
      if (answer.status < 300) continue;
      expect([answer.status, answer.json.code], what).toEqual([503, 'disk_full']);
      expect(await stateOf(server, ids), what).toBe(before);
      refused.push(n);
    }
    expect(refused.map((n) => WRITES[n]![0])).toEqual(WRITES.map(([what]) => what));
    disk.free();
    for (const n of refused) {
      const [what, method, address, body] = WRITES[n]!;
      const { revision } = (await server.call('GET', `/api/sessions/${ids[n]}`)).json.session;
      expect((await server.call(method, address(ids[n]!), body(revision))).status, what).toBeLessThan(300);
    }
    await until('nothing runs', async () => {
      const { sessions } = (await server.call('GET', '/api/sessions?limit=200')).json;
      return sessions.every((one: { status: string }) => one.status === 'idle');
    });
    await server.close();
    expect(await problems(disk.home)).toEqual(['little_space', 'open_to_others']);
  });

  it('[RE6] no start, no doctor: a sentence each, and nothing is left of them', async () => {
    const disk = smallDisk(4);
    const server = await startTestServer({ home: disk.home, overrides });
    await server.ask(await server.session({}), 'one');
    await server.close();
    const before = await readdir(disk.home);
    execFileSync(
      'dd',
      ['if=/dev/zero', `of=${path.join(disk.home, 'state.db')}`, 'bs=4096', 'seek=3', 'count=8', 'conv=notrunc'],
      { stdio: 'pipe' },
    );
    disk.fill(80_000);
    await expect(startTestServer({ home: disk.home, overrides })).rejects.toMatchObject({ code: 'ENOSPC' });
    expect((await readdir(disk.home)).filter((name) => !/^state\.db-/.test(name))).toEqual(before);
    await expect(doctor(disk.home, '--repair')).rejects.toMatchObject({ name: 'CommandError', exitCode: 2 });
    disk.free();
    const again = await startTestServer({ home: disk.home, overrides });
    expect((await again.call('GET', '/api/sessions')).json.sessions).toHaveLength(1);
  });
});

describe.skipIf(reason !== null)(`on a disk that became read-only${skipped}`, () => {
  it('[RE7] the sidecars: reads work, a prompt waits and shows nothing that is not kept, and all is well afterwards', async () => {
    const disk = smallDisk(8);
    const server = await startTestServer({ overrides });
    const id = await server.session({ title: 'Kept' });
    const gone = await server.session({ title: 'Gone' });
    for (const one of [id, gone]) await server.ask(one, 'one');
    const rows = await server.messages(id);
    // The folder of sidecars and journals becomes a disk of its own.
    const place = path.join(server.home, 'sessions');
    const folder = path.dirname(disk.home);
    execFileSync('cp', ['-a', `${place}/.`, folder]);
    execFileSync('mount', ['--bind', folder, place]);
    onTestFinished(() => void execFileSync('umount', ['-l', place], { stdio: 'pipe' }));
    execFileSync('mount', ['-o', 'remount,bind,ro', place]);
    expect(await server.messages(id)).toEqual(rows);
    const answer = server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'two' });
    await until('it is told in the log', () =>
      server.logs.find((line) => line.msg.includes('storage') && line.level >= 40),
    );
    expect((await server.messages(id)).slice(0, 2)).toEqual(rows);
    expect((await server.call('DELETE', `/api/sessions/${gone}`)).status).toBeLessThan(504);
    execFileSync('mount', ['-o', 'remount,bind,rw', place]);
    expect((await answer).status).toBe(200);
    expect(await server.messages(id)).toHaveLength(4);
  });

  it('[RE7] the whole home: no start, a sentence says why, no byte changes, and all is well afterwards', async () => {
    const disk = smallDisk(8);
    const first = await startTestServer({ home: disk.home, overrides });
    const id = await first.session({ title: 'Kept' });
    await first.ask(id, 'one');
    await first.close();
    const folder = path.dirname(disk.home);
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    await expect(startTestServer({ home: disk.home, overrides })).rejects.toMatchObject({ kind: 'unavailable' });
    expect((await doctor(disk.home)).code).toBe(1);
    execFileSync('mount', ['-o', 'remount,rw', folder]);
    const again = await startTestServer({ home: disk.home, overrides });
    expect(await again.messages(id)).toHaveLength(2);
  });
});
