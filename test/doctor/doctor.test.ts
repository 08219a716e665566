/** The doctor as its user calls it: beside a server, after one that was killed, and as a process with its exit codes. */
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { startMain } from '../support/main-process.ts';
import { startTestServer } from '../support/test-server.ts';
import { doctor, homeAt, homeWithSessions, problems, stateOf } from './doctor-home.ts';

async function refusal(home: string, ...flags: string[]): Promise<string> {
  const error = await doctor(home, ...flags).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'CommandError', exitCode: 2 });
  return (error as Error).message;
}

describe('beside a server', () => {
  it('[DR1][DR4] it reads along, changes no byte, and names the process that a repair has to wait for', async () => {
    const home = await temporaryFolder();
    const server = await startChildServer({ home });
    const { json } = await server.call('POST', '/api/sessions', { title: 'Kept' });
    const address = `/api/sessions/${json.session.session_id}`;
    await server.call('POST', `${address}/prompts?wait=1`, { text: 'hello' });
    const before = await stateOf(home);
    const { code, json: said } = await doctor(home, '--json');
    expect(said.findings.find((one: { code: string }) => one.code === 'served').message).toContain(
      `${server.process.pid}`,
    );
    expect(code, JSON.stringify(said.findings)).toBe(0);
    expect(await refusal(home, '--repair')).toContain(`process ${server.process.pid} serves this home`);
    expect(await stateOf(home)).toEqual(before);
    expect((await server.call('GET', `${address}/messages`)).json.messages).toHaveLength(2);
  });

  it('[DR1] a turn that runs is no damage', async () => {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    const server = await startTestServer({ home });
    const id = await server.session();
    await server.prompt(id, 'script:chunks=2000,delay=10,id=a');
    const reader = await server.stream(`/api/sessions/${id}/events`);
    await reader.next((event) => event.type === 'message.delta');
    expect(await problems(home)).toEqual([]);
  });

  it('[DR4] a process that has the state DB open without a word is noticed, and nothing is changed', async () => {
    const { home, file, ids, sql } = await homeWithSessions(1);
    sql(`UPDATE sessions SET message_count = 7 WHERE id = '${ids[0]}'`);
    const other = new Database(file('state.db'));
    onTestFinished(() => void other.close());
    other.prepare('SELECT count(*) FROM sessions').get();
    const before = await stateOf(home);
    expect(await refusal(home, '--repair')).toContain('in use by another process');
    expect(await stateOf(home)).toEqual(before);
    other.close();
    expect(await problems(home, '--repair')).toEqual([]);
  });
});

describe('after a server that was killed', () => {
  it('[DR1][DR3] its WAL stays as it is; its lease goes with --repair, its turn with the next start', async () => {
    const home = await temporaryFolder();
    const server = await startChildServer({ home, crashAt: 'mid-stream' });
    const { json } = await server.call('POST', '/api/sessions', { title: 'Kept' });
    const address = `/api/sessions/${json.session.session_id}`;
    await server.call('POST', `${address}/prompts`, { text: 'hello' });
    await server.exited;
    expect(await readdir(home)).toContain('state.db-wal');
    const before = await stateOf(home);
    expect(await problems(home)).toEqual(['dead_lease', 'dead_turn']);
    expect(await stateOf(home)).toEqual(before);
    expect(await problems(home, '--repair')).toEqual(['dead_turn']);
    const after = await stateOf(home);
    expect(await problems(home, '--repair')).toEqual(['dead_turn']);
    expect(await stateOf(home)).toEqual(after);
    const next = await startTestServer({ home });
    expect((await next.messages(json.session.session_id)).at(-1)).toMatchObject({ status: 'error' });
    await next.close();
    expect(await problems(home)).toEqual([]);
    expect(homeAt(home).ask('SELECT count(*) FROM messages')).toBeGreaterThan(1);
  });
});

