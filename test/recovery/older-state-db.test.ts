/**
 * A state DB is put back to what it was before an edit, beside the sidecar that has seen it: the newer of the two edits
 * counts, whichever store knows it, and what was rewound stays away.
 */
import { copyFile, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../support/child-server.ts';
import { createForeignWriter } from '../support/foreign-writer.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const contentsOf = async (server: TestServer, id: string): Promise<string[]> =>
  (await server.messages(id)).map((row) => row.content);
const turnsOf = (...prompts: string[]): string[] => prompts.flatMap((text) => [text, `echo: ${text}`]);

/** A session of three turns, a copy of its state DB and of its sidecar, and how they are put back under a new server. */
async function threeTurns() {
  const agent = createEchoRunner();
  const overrides = { runner: agent.runner };
  const server = await startTestServer({ overrides });
  const id = await server.session({ title: 'Trees' });
  for (const text of ['oak', 'ash', 'elm']) await server.ask(id, text);
  const sidecar = path.join(server.home, 'sessions', `${id}.json`);
  const place = (name: string) => path.join(server.home, name);
  const db = new Database(place('state.db'));
  db.prepare('VACUUM INTO ?').run(place('older.db'));
  db.close();
  await copyFile(sidecar, place('older.json'));

  const rewind = async (turns: number): Promise<void> => {
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect((await server.call('POST', `/api/sessions/${id}/rewind`, { turns, revision })).status).toBe(200);
  };
  /** @param meanwhile what happens before the new server starts */
  const putBack = async (meanwhile: () => void = () => {}): Promise<TestServer> => {
    await server.close();
    for (const end of ['-wal', '-shm']) await rm(place(`state.db${end}`), { force: true });
    await copyFile(place('older.db'), place('state.db'));
    meanwhile();
    return startTestServer({ home: server.home, overrides });
  };
  const foreign = createForeignWriter(server.home, id);
  return { agent, server, id, sidecar, older: place('older.json'), rewind, putBack, foreign, overrides };
}

/** Every read says this, also when the sidecar is lost or older; and the second one changes no byte. */
async function staysAs(server: TestServer, id: string, sidecar: string, older: string, expected: string[]) {
  expect(await contentsOf(server, id)).toEqual(expected);
  const files = await filesOf(server.home);
  expect(await contentsOf(server, id)).toEqual(expected);
  expect(await filesOf(server.home)).toEqual(files);
  await copyFile(older, sidecar);
  expect(await contentsOf(server, id)).toEqual(expected);
  await rm(sidecar);
  expect(await contentsOf(server, id)).toEqual(expected);
}

describe('a state DB from before an edit', () => {
  it('[ED1][RC1] does not bring back what was rewound, nor does the model get it', async () => {
    const { agent, server, id, sidecar, older, rewind, putBack } = await threeTurns();
    await rewind(2);
    expect(JSON.parse(await readFile(sidecar, 'utf8'))).toMatchObject({ edit_number: 1 });
    expect(await contentsOf(server, id)).toEqual(turnsOf('oak'));
    const next = await putBack();
    await staysAs(next, id, sidecar, older, turnsOf('oak'));
    await next.ask(id, 'yew');
    expect(JSON.stringify(agent.turns.at(-1)!.turn.history)).not.toMatch(/ash|elm/);
    expect(await contentsOf(next, id)).toEqual(turnsOf('oak', 'yew'));
  });

  it('[ED1][RC1] nor what two edits took back, with a turn between them', async () => {
    const { server, id, sidecar, older, rewind, putBack } = await threeTurns();
    await rewind(2);
    for (const text of ['yew', 'fir']) await server.ask(id, text);
    await rewind(1);
    await staysAs(await putBack(), id, sidecar, older, turnsOf('oak', 'yew'));
  });

  it('[ED1] nor what was cleared', async () => {
    const { server, id, sidecar, older, putBack } = await threeTurns();
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect((await server.call('POST', `/api/sessions/${id}/clear`, { revision })).status).toBe(200);
    await staysAs(await putBack(), id, sidecar, older, []);
  });

  it('[ED1][RC2] what was written behind the edit is kept, whichever store has it', async () => {
    const { server, id, rewind, putBack, foreign } = await threeTurns();
    await rewind(1);
    await server.ask(id, 'yew');
    const next = await putBack(() => foreign.appendRows([{ role: 'user', content: 'fir', timestamp: 4e9 }]));
    const expected = [...turnsOf('oak', 'ash', 'yew'), 'fir'];
    for (const _read of [1, 2]) expect(await contentsOf(next, id)).toEqual(expected);
  });

  it('[ED1][RE3] a server that may not write does not show it either', async () => {
    const { id, rewind, putBack, server } = await threeTurns();
    await rewind(1);
    const next = await putBack();
    const db = new Database(path.join(server.home, 'state.db'));
    db.exec('BEGIN IMMEDIATE');
    expect(await contentsOf(next, id)).toEqual(turnsOf('oak', 'ash'));
    expect(await contentsOf(next, id)).toEqual(turnsOf('oak', 'ash'));
    db.exec('ROLLBACK');
    db.close();
    expect(await contentsOf(next, id)).toEqual(turnsOf('oak', 'ash'));
    const { session } = (await next.call('GET', `/api/sessions/${id}`)).json;
    expect(session.message_count).toBe(4);
  });
});
