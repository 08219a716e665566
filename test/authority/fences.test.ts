/** A run that lost its claim, and how a person ends it: nothing is guessed, and nothing that was shown is lost. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { filesOf, startChildServer } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;

async function start() {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}`;
  const reader = await server.stream(`${address}/events`);
  const session = async () => (await server.call('GET', address)).json.session;
  const admissions = async () => (await server.call('GET', `${address}/prompts`)).json.admissions;
  const resolve = (admissionId: string) =>
    server.call('POST', `${address}/prompts/${admissionId}/resolve`, { outcome: 'interrupted' });
  const sql = (text: string) => {
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 5_000 });
    db.prepare(text).run();
    db.close();
  };
  /** The session moves under its running turn, as a second owner or another program would make it. */
  const move = () => sql('UPDATE sessions SET runtime_generation = runtime_generation + 1');
  return { script, server, sessionId, address, reader, session, admissions, resolve, sql, move };
}

const TOOL = { tool_id: 't1', name: 'read_file', args: { path: 'a' }, preview: 'a' };

describe('a settle that lost its fence', () => {
  it('[CL4] changes nothing, is logged, clears the stamp, and lets the task end cleanly', async () => {
    const { script, server, sessionId, session, admissions, move } = await start();
    const { admission } = await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.text('captured');
    move();
    turn.complete();
    await until('it is unknown', async () => (await session()).status === 'unknown');
    expect(await session()).toMatchObject({ run: null, status: 'unknown' });
    expect((await server.call('GET', '/health')).json.active_runs).toBe(0);
    expect((await admissions())[0]).toMatchObject({ status: 'unknown', outcome: null });
    const errors = server.logs.filter((line) => line.level >= 50);
    expect(errors).toMatchObject([{ admission_id: admission.admission_id, session_id: sessionId }]);
    // What was captured is in the journal, and nowhere else yet.
    const journals = [...(await filesOf(server.home))].filter(([name]) => name.endsWith('.jsonl'));
    expect(journals[0]?.[1]).toContain('captured');
    expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['go']);
  });

  it('[CL4] a row that cannot be kept any more stops the agent, and ends the same', async () => {
    const { script, server, sessionId, session, reader, move } = await start();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.text('first');
    await reader.next(type('message.delta'));
    move();
    turn.say({ type: 'message.start', payload: {} });
    await until('the agent is stopped', () => turn.signal.aborted);
    await until('it is unknown', async () => (await session()).status === 'unknown');
  });
});

