/**
 * Another program left a turn pending in a session of this home: its sidecar, its rows in the state DB and its journal are
 * all that is known of it. The first read shows one right transcript, once, and says what nobody can know.
 */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { filesOf } from '../support/child-server.ts';
import { createForeignWriter, type ForeignRow } from '../support/foreign-writer.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const NOW = 1_800_000_000;
const RUN = 'ab'.repeat(16);
const OLD: ForeignRow[] = [
  { role: 'user', content: 'old question', timestamp: 100 },
  { role: 'assistant', content: 'old answer', timestamp: 101 },
];
const PENDING = { active_stream_id: RUN, pending_user_message: 'new request', pending_started_at: 102 };

/** A server with one session, and the program that writes into it. */
async function withForeignSession(clock = { now: NOW }) {
  const overrides = { runner: createEchoRunner().runner, now: () => clock.now };
  const server = await startTestServer({ overrides });
  const sessionId = await server.session({ title: 'Shared' });
  return { server, sessionId, foreign: createForeignWriter(server.home, sessionId), overrides, clock };
}

const textsOf = (rows: Message[]): string[] => rows.map((row) => row.content);
const markerOf = (rows: Message[]): Message | undefined => rows.find((row) => row.error?.code === 'interrupted');

/** Reads twice: the second time must say the same and change nothing on the disk. */
async function readTwice(server: TestServer, sessionId: string): Promise<Message[]> {
  const rows = await server.messages(sessionId);
  const files = await filesOf(server.home);
  expect(await server.messages(sessionId)).toEqual(rows);
  expect(await filesOf(server.home)).toEqual(files);
  return rows;
}

describe('a pending turn without journal', () => {
  it('[RE1] its prompt and output in the state DB are adopted as they stand, without a marker', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([
      ...OLD,
      { role: 'user', content: '[Workspace::v1: /w]\nnew request', timestamp: 102 },
      { role: 'assistant', content: 'visible text', timestamp: 103 },
      { role: 'tool', content: 'tool result', timestamp: 104, tool_call_id: 'c1' },
      { role: 'assistant', content: 'latest progress', timestamp: 105 },
    ]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows)).toEqual([
      'old question',
      'old answer',
      'new request',
      'visible text',
      'tool result',
      'latest progress',
    ]);
    expect(markerOf(rows)).toBeUndefined();
    expect(await foreign.sidecar()).toMatchObject({ active_stream_id: null, pending_user_message: null });
    // Both stores know every row by the same id from now on.
    expect(foreign.stateRows().map((row) => row.message_id)).toEqual(rows.map((row) => row.id));
  });

  it('[RE1][RE4] nothing but the prompt is known: it is there with its time, and the marker says what may still come', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_attachments: [{ name: 'a.png', path: '/x/a.png' }] });
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(0, 3)).toEqual(['old question', 'old answer', 'new request']);
    expect(rows[2]).toMatchObject({ role: 'user', timestamp: 102, attachments: ['a.png'], recovered: true });
    expect(rows[3]?.error).toMatchObject({ code: 'interrupted', cause: 'lost_bookkeeping', recovery: 'pending' });
    expect(rows[3]?.content).toMatch(/^Response interrupted.*before this turn finished/);
    expect(rows).toHaveLength(4);
    // People see none of what the retry keeps in the file.
    expect(JSON.stringify(rows)).not.toContain('_journal_retry');
  });

  it('[RE1] the copy of its prompt alone settles nothing', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([...OLD, { role: 'user', content: 'new request', timestamp: 102 }]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(0, 3)).toEqual(['old question', 'old answer', 'new request']);
    expect(markerOf(rows)?.error?.recovery).toBe('pending');
  });

  it('[RE1] an older prompt with the same words is another one', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_user_message: 'old question' });
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(0, 3)).toEqual(['old question', 'old answer', 'old question']);
  });

  it('[RE1] what only the agent added to the prompt is not shown; the person sees their own text, time and picture', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    const parts = [
      { type: 'text', text: 'new request' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,YWJj' } },
      { type: 'text', text: 'a note of the agent' },
    ];
    await foreign.writeSidecar(OLD, { ...PENDING, pending_attachments: [{ name: 'a.png' }] });
    foreign.appendRows([
      ...OLD,
      { role: 'user', content: parts, timestamp: 102 },
      { role: 'assistant', content: 'I see', timestamp: 103 },
    ]);
    const rows = await readTwice(server, sessionId);
    expect(rows[2]).toMatchObject({ content: 'new request', timestamp: 102, attachments: ['a.png'] });
    expect(textsOf(rows)).toEqual(['old question', 'old answer', 'new request', 'I see']);
    expect(JSON.stringify(rows)).not.toContain('a note of the agent');
    expect(foreign.stateRows()[2].content).toContain('a note of the agent');
  });
});

