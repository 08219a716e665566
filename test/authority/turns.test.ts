/** Claim, run, stop and settle, driven by hand through a real server. */

import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;

async function start(config?: string) {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner }, ...(config ? { config } : {}) });
  const sessionId = await server.session();
  const admissions = async () => (await server.call('GET', `/api/sessions/${sessionId}/prompts`)).json.admissions;
  const interrupt = (body: object = {}) => server.call('POST', `/api/sessions/${sessionId}/interrupt`, body);
  const status = async () => (await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status;
  return { script, server, sessionId, admissions, interrupt, status };
}

describe('the queue', () => {
  it('[AD3][AD4] prompts run one at a time, in the order of their acceptance', async () => {
    const { script, server, sessionId, admissions } = await start();
    for (const text of ['a', 'b', 'c']) await server.prompt(sessionId, text);
    for (const [index, text] of ['a', 'b', 'c'].entries()) {
      const turn = await script.turn(index);
      expect(turn.turn.input).toBe(text);
      expect(script.turns).toHaveLength(index + 1);
      const states = (await admissions()).map((one: { status: string }) => one.status);
      expect(states.filter((state: string) => state === 'started')).toHaveLength(1);
      turn.text(`answer ${text}`);
      turn.complete();
    }
    await until('all have ended', async () =>
      (await admissions()).every((one: { outcome: string }) => one.outcome === 'completed'),
    );
    const rows = (await server.messages(sessionId)).map((row) => row.content);
    expect(rows).toEqual(['a', 'answer a', 'b', 'answer b', 'c', 'answer c']);
    // Each turn is told the whole conversation before it.
    expect(script.turns[2]!.turn.history.map((row) => row.content)).toEqual(rows.slice(0, 4));
  });

  it('[AD1] a prompt that was acknowledged is in the state DB', async () => {
    const { server, sessionId, script } = await start();
    const { admission } = await server.prompt(sessionId, 'durable');
    const db = new Database(path.join(server.home, 'state.db'), { readonly: true });
    const row = db.prepare('SELECT * FROM session_admissions WHERE admission_id = ?').get(admission.admission_id);
    db.close();
    expect(row).toMatchObject({ target_session_id: sessionId, payload_json: expect.stringContaining('durable') });
    (await script.turn(0)).complete();
  });

  it('[CL1][CL2] a head that is cancelled while it is checked hands its claim and its verdict to nobody', async () => {
    const script = createEchoRunner();
    const checked: string[] = [];
    let release: () => void = () => {};
    const server = await startTestServer({
      overrides: {
        runner: script.runner,
        async check(admission) {
          checked.push(admission.text);
          if (admission.text === 'refused') return { reason: 'not_allowed' };
          await new Promise<void>((resolve) => {
            release = resolve;
          });
          return 'ok';
        },
      },
    });
    const sessionId = await server.session();
    const head = await server.prompt(sessionId, 'head');
    await server.prompt(sessionId, 'refused');
    await until('the head is checked', () => checked.length === 1);
    const cancelled = await server.call('DELETE', `/api/sessions/${sessionId}/prompts/${head.admission.admission_id}`);
    expect(cancelled.json.admission.outcome).toBe('cancelled');
    release();
    await until('the successor was asked itself', () => checked.length === 2);
    const session = await until('the queue is paused', async () => {
      const { json } = await server.call('GET', `/api/sessions/${sessionId}`);
      return json.session.paused ? json.session : null;
    });
    expect(session).toMatchObject({ status: 'queued', queue_length: 1, paused: { reason: 'not_allowed' } });
    expect(checked).toEqual(['head', 'refused']);
    expect(script.turns).toHaveLength(0);
    // Who waits is told, and the row is still there.
    const waited = await server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, {
      text: 'refused',
      request_id: 'w',
    });
    expect(waited).toMatchObject({ status: 202, json: { reason: 'not_allowed' } });
  });

  it('[LE2] different sessions never wait for each other', async () => {
    const { script, server } = await start();
    const sessions = await Promise.all(Array.from({ length: 20 }, () => server.session()));
    await Promise.all(sessions.map((sessionId) => server.prompt(sessionId, sessionId)));
    await script.turn(19);
    // The last one begun ends first, while all others still run.
    const last = script.turns[19]!;
    last.complete();
    await until('it has ended', async () => {
      const { json } = await server.call('GET', `/api/sessions/${last.turn.sessionId}`);
      return json.session.status === 'idle';
    });
    expect((await server.call('GET', '/health')).json.active_runs).toBe(19);
    for (const turn of script.turns) turn.complete();
  });
});