describe('what it says', () => {
  it('[DR2] --json tells each finding with its code and place', async () => {
    const { home, ids, file } = await homeWithSessions(1);
    await writeFile(file('sessions', `${ids[0]}.json`), '{');
    const { json } = await doctor(home, '--json');
    expect(json).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+/), home });
    expect(Object.keys(json)).toEqual(['version', 'home', 'findings', 'summary']);
    expect(json.findings).toContainEqual({
      severity: 'error',
      area: 'sidecars',
      code: 'sidecar_damaged',
      message: `sessions/${ids[0]}.json is damaged: the file is not JSON`,
      remedy: expect.stringContaining('turnkeep doctor --repair'),
      path: `sessions/${ids[0]}.json`,
      session_id: ids[0],
      repairable: true,
    });
    const count = (severity: string): number =>
      json.findings.filter((one: { severity: string }) => one.severity === severity).length;
    expect(json.summary).toEqual({ ok: count('ok'), info: 0, warn: 0, error: 1 });
  });

  it('[DR2] a line for each finding, with its remedy, and the counts at the end', async () => {
    const { home, ids, file } = await homeWithSessions(1);
    await writeFile(file('sessions', `${ids[0]}.json`), '{');
    const lines = (await doctor(home)).out.trimEnd().split('\n');
    const last = lines.pop();
    for (const line of lines) expect(line).toMatch(/^(ok {5}|info {3}|warn {3}|error {2})[a-z-]+ +\S/);
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([
      expect.stringMatching(/^error {2}sidecars {5}sessions\/.+ {2}→ turnkeep doctor --repair moves it aside/),
    ]);
    expect(last).toMatch(/^\d+ ok, 0 info, 0 warn, 1 error$/);
  });

  it('[DR2] what other users of the machine can read is told', async () => {
    const { home, file } = await homeWithSessions(1);
    await writeFile(file('.env'), 'TURNKEEP_TOKEN=a-token-of-some-length\n');
    await chmod(file('.env'), 0o644);
    await chmod(home, 0o700);
    expect(await problems(home)).toEqual([]);
    await chmod(home, 0o755);
    expect(await problems(home)).toEqual(['open_to_others']);
    for (const name of ['.env', 'state.db']) await chmod(file(name), 0o600);
    expect(await problems(home)).toEqual([]);
  });
});

describe('a home that it does not examine', () => {
  it('[DR1] of another program, of a newer release, or none: a sentence, and nothing is touched', async () => {
    const folder = await temporaryFolder();
    expect(await refusal(path.join(folder, 'none'))).toContain('there is no home');
    expect(await refusal(folder)).toContain('holds nothing of Turnkeep');
    expect(await readdir(folder)).toEqual([]);
    await writeFile(path.join(folder, 'file'), '');
    expect(await refusal(path.join(folder, 'file'))).toContain('is no folder');

    const foreign = await temporaryFolder();
    const db = new Database(path.join(foreign, 'state.db'));
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    db.close();
    const before = await stateOf(foreign);
    for (const flag of ['--json', '--repair']) {
      expect(await refusal(foreign, flag)).toContain('belongs to another program');
    }
    expect(await stateOf(foreign)).toEqual(before);

    const newer = await homeWithSessions(1);
    newer.sql('INSERT INTO schema_version VALUES (99)');
    const state = await stateOf(newer.home);
    expect(await refusal(newer.home, '--repair')).toContain('written by a newer Turnkeep');
    expect(await stateOf(newer.home)).toEqual(state);
  });
});

describe('as a process', () => {
  it('[DR2] exits with 0, 1 or 2, and says why', async () => {
    const { home, file, ids } = await homeWithSessions(1);
    const well = startMain(['doctor', '--home', home]);
    expect(await well.exited, well.stderr()).toBe(0);
    expect([well.stdout().split('\n').at(-2), well.stderr()]).toEqual([
      expect.stringMatching(/^\d+ ok, 0 info, 0 warn, 0 error$/),
      '',
    ]);
    await writeFile(file('sessions', `${ids[0]}.json`), '{');
    const damaged = startMain(['doctor', '--json'], { TURNKEEP_HOME: home });
    expect(await damaged.exited).toBe(1);
    expect(JSON.parse(damaged.stdout()).summary.error).toBe(1);
    const mended = startMain(['doctor', '--home', home, '--repair']);
    expect(await mended.exited, mended.stdout()).toBe(0);
    const copies = (await readdir(home)).find((name) => name.startsWith('doctor-'))!;
    expect(mended.stdout()).toContain(`${home}/${copies}`);
    expect(await readFile(file(copies, 'sessions', `${ids[0]}.json`), 'utf8')).toBe('{');
    await mkdir(file('empty'));
    for (const args of [['--home', file('empty')], ['--wrong'], ['--home', '']]) {
      const refused = startMain(['doctor', ...args]);
      expect(await refused.exited).toBe(2);
      expect(refused.stdout()).toBe('');
      expect(refused.stderr()).toMatch(/^turnkeep: [^\n]+\n/);
    }
    const help = startMain(['doctor', '--help']);
    expect(await help.exited).toBe(0);
    expect(help.stdout()).toMatch(/^Usage: turnkeep doctor \[options\]\n(.*\n)*Exit code: 0 all is well, 1 /);
  });
});