describe('a pending turn with a journal', () => {
  it('[RE1][JO5] what it had said stands above the marker, in order, each once', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([...OLD, { role: 'user', content: '[Workspace::v1: /w]\nnew request', timestamp: 102 }]);
    await foreign.journal(RUN, [
      ['reasoning', { text: 'hm' }],
      ['token', { text: 'Checking ' }],
      ['token', { text: 'first.' }],
      ['tool', { name: 'terminal', preview: 'gh pr list', args: { command: 'gh pr list' } }],
      ['tool_complete', { name: 'terminal', duration: 1.2, is_error: false }],
      ['token', { text: 'The scan is done.' }],
    ]);
    const rows = await readTwice(server, sessionId);
    const said = rows.slice(3).filter((row) => row.role === 'assistant');
    expect(said.map((row) => row.content).filter((text) => !text.startsWith('Response'))).toEqual([
      'Checking first.',
      'The scan is done.',
    ]);
    expect(rows.at(-1)?.error).toMatchObject({ code: 'interrupted', recovery: 'recovered' });
    expect(rows.filter((row) => row.role === 'user')).toHaveLength(2);
    expect(rows[2]?.content).toBe('new request');
  });

  it('[RE1] that says completed: the turn is complete, without a marker', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await foreign.journal(RUN, [
      ['token', { text: 'All of it.' }],
      ['done', {}, 'completed'],
      ['stream_end', {}],
    ]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows)).toEqual(['old question', 'old answer', 'new request', 'All of it.']);
  });

  it('[RE4] that says completed but shows nothing: nobody has an answer, so it is not called complete', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await foreign.journal(RUN, [['done', {}, 'completed']]);
    const rows = await server.messages(sessionId);
    expect(markerOf(rows)).toBeDefined();
  });

  it('[RE1] rows of the state DB and later words of the journal are put together, each once', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([
      ...OLD,
      { role: 'user', content: 'new request', timestamp: 102 },
      { role: 'assistant', content: 'First part.', timestamp: 103 },
    ]);
    await foreign.journal(RUN, [
      ['token', { text: 'First part.' }],
      ['interim_assistant', { text: 'First part.', already_streamed: true }],
      ['token', { text: 'Second part, only stre' }],
    ]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(2, 5)).toEqual(['new request', 'First part.', 'Second part, only stre']);
    expect(rows.at(-1)?.error?.recovery).toBe('recovered');
    expect(rows).toHaveLength(6);
  });
});

