/**
 * Files that the server's user may not read or write. Root may do everything, so the server is a process of another user; its
 * home is that user's.
 */
import { spawn } from 'node:child_process';
import { chmod, chown, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mainEntry } from '../support/compile-children.ts';
import { call } from '../support/test-server.ts';
import { journalOf, type Kept, sharedHome, sidecarOf } from './damaged-homes.ts';

const home2 = sharedHome(2);

/** Nobody, where this process may become somebody else. */
const OTHER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Gives a home to the user of the server. */
async function handOver(home: Kept): Promise<void> {
  const { uid, gid } = OTHER;
  if (uid === undefined) return;
  for (const name of ['', ...(await readdir(home.home, { recursive: true }))]) await chown(home.file(name), uid, gid);
}

/** Serves a home as that user. @returns how to ask it and to stop it; or how it ended */
async function serve(home: Kept) {
  const args = [mainEntry, 'serve', '--home', home.home, '--port', '0'];
  const child = spawn(process.execPath, args, { env: {}, stdio: ['ignore', 'pipe', 'pipe'], ...OTHER });
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (some: string) => {
    stderr += some;
  });
  const port = await new Promise<string | null>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (some: string) => resolve(/port=(\d+)/.exec(some)?.[1] ?? null));
    void exited.then(() => resolve(null));
  });
  if (port === null) return { kind: 'ended', code: await exited, stderr } as const;
  return {
    kind: 'serves',
    get: async (address: string) => call(`http://127.0.0.1:${port}${address}`, 'GET'),
    ask: (id: string, text: string) =>
      call(`http://127.0.0.1:${port}/api/sessions/${id}/prompts?wait=1`, 'POST', { text }),
    stop: async () => {
      child.kill('SIGTERM');
      return exited;
    },
  } as const;
}

const serving = async (home: Kept) => {
  const server = await serve(home);
  if (server.kind === 'ended') throw new Error(server.stderr);
  return server;
};

describe('without permission', () => {
  it('[RE6] to read a sidecar and a journal: the first is moved aside and made anew, and nobody misses the other', async () => {
    const home = await home2();
    const old = await readFile(sidecarOf(home));
    await handOver(home);
    await chmod(sidecarOf(home), 0);
    await chmod(journalOf(home, 1), 0);
    for (let round = 0; round < 2; round += 1) {
      const server = await serving(home);
      expect((await server.get('/api/sessions')).json.sessions).toHaveLength(2);
      for (const id of home.ids) {
        expect((await server.get(`/api/sessions/${id}/messages`)).json.messages).toEqual(home.rows.get(id));
      }
      expect((await server.get(`/api/sessions/${home.ids[0]}`)).json.session.flags).toEqual(['damaged_sidecar']);
      await server.stop();
    }
    const aside = (await readdir(home.file('sessions'))).filter((name) => name.includes('.damaged-'));
    expect(aside).toHaveLength(1);
    const place = path.join(home.file('sessions'), aside[0]!);
    await chmod(place, 0o600);
    expect(await readFile(place)).toEqual(old);
  });

  it('[RE6] to enter the folder of sidecars: all is listed and told, a read says why, and all is well afterwards', async () => {
    const home = await home2();
    await handOver(home);
    await chmod(home.file('sessions'), 0);
    const server = await serving(home);
    expect((await server.get('/api/sessions')).json.sessions).toHaveLength(2);
    const refused = await server.get(`/api/sessions/${home.ids[0]}/messages`);
    expect([refused.status, refused.json.code]).toEqual([503, 'storage_unavailable']);
    await chmod(home.file('sessions'), 0o700);
    for (const id of home.ids) {
      expect((await server.get(`/api/sessions/${id}/messages`)).json.messages).toEqual(home.rows.get(id));
      expect((await server.ask(id, 'and on')).status).toBe(200);
    }
    await server.stop();
  });

  it('[RE6] to write sidecars: reads work, a prompt waits, and runs when it may', async () => {
    const home = await home2();
    await handOver(home);
    await chmod(home.file('sessions'), 0o500);
    await chmod(home.file('sessions', '_run_journal'), 0o500);
    for (const id of home.ids) await chmod(home.file('sessions', '_run_journal', id), 0o500);
    const server = await serving(home);
    for (const id of home.ids) {
      expect((await server.get(`/api/sessions/${id}/messages`)).json.messages).toEqual(home.rows.get(id));
    }
    const answer = server.ask(home.ids[0]!, 'and on');
    await expect
      .poll(async () => (await server.get(`/api/sessions/${home.ids[0]}`)).json.session.status)
      .toBe('running');
    await chmod(home.file('sessions'), 0o700);
    for (const id of home.ids) await chmod(home.file('sessions', '_run_journal', id), 0o700);
    await chmod(home.file('sessions', '_run_journal'), 0o700);
    expect((await answer).status).toBe(200);
    expect((await server.get(`/api/sessions/${home.ids[0]}/messages`)).json.messages).toHaveLength(6);
    await server.stop();
  });

  it('[RE6] to use the state DB or the home: a sentence says so, and nothing is changed', async () => {
    for (const name of ['state.db', '']) {
      const home = await home2();
      await handOver(home);
      const before = await readFile(home.file('state.db'));
      await chmod(home.file(name), name === '' ? 0o500 : 0);
      const server = await serve(home);
      if (server.kind === 'serves') throw new Error(`it serves a home whose ${name || 'folder'} is closed`);
      expect(server.code).toBe(1);
      expect(server.stderr.trim().split('\n').at(-1)).toMatch(/^turnkeep: the (database in|home) .* cannot be .*:/);
      await chmod(home.file(name), 0o700);
      expect(await readFile(home.file('state.db'))).toEqual(before);
      expect((await readdir(home.home)).filter((one) => one.startsWith('doctor-'))).toEqual([]);
    }
  });
});
