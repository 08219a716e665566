/** A commit that reported failure and had happened all the same: it is looked at again, and nothing is done twice. */
import { describe, expect, it } from 'vitest';
import { createLyingCommits } from '../support/lying-commits.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const rows = (status: string) => `SELECT 1 FROM session_admissions WHERE status = '${status}'`;
const completion = (event: SseEvent) => event.type === 'message.complete';

async function start() {
  const commits = createLyingCommits();
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  const reader = await server.stream(`/api/sessions/${sessionId}/events`);
  const address = `/api/sessions/${sessionId}`;
  const admissions = async () => (await server.call('GET', `${address}/prompts`)).json.admissions;
  const idle = () =>
    until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
  return { commits, script, server, sessionId, address, reader, admissions, idle };
}

describe('a commit that raised but happened', () => {
  it('[AD1][AD2] of an admission: it is acknowledged and runs once', async () => {
    const { commits, script, server, sessionId, admissions, idle } = await start();
    commits.lieOnceAfter(rows('queued'));
    const { admission } = await server.prompt(sessionId, 'go');
    expect(commits.lies()).toBe(1);
    (await script.turn(0)).complete();
    await idle();
    expect(await admissions()).toMatchObject([{ admission_id: admission.admission_id, outcome: 'completed' }]);
  });

  it('[AD1][AD2] of an admission that cannot be looked at either: refused, and the same key gives its receipt', async () => {
    const { commits, script, server, address, admissions, idle } = await start();
    commits.thenFailReads(1);
    commits.lieOnceAfter(rows('queued'));
    const body = { text: 'go', request_id: 'k' };
    expect(await server.call('POST', `${address}/prompts`, body)).toMatchObject({ status: 503 });
    const again = await server.call('POST', `${address}/prompts`, body);
    expect(again).toMatchObject({ status: 202, json: { admission: { request_id: 'k' } } });
    (await script.turn(0)).complete();
    await idle();
    expect(await admissions()).toHaveLength(1);
    expect(script.turns).toHaveLength(1);
  });

  it('[AD3][CL1] of a claim: the claim holds, and the turn runs once', async () => {
    const { commits, script, server, sessionId, reader, admissions, idle } = await start();
    commits.lieOnceAfter(rows('started'));
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    expect(commits.lies()).toBe(1);
    turn.text('answer');
    turn.complete();
    await idle();
    expect(await admissions()).toMatchObject([{ outcome: 'completed', generation: 1 }]);
    expect(script.turns).toHaveLength(1);
    expect(reader.events.filter(completion)).toHaveLength(1);
    expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['go', 'answer']);
  });

  it('[CL4] of a settle: the turn has ended, is told once, and is not unknown', async () => {
    const { commits, script, server, sessionId, reader, admissions, idle } = await start();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    await server.prompt(sessionId, 'behind');
    commits.lieOnceAfter("SELECT 1 FROM session_admissions WHERE outcome = 'completed'");
    turn.text('answer');
    turn.complete();
    (await script.turn(1)).complete();
    await idle();
    expect(commits.lies()).toBe(1);
    expect((await admissions()).map((one: { outcome: string }) => one.outcome)).toEqual(['completed', 'completed']);
    await until('both are told', () => reader.events.filter(completion).length === 2);
    expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
    const session = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    expect(session.message_count).toBe((await server.messages(sessionId)).length);
  });

  it.each([
    ['', 0],
    [' that cannot be looked at at once', 2],
  ])('[CL5] of a cancel%s: refused, told once, and the repeat gives the receipt', async (_what, failingReads) => {
    const { commits, script, server, sessionId, address, reader } = await start();
    await server.prompt(sessionId, 'runs');
    const turn = await script.turn(0);
    const { admission } = await server.prompt(sessionId, 'waits', { request_id: 'w' });
    const waiting = server.call('POST', `${address}/prompts?wait=1`, { text: 'waits', request_id: 'w' });
    await until('it waits', async () => (await server.call('GET', `${address}/prompts`)).status === 200);
    commits.thenFailReads(failingReads);
    commits.lieOnceAfter("SELECT 1 FROM session_admissions WHERE outcome = 'cancelled'");
    const cancel = () => server.call('DELETE', `${address}/prompts/${admission.admission_id}`);
    expect(await cancel()).toMatchObject({ status: 503, json: { code: 'storage_unavailable' } });
    expect(await waiting).toMatchObject({ status: 200, json: { admission: { outcome: 'cancelled' } } });
    expect(await cancel()).toMatchObject({ status: 200, json: { admission: { outcome: 'cancelled' } } });
    expect((await cancel()).status).toBe(200);
    turn.complete();
    await reader.next((event) => completion(event) && event.json.payload.outcome === 'completed');
    expect(reader.events.filter(completion).map((event) => event.json.payload.outcome)).toEqual([
      'cancelled',
      'completed',
    ]);
  });

  it('[CL5] of clear_queue: refused, and each of them is told once', async () => {
    const { commits, script, server, sessionId, address, reader } = await start();
    await server.prompt(sessionId, 'runs');
    await script.turn(0);
    await server.prompt(sessionId, 'one');
    await server.prompt(sessionId, 'two');
    commits.lieOnceAfter("SELECT 1 FROM session_admissions WHERE outcome = 'cancelled'");
    const clear = () => server.call('POST', `${address}/interrupt`, { clear_queue: true });
    expect((await clear()).status).toBe(503);
    expect((await clear()).status).toBe(200);
    await until('all are told', () => reader.events.filter(completion).length === 3);
    expect(script.turns).toHaveLength(1);
  });
});