describe('output that appears later', () => {
  it('[RE5] the next read shows it above the marker, which then says so; readers at the same time do it once', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    expect(markerOf(await server.messages(sessionId))?.error?.recovery).toBe('pending');
    await foreign.journal(RUN, [['token', { text: 'It was here.' }]]);
    const reads = await Promise.all(Array.from({ length: 10 }, () => server.messages(sessionId)));
    for (const rows of reads) expect(textsOf(rows).slice(0, 3)).toEqual(['old question', 'old answer', 'new request']);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows)[3]).toBe('It was here.');
    expect(rows[4]?.error?.recovery).toBe('recovered');
    expect(rows).toHaveLength(5);
    // Without its last line the journal may go on; with it, what it says is all.
    await foreign.journal(RUN, [['token', { text: ' And more.' }]]);
    expect(textsOf(await readTwice(server, sessionId))[3]).toBe('It was here. And more.');
    await foreign.journal(RUN, [['done', {}, 'completed']]);
    const whole = await readTwice(server, sessionId);
    expect(textsOf(whole).slice(3)).toEqual(['It was here. And more.']);
    expect(JSON.stringify(await foreign.sidecar())).not.toContain('_journal_retry');
  });

  it('[RE5] a journal that is not there, or empty, costs no attempt', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await server.messages(sessionId);
    for (let read = 0; read < 20; read += 1) await server.messages(sessionId);
    await foreign.journal(RUN, []);
    await writeFile(foreign.journalFile(RUN), '');
    for (let read = 0; read < 20; read += 1) await server.messages(sessionId);
    const { messages } = await foreign.sidecar();
    expect(messages.at(-1)._journal_retry).toMatchObject({ run_id: RUN, attempts: 0 });
  });

  it('[RE5] one that never shows output is given up after twelve attempts, and not looked at again', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await server.messages(sessionId);
    await foreign.journal(RUN, [['stream_end', {}]]);
    for (let read = 0; read < 11; read += 1) await server.messages(sessionId);
    expect(markerOf(await server.messages(sessionId))?.error?.recovery).toBe('given_up');
    await foreign.journal(RUN, [['token', { text: 'too late' }]]);
    expect(textsOf(await readTwice(server, sessionId))).not.toContain('too late');
  });

  it('[RE5] after a day it is given up unread', async () => {
    const { server, sessionId, foreign, clock } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await server.messages(sessionId);
    await foreign.journal(RUN, [['token', { text: 'too late' }]]);
    clock.now += 24 * 3600 + 1;
    const rows = await readTwice(server, sessionId);
    expect(markerOf(rows)?.error?.recovery).toBe('given_up');
    expect(textsOf(rows)).not.toContain('too late');
  });

  it('[RE5] the real answer in the state DB replaces the marker, whatever its time', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([...OLD, { role: 'user', content: 'new request', timestamp: 102 }]);
    expect(markerOf(await server.messages(sessionId))).toBeDefined();
    foreign.appendRows([{ role: 'assistant', content: 'the real answer', timestamp: 103 }]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows)).toEqual(['old question', 'old answer', 'new request', 'the real answer']);
  });
});

describe('a marker that waits, and what may happen to it', () => {
  const restart = async ({ server, overrides }: Awaited<ReturnType<typeof withForeignSession>>) => {
    await server.close();
    return startTestServer({ home: server.home, overrides });
  };

  it('[RE5][RC9] a restart does not disarm it, and shows nobody what is counted', async () => {
    const session = await withForeignSession();
    const { sessionId, foreign } = session;
    await foreign.writeSidecar(OLD, PENDING);
    await session.server.messages(sessionId);
    const next = await restart(session);
    const rows = await readTwice(next, sessionId);
    expect(JSON.stringify(rows)).not.toContain('_journal_retry');
    await foreign.journal(RUN, [['token', { text: 'It was here.' }]]);
    expect(textsOf(await readTwice(next, sessionId))[3]).toBe('It was here.');
  });

  it('[RE5] also when the sidecar is lost: the marker itself says that it waits', async () => {
    const session = await withForeignSession();
    const { server, sessionId, foreign } = session;
    await foreign.writeSidecar([], { ...PENDING });
    await server.messages(sessionId);
    await rm(path.join(server.home, 'sessions', `${sessionId}.json`));
    await foreign.journal(RUN, [['token', { text: 'It was here.' }]]);
    const next = await restart(session);
    const rows = await readTwice(next, sessionId);
    expect(textsOf(rows)[1]).toBe('It was here.');
    expect(rows.at(-1)?.error?.recovery).toBe('recovered');
  });

  it('[RE5] a later turn does not make it wait for ever', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await server.messages(sessionId);
    await server.ask(sessionId, 'and now?');
    await foreign.journal(RUN, [['token', { text: 'It was here.' }]]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(2, 4)).toEqual(['new request', 'It was here.']);
    expect(markerOf(rows)?.error?.recovery).toBe('recovered');
    expect(textsOf(rows).slice(-2)).toEqual(['and now?', 'echo: and now?']);
  });

  it('[RE3] while nothing appears, reading writes nothing at all', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    await server.messages(sessionId);
    const db = new Database(path.join(server.home, 'state.db'));
    const version = () => db.pragma('data_version', { simple: true });
    const before = version();
    for (let read = 0; read < 5; read += 1) await server.messages(sessionId);
    expect(version()).toBe(before);
    db.close();
  });
});