describe('stop', () => {
  it('[CL6] what was said before a stop is kept once, as interrupted, and what comes later is ignored', async () => {
    const { script, server, sessionId, interrupt, status } = await start();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    turn.say({ type: 'message.start', payload: {} });
    turn.text('half an ans');
    await reader.next(type('message.delta'));
    expect((await interrupt()).json).toEqual({ status: 'interrupted', generation: 1 });
    turn.text('too late');
    const complete = await reader.next(type('message.complete'));
    expect(complete.json.payload).toMatchObject({ status: 'interrupted', outcome: 'interrupted', text: 'half an ans' });
    expect(turn.signal.aborted).toBe(true);
    await until('it is idle', async () => (await status()) === 'idle');
    const rows = await server.messages(sessionId);
    expect(rows.map((row) => [row.role, row.content, row.status])).toEqual([
      ['user', 'go', undefined],
      ['assistant', 'half an ans', 'interrupted'],
    ]);
    expect((await interrupt()).json).toEqual({ status: 'idle', generation: 1 });
  });

  it('[CL6] a stop right after the acknowledgement reaches exactly that turn, and not the next', async () => {
    const { script, server, sessionId, interrupt, admissions, status } = await start();
    for (let round = 0; round < 20; round += 1) {
      await server.prompt(sessionId, `round ${round}`);
      expect((await interrupt()).json).toEqual({ status: 'interrupted', generation: round + 1 });
      await until('it is idle', async () => (await status()) === 'idle');
    }
    await server.prompt(sessionId, 'the next one');
    await until('it runs', () => script.turns.find((one) => one.turn.input === 'the next one'));
    const next = script.turns.at(-1)!;
    expect(next.signal.aborted).toBe(false);
    next.complete();
    await until('all have ended', async () =>
      (await admissions()).every((one: { status: string }) => one.status === 'terminal'),
    );
    const outcomes = (await admissions()).map((one: { outcome: string }) => one.outcome);
    expect(outcomes).toEqual([...Array(20).fill('interrupted'), 'completed']);
  });

  it('[CL6] a second stop while the turn is ending does not reach the prompt that waits behind it', async () => {
    const { script, server, sessionId, interrupt, admissions } = await start();
    await server.prompt(sessionId, 'one');
    await script.turn(0);
    await server.prompt(sessionId, 'two');
    expect(
      (await Promise.all([interrupt(), interrupt(), interrupt({ generation: 1 })])).map((one) => one.status),
    ).toEqual([200, 200, 200]);
    (await script.turn(1)).complete();
    await until('both have ended', async () => (await admissions())[1].outcome === 'completed');
    expect((await admissions())[0].outcome).toBe('interrupted');
  });

  it('[CL6] a stop that names another generation changes nothing', async () => {
    const { script, server, sessionId, interrupt } = await start();
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    for (const generation of [0, 2, 99]) {
      expect(await interrupt({ generation })).toMatchObject({ status: 409, json: { code: 'stale_generation' } });
    }
    expect(turn.signal.aborted).toBe(false);
    expect((await interrupt({ generation: 1 })).json.status).toBe('interrupted');
  });

  it('[CL6] stop and a new prompt in quick succession keep the order user, partial, user', async () => {
    const { script, server, sessionId, interrupt } = await start();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    for (let round = 0; round < 10; round += 1) {
      await server.prompt(sessionId, `q${round}`);
      const turn = await script.turn(round);
      turn.text(`p${round}`);
      await reader.next((event) => event.type === 'message.delta' && event.json.payload.text === `p${round}`);
      await interrupt();
    }
    await server.prompt(sessionId, 'last');
    (await script.turn(10)).complete();
    await reader.next((event) => event.type === 'message.complete' && event.json.payload.outcome === 'completed');
    const rows = (await server.messages(sessionId)).map((row) => row.content);
    expect(rows).toEqual([...Array.from({ length: 10 }, (_, n) => [`q${n}`, `p${n}`]).flat(), 'last']);
    expect(script.turns[10]!.turn.history.map((row) => row.content)).toEqual(rows.slice(0, 20));
  });

  it('[CL6] an agent that ignores the stop is left alone, and the next prompt does not wait for it', async () => {
    const script = createScriptedRunner();
    let deaf = true;
    const server = await startTestServer({
      overrides: {
        runner: {
          kind: 'deaf',
          async *run(turn, signal) {
            if (!deaf) return yield* script.runner.run(turn, signal);
            deaf = false;
            yield { type: 'message.delta', payload: { text: 'before' } };
            await new Promise(() => {});
            return { kind: 'completed' };
          },
        },
      },
    });
    const sessionId = await server.session();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    await server.prompt(sessionId, 'one');
    await reader.next(type('message.delta'));
    await server.call('POST', `/api/sessions/${sessionId}/interrupt`);
    await reader.next(type('message.complete'));
    await server.prompt(sessionId, 'two');
    (await script.turn(0)).complete();
    await reader.next((event) => event.type === 'message.complete' && event.json.payload.outcome === 'completed');
  });
});

