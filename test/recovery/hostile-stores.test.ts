/** Files and rows that nobody should have written: they cost their session as little as can be, and others nothing. */
import { execFileSync } from 'node:child_process';
import { rm, symlink, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createForeignWriter, type ForeignRow } from '../support/foreign-writer.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const OLD: ForeignRow[] = [
  { role: 'user', content: 'old question', timestamp: 100 },
  { role: 'assistant', content: 'old answer', timestamp: 101 },
];

async function withSession() {
  const overrides = { runner: createEchoRunner().runner };
  const server = await startTestServer({ overrides });
  const sessionId = await server.session({ title: 'Kept' });
  const file = path.join(server.home, 'sessions', `${sessionId}.json`);
  return { server, sessionId, file, foreign: createForeignWriter(server.home, sessionId), overrides };
}

const OURS = `${'ef'.repeat(16)}.0`;

describe('a row with a field of the wrong kind', () => {
  it.each<[what: string, row: ForeignRow]>([
    ['reasoning', { role: 'assistant', content: 'x', timestamp: 5, id: 'q1', reasoning: { a: 1 } }],
    ['run id', { role: 'assistant', content: 'x', timestamp: 5, id: 'q1', run_id: {} }],
    ['tool call id', { role: 'tool', content: 'x', timestamp: 5, id: 'q1', tool_call_id: true }],
    ['tool calls', { role: 'assistant', content: 'x', timestamp: 5, id: 'q1', tool_calls: [null] }],
    ['attachments', { role: 'user', content: 'x', timestamp: 5, id: 'q1', attachments: 'boom' }],
    ['usage', { role: 'assistant', content: 'x', timestamp: 5, id: 'q1', usage: { output_tokens: {} } }],
    ['role', { role: 'banana', content: 'x', timestamp: 5, id: 'q1' }],
    ['content under an id of ours', { role: 'user', content: [{ type: 'text', text: 'x' }], timestamp: 5, id: OURS }],
    ['time under an id of ours', { role: 'user', content: 'x', id: OURS }],
    ['text that is no Unicode', { role: 'user', content: 'x\ud800', timestamp: 5, id: 'q1' }],
  ])('[RC9][HT5] its %s is shown as it can be, and the session works on', async (_what, row) => {
    const { server, sessionId, foreign, overrides } = await withSession();
    await foreign.writeSidecar([...OLD, row]);
    const rows = await server.messages(sessionId);
    expect(rows).toHaveLength(3);
    expect(['user', 'assistant', 'tool', 'system']).toContain(rows[2].role);
    expect(rows[2].content).toMatch(/^x\ufffd?$/);
    for (const format of ['json', 'md', 'html']) {
      expect((await server.call('GET', `/api/sessions/${sessionId}/export?format=${format}`)).status).toBe(200);
    }
    const document = (await server.call('GET', `/api/sessions/${sessionId}/export`)).json;
    expect((await server.call('POST', '/api/sessions/import', document)).status).toBe(201);
    expect((await server.call('POST', `/api/sessions/${sessionId}/fork`)).status).toBe(201);
    await server.ask(sessionId, 'goes on');
    await server.close();
    await rm(path.join(server.home, 'sessions', `${sessionId}.json`));
    const next = await startTestServer({ home: server.home, overrides });
    expect(await next.messages(sessionId)).toHaveLength(5);
  });

  it('[RC9] of the state DB: what is no JSON, or no text, is left out, and the next prompt runs', async () => {
    const { server, sessionId, foreign } = await withSession();
    await server.ask(sessionId, 'first');
    foreign.appendRows([{ role: 'assistant', content: 'x', timestamp: 4e9 }]);
    const db = new Database(path.join(server.home, 'state.db'));
    db.prepare("UPDATE messages SET tool_calls = '[{', extra = '}' WHERE message_id IS NULL").run();
    db.prepare(
      "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', CAST('bytes' AS BLOB), 4e9)",
    ).run(sessionId);
    db.close();
    expect(await server.messages(sessionId)).toHaveLength(4);
    await server.ask(sessionId, 'second');
    await rm(path.join(server.home, 'sessions', `${sessionId}.json`));
    expect(await server.messages(sessionId)).toHaveLength(6);
  });
});