describe('a session that others write to', () => {
  it('[RE3] a locked state DB costs a reader nothing: it is healed when the lock is gone', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD);
    foreign.appendRows([...OLD, { role: 'user', content: 'one more', timestamp: 110 }]);
    const db = new Database(path.join(server.home, 'state.db'));
    db.exec('BEGIN IMMEDIATE');
    expect(textsOf(await server.messages(sessionId))).toEqual(['old question', 'old answer', 'one more']);
    expect((await foreign.sidecar()).messages).toHaveLength(2);
    db.exec('ROLLBACK');
    db.close();
    await readTwice(server, sessionId);
    expect((await foreign.sidecar()).messages).toHaveLength(3);
  });

  it('[ED1] words that were taken back and are said again are new ones, and stay away when taken back again', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    const go: ForeignRow[] = [
      { role: 'user', content: 'go', timestamp: 200 },
      { role: 'assistant', content: 'gone', timestamp: 201 },
    ];
    await foreign.writeSidecar(OLD);
    foreign.appendRows([...OLD, ...go]);
    for (const at of [300, 400]) {
      expect(textsOf(await readTwice(server, sessionId)).slice(2)).toEqual(['go', 'gone']);
      const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
      const body = { turns: 1, revision };
      expect((await server.call('POST', `/api/sessions/${sessionId}/rewind`, body)).json).toMatchObject({ removed: 2 });
      expect(textsOf(await readTwice(server, sessionId))).toEqual(['old question', 'old answer']);
      foreign.appendRows(go.map((row) => ({ ...row, timestamp: row.timestamp! + at })));
    }
    expect(textsOf(await readTwice(server, sessionId)).slice(2)).toEqual(['go', 'gone']);
  });

  it('[ED1][RC1] turns that it adds behind an edit of ours stay, and what was taken back does not return with its file', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    const later: ForeignRow[] = [
      { role: 'user', content: 'take me back', timestamp: 200 },
      { role: 'assistant', content: 'taken', timestamp: 201 },
    ];
    await foreign.writeSidecar([...OLD, ...later]);
    await server.messages(sessionId);
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
    // It had its own copy, knows nothing of the edit, and went on.
    await foreign.writeSidecar([
      ...OLD,
      ...later,
      { role: 'user', content: 'a new turn', timestamp: 300 },
      { role: 'assistant', content: 'a new answer', timestamp: 301 },
    ]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows)).toEqual(['old question', 'old answer', 'a new turn', 'a new answer']);
  });

  it('[RE2] the end of a turn of ours whose fate was unknown does not end one of it', async () => {
    const { server, sessionId, foreign, clock } = await withForeignSession();
    await server.ask(sessionId, 'ours');
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 5_000 });
    db.exec("UPDATE session_admissions SET status = 'unknown', outcome = NULL");
    db.close();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_started_at: NOW - 5 });
    const prompts = `/api/sessions/${sessionId}/prompts`;
    const [ours] = (await server.call('GET', prompts)).json.admissions;
    const resolved = await server.call('POST', `${prompts}/${ours.admission_id}/resolve`, { outcome: 'interrupted' });
    expect(resolved.status).toBe(200);
    expect(await foreign.sidecar()).toMatchObject({ active_stream_id: RUN, pending_user_message: 'new request' });
    clock.now += 3_600;
    expect(textsOf(await readTwice(server, sessionId))).toContain('new request');
  });

  it('[RE2] an edit does not end a turn of it that may still run', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_started_at: NOW - 5 });
    await server.messages(sessionId);
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    const answer = await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
    expect([answer.status, answer.json.code]).toEqual([409, 'session_busy']);
    expect(await foreign.sidecar()).toMatchObject({ active_stream_id: RUN, pending_user_message: 'new request' });
  });

  it('[DB3] deleting it removes the file that it made', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD);
    await server.messages(sessionId);
    expect((await server.call('DELETE', `/api/sessions/${sessionId}`)).status).toBe(204);
    expect([...(await filesOf(server.home)).keys()].some((name) => name.includes(sessionId))).toBe(false);
  });

  it('[RE1] a prompt that its agent stored a moment later is the same prompt', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([
      ...OLD,
      { role: 'user', content: 'new request', timestamp: 104 },
      { role: 'assistant', content: 'an answer', timestamp: 105 },
    ]);
    expect(textsOf(await readTwice(server, sessionId))).toEqual([
      'old question',
      'old answer',
      'new request',
      'an answer',
    ]);
  });

  it('[RE1] two calls of one tool are two, also when only one store knows of the first', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    const call = (id: string) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } });
    await foreign.writeSidecar(OLD, PENDING);
    foreign.appendRows([
      ...OLD,
      { role: 'user', content: 'new request', timestamp: 102 },
      { role: 'assistant', content: 'second look', timestamp: 104, tool_calls: [call('c2')] },
      { role: 'tool', content: 'two', timestamp: 105, tool_call_id: 'c2', name: 'read' },
    ]);
    await foreign.journal(RUN, [
      ['token', { text: 'first look' }],
      ['tool', { name: 'read', preview: 'one', tid: 'c1', args: {} }],
      ['tool_complete', { name: 'read', preview: 'one', tid: 'c1', is_error: false }],
      ['token', { text: 'second look' }],
      ['tool', { name: 'read', preview: 'two', tid: 'c2', args: {} }],
      ['tool_complete', { name: 'read', preview: 'two', tid: 'c2', is_error: false }],
    ]);
    const rows = await readTwice(server, sessionId);
    expect(textsOf(rows).slice(3, 7)).toEqual(['first look', 'one', 'second look', 'two']);
  });
});

