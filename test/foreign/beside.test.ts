/**
 * The other program runs and writes while we read: each read shows what was committed when it was asked for, in order, once;
 * and the other program never waits for us or finds anything of ours.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { openHermesHome, turn } from './hermes-home.ts';
import { openWebuiHome } from './webui-home.ts';

function startWriter(file: string, sessionId: string, first: number) {
  const child = spawn(process.execPath, [
    path.join(import.meta.dirname, 'hermes-writer.mjs'),
    file,
    sessionId,
    `${first}`,
  ]);
  onTestFinished(() => void child.kill('SIGKILL'));
  let written = 0;
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    written = Number(chunk.toString().trim().split('\n').at(-1));
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  return {
    written: () => written,
    errors: () => errors,
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    end: async () => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

describe('beside a program that writes', () => {
  it('[FH2] each read has all that was committed before it was asked for, in its order, whatever ends the other program', async () => {
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
    hermes.session('s', { message_count: 0 });
    hermes.session('big', {}, Array.from({ length: 300 }, (_, n) => turn(`q${n}`, `a${n}`)).flat());
    hermes.close();
    const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
    let last = 0;
    for (const end of ['kill', 'end', 'kill', 'end'] as const) {
      const base = last;
      const writer = startWriter(hermes.file, 's', base);
      for (let reads = 0; reads < 20; reads += 1) {
        const before = base + writer.written();
        const rows = await server.messages('s');
        expect(rows.length).toBeGreaterThanOrEqual(before);
        expect(rows.map((row) => row.content)).toEqual(rows.map((_, n) => `row ${n}`));
        expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
        const { sessions } = (await server.call('GET', '/api/sessions')).json;
        const listed = sessions.find((one: { session_id: string }) => one.session_id === 's');
        expect(listed.message_count).toBeGreaterThanOrEqual(before);
        await until('the other program wrote', () => base + writer.written() > before);
      }
      await writer[end]();
      expect(writer.errors()).toBe('');
      last = (await server.messages('s')).length;
      expect(last).toBeGreaterThanOrEqual(base + writer.written());
      expect(await server.messages('big')).toHaveLength(600);
    }
    // Nothing of ours holds it: whoever wants it alone can have it.
    const alone = new Database(hermes.file, { timeout: 0 });
    alone.exec('BEGIN EXCLUSIVE; ROLLBACK');
    expect(alone.pragma('integrity_check', { simple: true })).toBe('ok');
    alone.close();
  });

  it('[FH2] a database that is put in the place of another is read from then on', async () => {
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
    hermes.session('s', {}, turn('one', 'two'));
    const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
    expect(await server.messages('s')).toHaveLength(2);
    hermes.close();
    const other = openHermesHome(path.join(await temporaryFolder(), 'other'), 'v16', 'DELETE');
    other.session('t', {}, turn('three', 'four'));
    other.close();
    await rm(`${hermes.file}-wal`, { force: true });
    await rm(`${hermes.file}-shm`, { force: true });
    await rename(other.file, hermes.file);
    const { sessions } = (await server.call('GET', '/api/sessions')).json;
    expect(sessions.map((one: { session_id: string }) => one.session_id)).toEqual(['t']);
    expect((await server.call('GET', '/api/sessions/s')).status).toBe(404);
  });

  it('[FH2] one that is locked for writing by a program without WAL is waited for, and is never in its way', async () => {
    const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'), 'current', 'DELETE');
    hermes.session('s', {}, turn('one', 'two'));
    const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
    expect(await server.messages('s')).toHaveLength(2);
    hermes.db.exec('BEGIN EXCLUSIVE');
    hermes.db.exec("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'three', 5)");
    const reading = server.messages('s');
    expect((await server.call('GET', '/health')).status).toBe(200);
    hermes.db.exec('COMMIT');
    expect(await reading).toHaveLength(3);
    hermes.close();
  });

  it('[FH1] sidecars that are saved again and again are read as one of their states, each read as new as its asking', async () => {
    const webui = openWebuiHome(path.join(await temporaryFolder(), 'webui'));
    const server = await startTestServer({ config: `foreign: {sessions_dir: ${webui.sessions}}` });
    const rows = turn('q', 'a');
    for (let n = 0; n < 60; n += 1) {
      rows.push(...turn(`q${n}`, `a${n}`, 1_700_000_100 + n));
      webui.save('s', rows, { updated_at: 1_700_000_100 + n });
      webui.index();
      expect(await server.messages('s')).toHaveLength(rows.length);
      const { sessions } = (await server.call('GET', '/api/sessions')).json;
      expect(sessions[0].message_count).toBe(rows.length);
    }
  });
});
