/** Who waits for a prompt of a queue that does not move: told why, by every kind of waiting, and by no old verdict. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { createSteps } from '../support/steps.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** A server whose check waits at the point `check` and then answers what `verdict` holds. */
async function start() {
  const script = createScriptedRunner();
  const steps = createSteps();
  const verdict: { reason: string | null } = { reason: 'not_allowed' };
  const server = await startTestServer({
    overrides: {
      runner: script.runner,
      async check() {
        await steps.pass('check');
        return verdict.reason === null ? 'ok' : { reason: verdict.reason };
      },
    },
  });
  const sessionId = await server.session();
  const session = `/api/sessions/${sessionId}`;
  const prompts = `${session}/prompts`;
  const wait = (text: string, request_id = text) => server.call('POST', `${prompts}?wait=1`, { text, request_id });
  const stream = (text: string, request_id = text) =>
    server.stream(prompts, { method: 'POST', body: { text, request_id } });
  const shown = async () => (await server.call('GET', session)).json.session;
  return { script, steps, verdict, server, sessionId, session, prompts, wait, stream, shown };
}

describe('a queue that a refused check has paused', () => {
  it('[CL2][HT7] ends a wait with 202 and a stream with run.pending, each with the reason', async () => {
    const { steps, prompts, wait, stream, shown, server } = await start();
    steps.hold('check');
    const follower = await stream('head');
    const waits = wait('second');
    const alsoFollows = await stream('third');
    await until('all three wait', async () => (await shown()).queue_length === 3);
    steps.free('check');
    expect(await waits).toMatchObject({
      status: 202,
      json: { reason: 'not_allowed', admission: { status: 'queued' } },
    });
    await Promise.all([follower.ended, alsoFollows.ended]);
    const { admissions } = (await server.call('GET', prompts)).json;
    for (const [index, reader] of [
      [0, follower],
      [2, alsoFollows],
    ] as const) {
      const { run_id, admission_id } = admissions[index];
      expect(reader.events.map((event) => [event.type, event.id, event.json])).toEqual([
        [
          'run.pending',
          null,
          {
            type: 'run.pending',
            session_id: admissions[0].session_id,
            run_id,
            admission_id,
            payload: { admission_id, reason: 'not_allowed' },
          },
        ],
      ]);
    }
    expect(await shown()).toMatchObject({ status: 'queued', queue_length: 3, paused: { reason: 'not_allowed' } });
  });

  it('[CL2][HT7] gives whoever comes later the verdict of its own asking, not the old one', async () => {
    const { verdict, wait, stream, script, shown } = await start();
    expect((await wait('head')).json.reason).toBe('not_allowed');
    verdict.reason = 'still_not';
    expect((await wait('second')).json.reason).toBe('still_not');
    verdict.reason = null;
    const answer = wait('third');
    const reader = await stream('fourth');
    for (let index = 0; index < 4; index += 1) (await script.turn(index)).complete();
    expect(await answer).toMatchObject({ status: 200, json: { admission: { outcome: 'completed' } } });
    await reader.ended;
    expect(reader.events.map((event) => event.type)).toEqual(['run.start', 'message.complete']);
    expect(await shown()).toMatchObject({ status: 'idle' });
    expect((await shown()).paused).toBeUndefined();
  });

  it('[CL2] whoever asks while a check runs hears the verdict on that asking', async () => {
    const { steps, verdict, wait, stream, script } = await start();
    steps.hold('check');
    const first = wait('head');
    await steps.reached('check');
    const second = await stream('second');
    // The check that was running refuses; the one that the second prompt asked for does not.
    steps.go('check');
    await steps.reached('check');
    verdict.reason = null;
    steps.free('check');
    for (let index = 0; index < 2; index += 1) (await script.turn(index)).complete();
    expect((await first).status).toBe(200);
    await second.ended;
    expect(second.events.at(-1)?.type).toBe('message.complete');
  });
});

describe('a queue behind a turn of unknown fate', () => {
  it('[CL4][HT7] tells those who follow that turn, those who wait behind it, and those who come later', async () => {
    const { script, verdict, wait, stream, server, sessionId, prompts, shown } = await start();
    verdict.reason = null;
    const own = await stream('go');
    await script.turn(0);
    const behind = await stream('behind');
    const waits = wait('waits');
    await until('they wait', async () => (await shown()).queue_length === 2);
    const db = new Database(path.join(server.home, 'state.db'), { timeout: 5_000 });
    db.prepare('UPDATE sessions SET runtime_generation = runtime_generation + 1').run();
    db.close();
    script.turns[0]?.complete();
    await Promise.all([own.ended, behind.ended]);
    const pending = { type: 'run.pending', json: { payload: { reason: 'unknown_execution' } } };
    expect(own.events.at(-1)).toMatchObject(pending);
    expect(behind.events).toMatchObject([pending]);
    expect(await waits).toMatchObject({ status: 202, json: { reason: 'unknown_execution' } });
    expect(await shown()).toMatchObject({ status: 'unknown', queue_length: 2 });
    // Those who come now: the turn itself cannot be followed; what waits behind it is told so in place of a stream.
    expect(await wait('go')).toMatchObject({ status: 409, json: { code: 'unknown_execution' } });
    expect(await wait('later')).toMatchObject({ status: 202, json: { reason: 'unknown_execution' } });
    const answer = await server.call('POST', prompts, { text: 'last' }, { accept: 'text/event-stream' });
    expect(answer).toMatchObject({
      status: 202,
      json: { reason: 'unknown_execution', admission: { status: 'queued' } },
    });
    // Once it is resolved all of it runs.
    const { admissions } = (await server.call('GET', prompts)).json;
    await server.call('POST', `${prompts}/${admissions[0].admission_id}/resolve`, { outcome: 'interrupted' });
    for (let index = 1; index <= 4; index += 1) (await script.turn(index)).complete();
    await until('it is idle', async () => (await shown()).status === 'idle');
    expect(script.turns.map((played) => played.turn.sessionId)).toEqual(Array(5).fill(sessionId));
  });
});