describe('a turn that may still run', () => {
  it('[RE2] younger than 30 seconds nobody knows: nothing is touched', async () => {
    const { server, sessionId, foreign, clock } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_started_at: NOW - 29 });
    expect(textsOf(await server.messages(sessionId))).toEqual(['old question', 'old answer']);
    expect(await foreign.sidecar()).toMatchObject({ active_stream_id: RUN, pending_user_message: 'new request' });
    clock.now += 2;
    expect(textsOf(await server.messages(sessionId))).toContain('new request');
  });

  it.each([undefined, 0, 'garbage'])('[RE2] a start time of %j says nothing: it counts as old', async (startedAt) => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_started_at: startedAt });
    expect(textsOf(await server.messages(sessionId))).toContain('new request');
  });

  it('[RE2][RE3] a prompt of ours settles it first: its own is not lost, and the next runs at once', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pending_started_at: NOW - 5 });
    await server.ask(sessionId, 'and now?');
    const rows = await readTwice(server, sessionId);
    expect(rows.filter((row) => row.role === 'user').map((row) => row.content)).toEqual([
      'old question',
      'new request',
      'and now?',
    ]);
  });

  it('[RE2] a session that goes on in another after compression is left wholly unchanged', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD, { ...PENDING, pre_compression_snapshot: true });
    expect(textsOf(await server.messages(sessionId))).toEqual(['old question', 'old answer']);
    expect(await foreign.sidecar()).toMatchObject(PENDING);

    const parent = await server.session();
    const child = await server.session();
    const other = createForeignWriter(server.home, parent);
    await other.writeSidecar(OLD, PENDING);
    const db = new Database(path.join(server.home, 'state.db'));
    db.prepare('UPDATE sessions SET parent_session_id = ? WHERE id = ?').run(parent, child);
    db.close();
    expect(textsOf(await server.messages(parent))).toEqual(['old question', 'old answer']);
    expect(await other.sidecar()).toMatchObject(PENDING);
  });
});

describe('a turn of a session that was forked', () => {
  it('[RE1][ED4] is settled like any other: a copy is no continuation', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await foreign.writeSidecar(OLD);
    await server.messages(sessionId);
    expect((await server.call('POST', `/api/sessions/${sessionId}/fork`)).status).toBe(201);
    await foreign.writeSidecar(OLD, PENDING);
    expect(textsOf(await server.messages(sessionId))).toContain('new request');
  });
});

describe('a turn of ours whose state DB was lost', () => {
  it('[RE1] its own journal tells it', async () => {
    const { server, sessionId, foreign } = await withForeignSession();
    await server.ask(sessionId, 'kept words');
    const rows = await server.messages(sessionId);
    const { active_stream_id: _none, ...sidecar } = await foreign.sidecar();
    const runId = rows[0]!.id.slice(0, 32);
    await server.close();
    const db = new Database(path.join(server.home, 'state.db'));
    db.exec('DELETE FROM session_admissions; DELETE FROM messages;');
    db.close();
    const pending = {
      active_stream_id: runId,
      pending_user_message: 'kept words',
      pending_started_at: rows[0]!.timestamp,
    };
    await foreign.writeSidecar([], { ...sidecar, messages: undefined, ...pending });
    const next = await startTestServer({ home: server.home, overrides: { runner: createEchoRunner().runner } });
    expect(textsOf(await readTwice(next, sessionId))).toEqual(textsOf(rows));
    await rm(foreign.journalFile(runId));
  });
});
