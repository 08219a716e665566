/** Summaries beside what else happens to the stores: contexts and rows of other programs, a state DB from before an edit, another server. */
import { copyFile, rm } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { startChildServer } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { createForeignWriter, type ForeignRow } from '../support/foreign-writer.ts';
import { connectGateway } from '../support/gateway.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const OLD: ForeignRow[] = [
  { role: 'user', content: 'old question', timestamp: 100 },
  { role: 'assistant', content: 'old answer', timestamp: 101 },
  { role: 'user', content: 'second question', timestamp: 102 },
  { role: 'assistant', content: 'second answer', timestamp: 103 },
];

async function scene() {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model}\n`;
  const server = await startTestServer({ config, overrides: { compressWaitMs: 50 } });
  const id = await server.session({ title: 'Kept' });
  const address = `/api/sessions/${id}`;
  const compact = async (on: TestServer = server) => (await on.call('POST', `${address}/compact`)).json;
  /** What the model is sent with the next prompt. */
  const told = async (text: string, on: TestServer = server): Promise<string> => {
    provider.next({ text: `answer to ${text}` });
    await on.ask(id, text);
    expect(provider.violations).toEqual([]);
    return JSON.stringify(provider.requests.at(-1)!.body.messages);
  };
  return { provider, server, id, address, compact, told };
}

it('[CX3][RC9] the context that another program keeps is summarised with its own summary, and what is said here follows', async () => {
  const { provider, server, id, compact, told } = await scene();
  const foreign = createForeignWriter(server.home, id);
  foreign.appendRows(OLD);
  const context_messages = [{ role: 'user', content: '[CONTEXT COMPACTION] all of the old' }];
  const anchor = { role: 'assistant', text: 'second answer', ts: 103, attachments: 0 };
  await foreign.writeSidecar(OLD, { context_messages, compression_anchor_message_key: anchor });
  expect(await told('one')).toContain('all of the old');
  await told('two');
  const rows = await server.messages(id);
  expect(await compact()).toMatchObject({ status: 'compressed', summary: 'Summary number 1.' });
  expect(JSON.stringify(provider.summaries[0]!.body.messages)).toContain('all of the old');
  expect(await server.messages(id)).toEqual(rows);
  const after = await told('three');
  expect(after).toContain('Summary number 1.');
  expect(after).not.toContain('all of the old');
  expect(after).not.toContain('old question');
  expect(after).toContain('answer to two');
});

it('[CX4] a row that is found behind the anchor is told, one that is found before it ends the summary', async () => {
  const { server, id, compact, told } = await scene();
  const foreign = createForeignWriter(server.home, id);
  for (const text of ['one', 'two']) await told(text);
  const [first, , second] = await server.messages(id);
  await compact();
  expect(await told('three')).toContain('Summary number 1.');
  foreign.appendRows([{ role: 'assistant', content: 'late behind', timestamp: second!.timestamp + 1e-4 }]);
  const behind = await told('four');
  expect(behind).toContain('Summary number 1.');
  await foreign.writeSidecar([
    ...(await foreign.sidecar()).messages.slice(0, 1),
    { role: 'assistant', content: 'late before', timestamp: first!.timestamp + 1e-4 },
    ...(await foreign.sidecar()).messages.slice(1),
  ]);
  const before = await told('five');
  expect(before).toContain('late before');
  expect(before).not.toContain('Summary number 1.');
});

it('[CX4][ED1] a state DB from before an edit has a summary that counts no more', async () => {
  const { provider, server, id, address, compact, told } = await scene();
  for (const text of ['oak', 'ash', 'elm']) await told(text);
  expect((await compact()).status).toBe('compressed');
  const place = (name: string) => path.join(server.home, name);
  const db = new Database(place('state.db'));
  db.prepare('VACUUM INTO ?').run(place('older.db'));
  db.close();
  const { revision } = (await server.call('GET', address)).json.session;
  await server.call('POST', `${address}/rewind`, { turns: 2, revision });
  await server.close();
  for (const end of ['-wal', '-shm']) await rm(place(`state.db${end}`), { force: true });
  await copyFile(place('older.db'), place('state.db'));
  const next = await startTestServer({ home: server.home });
  expect(await next.messages(id)).toHaveLength(2);
  const after = await told('yew', next);
  expect(after).not.toContain('Summary');
  expect(after).not.toContain('ash');
  expect(provider.summaries).toHaveLength(1);
});

it('[CX2][LE1] another server that runs the session is the one to be asked', async () => {
  const { provider, server, address, told } = await scene();
  await told('one');
  const child = await startChildServer({ home: server.home });
  const hold = provider.hold();
  provider.next({ text: 'so' }, { hold });
  await child.call('POST', `${address}/prompts`, { text: 'there' });
  await hold.reached;
  const refused = await server.call('POST', `${address}/compact`);
  expect(refused).toMatchObject({ status: 423, json: { code: 'session_not_owned' } });
  expect(provider.summaries).toHaveLength(0);
  hold.release();
});

it('[CX2] over the gateway a long one is pending and goes on by itself; its clients hear of it', async () => {
  const { provider, server, id, told } = await scene();
  for (const text of ['one', 'two']) await told(text);
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.resume', { session_id: id });
  const hold = provider.hold();
  provider.nextSummary({ text: 'In the' }, { hold }, { text: ' end' });
  const from = client.frames.length;
  expect(await client.call('session.compress', { session_id })).toMatchObject({ status: 'pending' });
  hold.release();
  await client.event(session_id, 'session.info', from);
  expect(await told('three')).toContain('In the end');
});