describe('resolve', () => {
  it('[LE5] gives the session back when nothing waits in it, although its runtime had gone from memory', async () => {
    const { script, server, sessionId, session, resolve, reader, move } = await start();
    const { admission } = await server.prompt(sessionId, 'go');
    await script.turn(0);
    move();
    script.turns[0]?.complete();
    await until('it is unknown', async () => (await session()).status === 'unknown');
    reader.drop();
    await until('nobody reads it', async () => (await server.call('GET', '/health')).json.live_sessions === 0);
    expect((await resolve(admission.admission_id)).status).toBe(200);
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 5_000 });
    const leases = () => db.prepare('SELECT session_id FROM active_sessions').all();
    await until('it is given back', () => leases().length === 0);
    db.close();
  });

  it('[CL4][EV4] brings what the turn had shown into the transcript, once, and the queue goes on', async () => {
    const { script, server, sessionId, session, reader, admissions, resolve, move } = await start();
    const { admission } = await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.say({ type: 'message.start', payload: {} });
    turn.text('let me look');
    turn.say({ type: 'tool.start', payload: TOOL });
    turn.say({
      type: 'tool.complete',
      payload: { ...TOOL, result: 'content', is_error: false, duration_s: 1 },
    });
    turn.text('the answer');
    await reader.next((event) => event.json.payload?.text === 'the answer');
    move();
    turn.complete();
    await until('it is unknown', async () => (await session()).status === 'unknown');
    await server.prompt(sessionId, 'behind');
    expect((await resolve(admission.admission_id)).json.admission).toMatchObject({
      status: 'terminal',
      outcome: 'interrupted',
    });
    const next = await script.turn(1);
    // The model is told what the person was shown.
    expect(next.turn.history.map((row) => row.content)).toEqual(['go', 'let me look', 'content', 'the answer']);
    next.text('second');
    next.complete();
    await until('it is idle', async () => (await session()).status === 'idle');
    const shown = (await server.messages(sessionId)).map((row) => [row.role, row.content, row.status]);
    expect(shown).toEqual([
      ['user', 'go', undefined],
      ['assistant', 'let me look', 'complete'],
      ['tool', 'content', 'complete'],
      ['assistant', 'the answer', 'interrupted'],
      ['user', 'behind', undefined],
      ['assistant', 'second', 'complete'],
    ]);
    expect((await session()).message_count).toBe(6);
    // Readers that stayed were told its end once, as an ordinary event of the run; those that come back get the same.
    const ends = reader.events.filter(type('message.complete'));
    expect(ends.map((event) => [event.json.run_id === admission.run_id, event.json.payload.outcome])).toEqual([
      [true, 'interrupted'],
      [false, 'completed'],
    ]);
    expect(ends[0]?.json.payload).toMatchObject({ text: 'the answer', status: 'interrupted' });
    const again = await server.stream(`/api/sessions/${sessionId}/events?cursor=${admission.run_id}:0`);
    await again.next((event) => type('message.complete')(event) && event.json.payload.outcome === 'completed');
    const runEvents = (events: SseEvent[]) => events.filter((event) => event.id !== null && event.json.run_id);
    expect(runEvents(again.events).map((event) => event.data)).toEqual(
      runEvents(reader.events).map((event) => event.data),
    );
    // Again: the same receipt, and nothing moves.
    const before = await filesOf(server.home);
    expect((await resolve(admission.admission_id)).json.admission.outcome).toBe('interrupted');
    expect(await filesOf(server.home)).toEqual(before);
    expect((await admissions()).map((one: { outcome: string }) => one.outcome)).toEqual(['interrupted', 'completed']);
  });

  it('[CL4][RE4] of a turn whose journal says no end shows what came, and a marker', async () => {
    const { script, server, sessionId, reader, sql } = await start();
    const { admission } = await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.text('half an ans');
    await reader.next(type('message.delta'));
    // The process that ran it ended without a trace, and its row was left unknown.
    await server.close();
    sql("UPDATE session_admissions SET status = 'unknown', outcome = NULL, last_seq = NULL, message_id = NULL");
    const journal = path.join(server.home, 'sessions/_run_journal', sessionId, `${admission.run_id}.jsonl`);
    const lines = (await readFile(journal, 'utf8')).trimEnd().split('\n');
    await writeFile(journal, `${lines.slice(0, -1).join('\n')}\n{"version":2,"cre`);
    const later = await startTestServer({ home: server.home, overrides: { runner: createEchoRunner().runner } });
    const resolved = await later.call('POST', `/api/sessions/${sessionId}/prompts/${admission.admission_id}/resolve`, {
      outcome: 'interrupted',
    });
    expect(resolved.json.admission).toMatchObject({ outcome: 'interrupted', error: { cause: 'unknown' } });
    await later.ask(sessionId, 'next');
    const rows = await later.messages(sessionId);
    expect(rows.map((row) => row.role)).toEqual(['user', 'assistant', 'assistant', 'user', 'assistant']);
    expect(rows[1]).toMatchObject({ content: 'half an ans' });
    expect(rows[2]).toMatchObject({ status: 'error', error: { cause: 'unknown', recovery: 'recovered' } });
    expect(rows[4]).toMatchObject({ content: 'echo: next' });
    expect((await readdir(path.dirname(journal))).some((name) => name.includes('.torn-'))).toBe(true);
  });

  it.each([
    ['claimed', 'none'],
    ['pending-saved', 'pending'],
  ] as const)('[CL4][RE4] of a turn that died at "%s" claims no more than is known: %s', async (crashAt, recovery) => {
    const home = await temporaryFolder();
    const child = await startChildServer({ home, crashAt });
    const { session } = (await child.call('POST', '/api/sessions')).json;
    const address = `/api/sessions/${session.session_id}`;
    const { admission } = (await child.call('POST', `${address}/prompts`, { text: 'lost' })).json;
    await child.exited;
    const db = new Database(path.join(home, 'state.db'));
    db.prepare("UPDATE session_admissions SET status = 'unknown'").run();
    db.close();
    const server = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
    expect((await server.call('GET', address)).json.session.status).toBe('unknown');
    const resolve = `${address}/prompts/${admission.admission_id}/resolve`;
    expect((await server.call('POST', resolve, { outcome: 'interrupted' })).status).toBe(200);
    await server.ask(session.session_id, 'next');
    const rows = await server.messages(session.session_id);
    expect(rows.map((row) => row.role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(rows[1].error).toMatchObject({ cause: 'unknown', recovery });
  });
});
