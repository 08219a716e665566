/** What a model is given of a conversation of which a store has lost something, or in which another program keeps a context. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createForeignWriter, type ForeignRow } from '../support/foreign-writer.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

const OLD: ForeignRow[] = [
  { role: 'user', content: 'old question', timestamp: 100 },
  { role: 'assistant', content: 'old answer', timestamp: 101 },
  { role: 'user', content: 'second question', timestamp: 102 },
  { role: 'assistant', content: 'second answer', timestamp: 103 },
];
const OLD_TEXTS = OLD.map((row) => row.content);
const bare = (rows: readonly ForeignRow[]) => rows.map(({ role, content }) => ({ role, content }));

/** A session, what another program wrote of it, and what a model is given with the next prompt. */
async function conversation() {
  const agent = createEchoRunner();
  const server = await startTestServer({ overrides: { runner: agent.runner } });
  const id = await server.session({ title: 'Kept' });
  const foreign = createForeignWriter(server.home, id);
  const given = async (text: string): Promise<unknown[]> => {
    await server.ask(id, text);
    return agent.turns.at(-1)!.turn.history.map((row) => row.content);
  };
  const edit = async (what: 'rewind' | 'clear', body: object = {}): Promise<void> => {
    await server.messages(id); // What is foreign gets its ids.
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect((await server.call('POST', `/api/sessions/${id}/${what}`, { revision, ...body })).status).toBe(200);
  };
  const inDb = (work: (db: Database.Database) => void): void => {
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 2000 });
    work(db);
    db.close();
  };
  return { agent, server, id, foreign, given, edit, inDb };
}

describe('a row that the state DB has lost in the middle', () => {
  it('[RC9][RC2] is in the transcript and in the context of the model, in its place', async () => {
    const { server, id, given, inDb } = await conversation();
    for (const text of ['one', 'two', 'three']) await server.ask(id, text);
    const rows = await server.messages(id);
    inDb((db) => db.prepare('DELETE FROM messages WHERE message_id IN (?, ?)').run(rows[2].id, rows[3].id));
    expect(await server.messages(id)).toEqual(rows);
    expect(await given('four')).toEqual(rows.map((row) => row.content));
  });

  it('[RC9] also where another program keeps a context that is older than it', async () => {
    const { server, id, foreign, given, inDb } = await conversation();
    foreign.appendRows(OLD);
    await foreign.writeSidecar(OLD, { context_messages: bare(OLD) });
    for (const text of ['one', 'two']) await server.ask(id, text);
    const rows = await server.messages(id);
    inDb((db) => db.prepare('DELETE FROM messages WHERE message_id IN (?, ?)').run(rows[4].id, rows[5].id));
    expect(await server.messages(id)).toEqual(rows);
    expect(await given('three')).toEqual([...OLD_TEXTS, 'one', 'echo: one', 'two', 'echo: two']);
  });
});

describe('what an edit took back', () => {
  it('[ED1][RC9] is out of the context that another program keeps, and stays out', async () => {
    const { server, id, foreign, given, edit } = await conversation();
    foreign.appendRows(OLD);
    await foreign.writeSidecar(OLD, {
      context_messages: [...bare(OLD.slice(0, 3)), { role: 'tool', content: 'seen' }],
    });
    await server.ask(id, 'one');
    await edit('rewind', { turns: 2 });
    expect((await foreign.sidecar()).context_messages).toEqual(bare(OLD.slice(0, 2)));
    expect(await given('two')).toEqual(OLD_TEXTS.slice(0, 2));
    expect(await given('three')).toEqual([...OLD_TEXTS.slice(0, 2), 'two', 'echo: two']);
  });

  it('[ED1][RC9] is not told by a summary either: then the model is given the transcript', async () => {
    const { id, server, foreign, given, edit } = await conversation();
    foreign.appendRows(OLD);
    const context_messages = [{ role: 'user', content: '[CONTEXT COMPACTION] all of it' }];
    await foreign.writeSidecar(OLD, { context_messages });
    expect(await server.messages(id)).toHaveLength(4);
    await edit('rewind', { turns: 1 });
    expect(await given('two')).toEqual(OLD_TEXTS.slice(0, 2));
  });

  it('[ED1][RC9] leaves nothing behind when all was cleared', async () => {
    const { id, server, foreign, given, edit } = await conversation();
    foreign.appendRows(OLD);
    await foreign.writeSidecar(OLD, { context_messages: bare(OLD) });
    expect(await server.messages(id)).toHaveLength(4);
    await edit('clear');
    expect(await given('two')).toEqual([]);
  });
});