describe('a sidecar that is not what it seems', () => {
  it('[RC1] an id that comes twice names one row: both stay, and a rewind takes back what it says', async () => {
    const { server, sessionId, foreign } = await withSession();
    await server.ask(sessionId, 'keep me');
    const { messages } = await foreign.sidecar();
    await foreign.writeSidecar([...messages, messages[0]]);
    const rows = await server.messages(sessionId);
    expect(rows.map((row) => row.content)).toEqual(['keep me', 'echo: keep me', 'keep me']);
    expect(new Set(rows.map((row) => row.id)).size).toBe(3);
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
    expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['keep me', 'echo: keep me']);
  });

  it('[ED1] a file that claims to have seen the edit does not bring back what it took', async () => {
    const { server, sessionId, foreign, file } = await withSession();
    await server.ask(sessionId, 'kept');
    await server.ask(sessionId, 'taken back');
    const before = await foreign.sidecar();
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
    await writeFile(file, JSON.stringify({ ...before, edit_number: 1 }, null, 2));
    expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['kept', 'echo: kept']);
  });

  it('[RE3] a pipe holds nobody up', async () => {
    const { server, sessionId, file } = await withSession();
    await server.ask(sessionId, 'first');
    await unlink(file);
    execFileSync('mkfifo', [file]);
    const rows = await Promise.all(Array.from({ length: 6 }, () => server.messages(sessionId)));
    expect(rows.every((some) => some.length === 2)).toBe(true);
    await server.ask(sessionId, 'second');
    expect(await server.messages(sessionId)).toHaveLength(4);
  });

  it('[CL3] a link to itself is storage trouble: a prompt waits, and runs when it is gone', async () => {
    const { server, sessionId, file } = await withSession();
    await server.ask(sessionId, 'first');
    await unlink(file);
    await symlink(file, file);
    await server.prompt(sessionId, 'second');
    await until('it is told', () => server.logs.some((line) => line.msg.includes('storage trouble')));
    await unlink(file);
    await until('it has run', async () => {
      const list = await server.call('GET', `/api/sessions/${sessionId}/prompts`);
      return list.json.admissions.at(-1).outcome === 'completed';
    });
  });

  it('[RE1] nested without an end, or with a mark before its text, it costs nothing that another store has', async () => {
    const { server, sessionId, foreign, file } = await withSession();
    await server.ask(sessionId, 'first');
    const rows = await server.messages(sessionId);
    await writeFile(file, `\ufeff${JSON.stringify(await foreign.sidecar())}`);
    expect(await server.messages(sessionId)).toEqual(rows);
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    await writeFile(file, `{"session_id": "${sessionId}", "messages": [{"role": "user", "content": ${deep}}]}`);
    expect((await server.messages(sessionId)).slice(0, 2)).toEqual(rows);
    await server.ask(sessionId, 'second');
  });
});

describe('what another program calls pending', () => {
  it.each([
    ['a list of parts', [{ type: 'text', text: 'precious' }]],
    ['a text', 'precious'],
  ])('[RE1] as %s it is kept', async (_what, pending) => {
    const { server, sessionId, foreign } = await withSession();
    await foreign.writeSidecar(OLD, { active_stream_id: 'ab'.repeat(16), pending_user_message: pending });
    expect((await server.messages(sessionId)).map((row) => row.content)).toContain('precious');
  });

  it('[RE2] while a turn of ours runs, the end of ours does not end it', async () => {
    const agent = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: agent.runner } });
    const sessionId = await server.session();
    const foreign = createForeignWriter(server.home, sessionId);
    await server.prompt(sessionId, 'ours');
    const turn = await agent.turn(0);
    const { messages } = await foreign.sidecar();
    const pending = { active_stream_id: 'ab'.repeat(16), pending_user_message: 'precious', pending_started_at: 5 };
    await foreign.writeSidecar(messages, pending);
    turn.complete();
    await until('the precious prompt is there', async () =>
      (await server.messages(sessionId)).some((row) => row.content === 'precious'),
    );
  });
});

describe('a lost state DB', () => {
  it('[RE1][DB3] every conversation is listed again with its title and its messages, and goes on', async () => {
    const { server, sessionId, overrides } = await withSession();
    await server.ask(sessionId, 'first');
    const rows = await server.messages(sessionId);
    await server.close();
    for (const end of ['', '-wal', '-shm']) await rm(path.join(server.home, `state.db${end}`), { force: true });
    const next = await startTestServer({ home: server.home, overrides });
    const listed = await until('it is listed', async () => {
      const { sessions } = (await next.call('GET', '/api/sessions')).json;
      return sessions.length > 0 ? sessions : null;
    });
    expect(listed).toMatchObject([{ session_id: sessionId, title: 'Kept' }]);
    expect(await next.messages(sessionId)).toEqual(rows);
    await next.ask(sessionId, 'second');
    expect((await next.call('GET', '/api/search?q=first')).json.hits).toHaveLength(2);
  });
});