describe('trouble', () => {
  it('[RU1] an agent that throws ends the turn as crashed, told as what it is', async () => {
    const server = await startTestServer({
      overrides: {
        runner: {
          kind: 'broken',
          // biome-ignore lint/correctness/useYield: it breaks before it says anything.
          async *run() {
            throw new Error('secret detail');
          },
        },
      },
    });
    const sessionId = await server.session();
    const { message, admission } = await server.ask(sessionId, 'go');
    expect(admission.outcome).toBe('failed');
    expect(message).toMatchObject({ status: 'error', error: { code: 'agent_crashed', retryable: true } });
    expect(JSON.stringify(message)).not.toContain('secret detail');
  });

  it.each([
    ['an unknown event', { type: 'nonsense', payload: {} }],
    ['no event at all', null],
    ['a text that is none', { type: 'message.delta', payload: { text: 7 } }],
    ['an output of a tool that is none', { type: 'tool.output', payload: { tool_id: 't', text: null } }],
    ['a diff that is none', { type: 'tool.complete', payload: { tool_id: 't', name: 'x', result: '', diff: [] } }],
    ['a result that is none', { type: 'tool.complete', payload: { tool_id: 't', name: 'x', result: { a: 1 } } }],
  ])('[RU1] an agent that yields %s hurts its own turn only', async (_what, event) => {
    const echo = createEchoRunner();
    let first = true;
    const server = await startTestServer({
      overrides: {
        runner: {
          kind: 'wrong',
          async *run(turn, signal) {
            if (!first) return yield* echo.runner.run(turn, signal);
            first = false;
            yield event as never;
            return { kind: 'completed' };
          },
        },
      },
    });
    const sessionId = await server.session();
    expect((await server.ask(sessionId, 'go')).message.error.code).toBe('agent_crashed');
    expect((await server.ask(sessionId, 'again')).message.content).toBe('echo: again');
  });

  it('[CL3] a database that is locked from outside while a turn is claimed and settled only delays it', async () => {
    const script = createScriptedRunner();
    let checks = 0;
    let letThrough: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      letThrough = resolve;
    });
    const server = await startTestServer({
      overrides: {
        runner: script.runner,
        async check() {
          checks += 1;
          await gate;
          return 'ok';
        },
      },
    });
    const sessionId = await server.session();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    const { admission } = await server.prompt(sessionId, 'go');
    // Accepted and checked, but not claimed: between the two the lock comes.
    await until('it is checked', () => checks === 1);
    const outside = new Database(path.join(server.home, 'state.db'));
    outside.exec('BEGIN IMMEDIATE');
    letThrough();
    await until('the claim was tried past its patience', () =>
      server.logs.some((line) => line.what === 'claim' && line.kind === 'busy'),
    );
    expect(script.turns).toHaveLength(0);
    expect(outside.prepare('SELECT status FROM session_admissions').pluck().all()).toEqual(['queued']);
    outside.exec('COMMIT');
    const turn = await script.turn(0);
    expect(turn.turn.runId).toBe(admission.run_id);
    outside.exec('BEGIN IMMEDIATE');
    turn.text('said under the lock');
    turn.complete();
    await reader.next(type('message.delta')); // The stream does not wait for the database.
    await until('the settle was tried past its patience', () =>
      server.logs.some((line) => line.what === 'settle' && line.kind === 'busy'),
    );
    expect(reader.events.some(type('message.complete'))).toBe(false);
    outside.exec('COMMIT');
    outside.close();
    const complete = await reader.next(type('message.complete'));
    expect(complete.json.payload).toMatchObject({ outcome: 'completed', text: 'said under the lock' });
    expect(script.turns).toHaveLength(1);
    expect(reader.events.filter(type('message.complete'))).toHaveLength(1);
  });

  it('[CL4] a settle that lost its fence changes nothing, is logged with the admission id, and leaves unknown', async () => {
    const { script, server, sessionId, admissions } = await start();
    const { admission } = await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    const waiting = server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, {
      text: 'go',
      request_id: admission.request_id,
    });
    const outside = new Database(path.join(server.home, 'state.db'));
    outside.prepare('UPDATE sessions SET runtime_generation = runtime_generation + 1 WHERE id = ?').run(sessionId);
    turn.complete();
    expect(await waiting).toMatchObject({ status: 409, json: { code: 'unknown_execution' } });
    outside.close();
    expect((await admissions())[0]).toMatchObject({ status: 'unknown', outcome: null });
    expect(server.logs.find((line) => line.level === 50)).toMatchObject({ admission_id: admission.admission_id });
    // The drain survives: the queue waits, and goes on when a person has decided.
    await server.prompt(sessionId, 'behind');
    const { json } = await server.call('GET', `/api/sessions/${sessionId}`);
    expect(json.session).toMatchObject({ status: 'unknown', queue_length: 1 });
    const address = `/api/sessions/${sessionId}/prompts/${admission.admission_id}/resolve`;
    const resolved = await server.call('POST', address, { outcome: 'interrupted' });
    expect(resolved.json.admission).toMatchObject({ status: 'terminal', outcome: 'interrupted' });
    (await script.turn(1)).complete();
    await until('the next one ran', async () => (await admissions())[1].outcome === 'completed');
  });

  it('[EV2] every turn ends with exactly one message.complete, whatever its end', async () => {
    const { script, server, sessionId, interrupt } = await start();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    const completions = () => reader.events.filter(type('message.complete'));
    await server.prompt(sessionId, 'completes');
    (await script.turn(0)).complete();
    await until('1', () => completions().length === 1);
    await server.prompt(sessionId, 'fails');
    (await script.turn(1)).fail({ code: 'provider_error', message: 'It said no.', retryable: true });
    await until('2', () => completions().length === 2);
    await server.prompt(sessionId, 'is stopped');
    await script.turn(2);
    await interrupt();
    await until('3', () => completions().length === 3);
    expect(completions().map((event) => event.json.payload.outcome)).toEqual(['completed', 'failed', 'interrupted']);
    expect(completions()[1]!.json.payload.error).toMatchObject({ code: 'provider_error' });
    const rows = await server.messages(sessionId);
    expect(rows.find((row) => row.status === 'error')).toMatchObject({ error: { code: 'provider_error' } });
  });

  it('[HT5] halves of a character in two chunks are joined, and a lone half is U+FFFD', async () => {
    const { script, server, sessionId } = await start();
    const ended = server.ask(sessionId, 'go');
    const turn = await script.turn(0);
    turn.text('a\ud83d');
    turn.text('\ude00b\ud83d');
    turn.complete();
    expect((await ended).message.content).toBe('a\u{1f600}b\ufffd');
  });
});
