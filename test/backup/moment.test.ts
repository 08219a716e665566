/**
 * The moment that a backup shows, with everything that can happen on either side of it: the home is another one, later or
 * earlier, when the next step of the backup begins.
 */
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { backUp } from '../../server/backup/backup.ts';
import type { Message } from '../../server/core/terms.ts';
import { startChildServer } from '../support/child-server.ts';
import type { FakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { messagesOf } from '../support/kill-rounds.ts';
import { until } from '../support/until.ts';
import { ask, namesIn, newSession, providedHome, restored, rewind } from './homes.ts';

/** A home as a dead server left it, and what is in it. */
interface State {
  home: string;
  /** The transcript of each conversation that is there. */
  rows: Map<string, Message[]>;
}

/**
 * Two states of one home. In between a turn died and the prompt behind it ran, a turn was taken back and another one
 * came, a conversation was deleted and another one made.
 */
async function twoStates() {
  const { home, provider } = await providedHome();
  const folder = await temporaryFolder();
  let server = await startChildServer({ home });
  const [changed, gone, busy] = [await newSession(server), await newSession(server), await newSession(server)];
  for (const text of ['one', 'two']) await ask(server, changed, text);
  await ask(server, gone, 'one');
  const send = async (text: string) =>
    (await server.call('POST', `/api/sessions/${busy}/prompts`, { text })).json.run_id;
  const reader = await server.stream(`/api/sessions/${busy}/events`);
  const dies: string = await send('script:chunks=5,hang=1,id=dies');
  await reader.next((event) => event.type === 'message.delta' && event.json.payload.text.includes(':4]'));
  const waits: string = await send('waits');
  const rows = async (ids: string[]) =>
    new Map(await Promise.all(ids.map(async (id) => [id, await messagesOf(server, id)] as const)));
  const earlierRows = await rows([changed, gone]);
  await server.kill();
  const earlier: State = { home: path.join(folder, 'earlier'), rows: earlierRows };
  await cp(home, earlier.home, { recursive: true });

  server = await startChildServer({ home });
  await until('the queue is empty', async () => {
    return (await server.call('GET', `/api/sessions/${busy}`)).json.session.status === 'idle';
  });
  await rewind(server, changed);
  await ask(server, changed, 'three');
  expect((await server.call('DELETE', `/api/sessions/${gone}`)).status).toBeLessThan(300);
  const made = await newSession(server);
  await ask(server, made, 'one');
  const laterRows = await rows([changed, busy, made]);
  await server.kill();
  const later: State = { home: path.join(folder, 'later'), rows: laterRows };
  await cp(home, later.home, { recursive: true });
  return { provider, home, earlier, later, changed, gone, busy, made, dies, waits };
}

/** Makes a home another one, all at once. */
function become(home: string, state: State): void {
  for (const name of readdirSync(home)) rmSync(path.join(home, name), { recursive: true });
  cpSync(state.home, home, { recursive: true });
}

/** Backs the home up, which becomes another one when a step begins. */
async function backUpAcross(home: string, step: string | null, then: State): Promise<string> {
  const progress = {
    begin(what: string) {
      if (what === step) become(home, then);
    },
    add() {},
    clear() {},
  };
  const { signal } = new AbortController();
  const parts = { now: () => 1_772_542_802, signal, progress, warn: () => {} };
  const to = path.join(await temporaryFolder(), 'backup.tar.gz');
  const { file } = await backUp({ home, to, secrets: true, version: '1.2.3' }, parts);
  return file;
}

const asksOf = (provider: FakeProvider, from: number): string[] =>
  provider.requests.slice(from).map((one) => String(one.body.messages?.at(-1)?.content));

it('[BK1][BK2] the moment of a backup is that of its database, whatever happens on either side of it', async () => {
  const { provider, home, earlier, later, changed, gone, busy, made, dies, waits } = await twoStates();
  const start = async (step: string | null) => {
    become(home, earlier);
    const restoredHome = await restored(await backUpAcross(home, step, later));
    const names = await namesIn(restoredHome);
    const asked = provider.requests.length;
    const server = await startChildServer({ home: restoredHome });
    return { server, asks: () => asksOf(provider, asked), names };
  };

  // Nothing happens; or all of it when the database is copied already.
  for (const step of [null, 'copying turns']) {
    const { server, asks } = await start(step);
    for (const id of [changed, gone]) expect(await messagesOf(server, id)).toEqual(earlier.rows.get(id));
    expect((await server.call('GET', `/api/sessions/${made}`)).status).toBe(404);
    await until('the queue is empty', async () => {
      return (await server.call('GET', `/api/sessions/${busy}`)).json.session.status === 'idle';
    });
    const rows = await messagesOf(server, busy);
    expect(rows.map((row) => [row.run_id, row.role, row.status ?? null])).toEqual([
      [dies, 'user', null],
      [dies, 'assistant', 'partial'],
      [dies, 'assistant', 'error'],
      [waits, 'user', null],
      [waits, 'assistant', 'complete'],
    ]);
    expect(rows[1]!.content).toBe('[dies:0] [dies:1] [dies:2] [dies:3] [dies:4] ');
    expect(asks()).toHaveLength(1);
    expect(server.stderr()).not.toMatch(/"level":(50|60)/);
    await server.kill();
  }

  // All of it happens when the conversations are copied already, and the database is not.
  const { server, asks, names } = await start('copying the database');
  for (const [id, rows] of later.rows) expect(await messagesOf(server, id)).toEqual(rows);
  expect((await server.call('GET', `/api/sessions/${gone}`)).status).toBe(404);
  // Of what was deleted before, the archive itself has nothing.
  expect(names.filter((name) => name.includes(gone))).toEqual([]);
  expect(asks()).toEqual([]);
  expect(server.stderr()).not.toMatch(/"level":(50|60)/);
});
