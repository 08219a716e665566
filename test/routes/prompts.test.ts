/** Prompts over HTTP: three forms, idempotency, the queue, cancel, interrupt, and the agent's questions. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import type { Answer as AgentAnswer } from '../../server/runners/runner.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseReader } from '../support/sse.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

async function scriptedServer(config?: string) {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    overrides: { runner: scripted.runner },
    ...(config === undefined ? {} : { config }),
  });
  const id = await server.session();
  return { server, scripted, id, address: `/api/sessions/${id}` };
}

/** Submits in the form of a stream. */
const submitStream = (server: TestServer, id: string, body: object): Promise<SseReader> =>
  server.stream(`/api/sessions/${id}/prompts`, { method: 'POST', body });

const submitWait = (server: TestServer, id: string, body: object) =>
  server.call('POST', `/api/sessions/${id}/prompts?wait=1`, body);

/** The events of a stream as they were sent, when it has ended. */
async function wholeStream(stream: SseReader): Promise<string[]> {
  await stream.ended;
  return stream.events.map((event) => `${event.id} ${event.type} ${event.data}`);
}

const sessionOf = async (server: TestServer, id: string) =>
  (await server.call('GET', `/api/sessions/${id}`)).json.session;

const idle = (server: TestServer, id: string) =>
  until('the session is idle', async () => {
    const session = await sessionOf(server, id);
    return session.status === 'idle' ? session : null;
  });

it('[HT7] a prompt is accepted with 202 and runs by itself', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const answer = await server.call('POST', `${address}/prompts`, { text: 'hello' });
  expect(answer.status).toBe(202);
  const { admission, run_id, cursor } = answer.json;
  expect(admission).toMatchObject({
    admission_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    request_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    session_id: id,
    run_id,
    outcome: null,
    text: 'hello',
  });
  expect(cursor).toBe(`${run_id}:0`);
  const turn = await scripted.turn(0);
  expect(turn.turn).toMatchObject({ sessionId: id, runId: run_id, input: 'hello' });
  expect(await sessionOf(server, id)).toMatchObject({
    status: 'running',
    run: { run_id, admission_id: admission.admission_id },
    queue_length: 0,
  });
  turn.text('hi');
  turn.complete();
  await idle(server, id);
  expect((await server.messages(id)).map((row) => [row.role, row.content])).toEqual([
    ['user', 'hello'],
    ['assistant', 'hi'],
  ]);
});

it('[HT7] with Accept: text/event-stream the answer is the run, from its first event to its last', async () => {
  const { server, scripted, id } = await scriptedServer();
  const stream = await submitStream(server, id, { text: 'hello' });
  expect(stream.status).toBe(200);
  expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  expect(stream.headers['cache-control']).toBe('no-cache, no-transform');
  expect(stream.headers['x-accel-buffering']).toBe('no');
  expect(stream.text().startsWith('retry: 1000\n\n')).toBe(true);
  const turn = await scripted.turn(0);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('hi');
  await stream.next((event) => event.type === 'message.delta');
  turn.complete();
  await stream.ended;
  expect(stream.events.map((event) => event.type)).toEqual([
    'run.start',
    'message.start',
    'message.delta',
    'message.complete',
  ]);
  expect(stream.events.map((event) => event.json.seq)).toEqual([1, 2, 3, 4]);
  expect(stream.events.map((event) => event.id)).toEqual([1, 2, 3, 4].map((seq) => `${turn.turn.runId}:${seq}`));
  expect(stream.events.at(-1)?.json.payload).toMatchObject({ text: 'hi', status: 'complete', outcome: 'completed' });
});

it('[HT7] with wait=1 the answer is the last message, when the run has ended', async () => {
  const { server, scripted, id } = await scriptedServer();
  const waiting = submitWait(server, id, { text: 'hello' });
  const turn = await scripted.turn(0);
  turn.text('hi');
  turn.complete();
  const { status, json } = await waiting;
  expect(status).toBe(200);
  expect(json.admission).toMatchObject({ status: 'terminal', outcome: 'completed' });
  expect(json.message).toMatchObject({ role: 'assistant', content: 'hi', status: 'complete' });
  expect(json.message).toEqual((await server.messages(id)).at(-1));

  const failing = submitWait(server, id, { text: 'again' });
  (await scripted.turn(1)).fail({ code: 'network', message: 'The provider cannot be reached.', retryable: true });
  const failed = (await failing).json;
  expect(failed.admission).toMatchObject({ status: 'terminal', outcome: 'failed', error: { code: 'network' } });
  expect(failed.message).toMatchObject({ status: 'error', error: { code: 'network', retryable: true } });
});

it('[AD2] the same key again gives the same admission in every state, in each form', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const submit = (key: string, text: string) => server.prompt(id, text, { request_id: key });
  const a = await submit('a', 'first');
  const turn = await scripted.turn(0);
  const b = await submit('b', 'second');
  const same = (receipt: { admission: object; run_id: string; cursor: string }, of: typeof receipt, now: object) => {
    expect(receipt).toMatchObject({ run_id: of.run_id, cursor: of.cursor });
    expect(receipt.admission).toEqual({ ...of.admission, ...now });
  };

  // Running and queued.
  const started = { status: 'started', position: null, generation: 1 };
  same(await submit('a', 'first'), a, started);
  same(await submit('b', 'second'), b, { status: 'queued', position: 0 });
  const streamA = await submitStream(server, id, { text: 'first', request_id: 'a' });
  const streamB = await submitStream(server, id, { text: 'second', request_id: 'b' });
  const waitA = submitWait(server, id, { text: 'first', request_id: 'a' });
  const waitB = submitWait(server, id, { text: 'second', request_id: 'b' });
  turn.text('one');
  await streamA.next((event) => event.type === 'message.delta');
  const streamA2 = await submitStream(server, id, { text: 'first', request_id: 'a' });
  turn.complete();
  const textsA = await wholeStream(streamA);
  expect(textsA).toHaveLength(3);
  expect(await wholeStream(streamA2)).toEqual(textsA);
  expect((await waitA).json).toMatchObject({ admission: { run_id: a.run_id }, message: { content: 'one' } });
  expect(streamB.events).toEqual([]);
  const second = await scripted.turn(1);
  second.text('two');
  second.complete();
  const textsB = await wholeStream(streamB);
  expect(streamB.events.map((event) => event.json.run_id)).toEqual([b.run_id, b.run_id, b.run_id]);
  expect((await waitB).json).toMatchObject({ admission: { run_id: b.run_id }, message: { content: 'two' } });

  // Ended.
  const ended = { status: 'terminal', outcome: 'completed', position: null };
  same(await submit('a', 'first'), a, { ...ended, generation: 1 });
  same(await submit('b', 'second'), b, { ...ended, generation: 2 });
  expect(await wholeStream(await submitStream(server, id, { text: 'first', request_id: 'a' }))).toEqual(textsA);
  expect(await wholeStream(await submitStream(server, id, { text: 'second', request_id: 'b' }))).toEqual(textsB);
  expect((await submitWait(server, id, { text: 'first', request_id: 'a' })).json).toEqual((await waitA).json);
  expect((await submitWait(server, id, { text: 'second', request_id: 'b' })).json).toEqual((await waitB).json);

  expect(scripted.turns).toHaveLength(2);
  expect((await server.call('GET', `${address}/prompts`)).json.admissions).toHaveLength(2);
  expect(await server.messages(id)).toHaveLength(4);
});

it('[AD2] the key is one name space: the header and the field mean the same', async () => {
  const { server, id, address } = await scriptedServer();
  const first = await server.prompt(id, 'x', { request_id: 'key' });
  expect(first.admission.request_id).toBe('key');
  const byHeader = await server.call('POST', `${address}/prompts`, { text: 'x' }, { 'idempotency-key': 'key' });
  expect(byHeader.json.admission.admission_id).toBe(first.admission.admission_id);
  const byBoth = await server.call(
    'POST',
    `${address}/prompts`,
    { text: 'x', request_id: 'key' },
    { 'idempotency-key': 'key' },
  );
  expect(byBoth.json.admission.admission_id).toBe(first.admission.admission_id);
  // In another session it is another key.
  const other = await server.prompt(await server.session(), 'x', { request_id: 'key' });
  expect(other.admission.admission_id).not.toBe(first.admission.admission_id);
});

it('[AD2] the same key with another payload is a conflict in every state and form, and changes nothing', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  await server.prompt(id, 'runs', { request_id: 'a' });
  const turn = await scripted.turn(0);
  await server.prompt(id, 'waits', { request_id: 'b' });
  const conflicts = async () => {
    const before = (await server.call('GET', `${address}/prompts`)).json;
    for (const key of ['a', 'b']) {
      for (const body of [
        { text: 'another', request_id: key },
        { text: key === 'a' ? 'runs' : 'waits', mode: 'reject', request_id: key },
      ]) {
        const answers = [
          await server.call('POST', `${address}/prompts`, body),
          await submitWait(server, id, body),
          await server.call('POST', `${address}/prompts`, body, { accept: 'text/event-stream' }),
        ];
        for (const answer of answers) expect([answer.status, answer.json?.code]).toEqual([409, 'admission_conflict']);
      }
    }
    expect((await server.call('GET', `${address}/prompts`)).json).toEqual(before);
  };
  await conflicts();
  turn.complete();
  (await scripted.turn(1)).complete();
  await idle(server, id);
  await conflicts();
  expect(scripted.turns).toHaveLength(2);
});

it('[AD2] twenty identical prompts at once are one admission', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => server.prompt(id, 'once', { request_id: 'only' })),
  );
  expect(new Set(answers.map((answer) => answer.admission.admission_id)).size).toBe(1);
  expect(new Set(answers.map((answer) => answer.run_id)).size).toBe(1);
  (await scripted.turn(0)).complete();
  await idle(server, id);
  expect(scripted.turns).toHaveLength(1);
  expect((await server.call('GET', `${address}/prompts`)).json.admissions).toHaveLength(1);
});

it('[HT7] mode reject is for those who will not wait', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const now = (key: string) =>
    server.call('POST', `${address}/prompts`, { text: 'now', mode: 'reject', request_id: key });
  const first = await now('a');
  expect(first.status).toBe(202);
  const turn = await scripted.turn(0);
  const refused = await now('b');
  expect([refused.status, refused.json.code]).toEqual([409, 'session_busy']);
  // What was accepted stays accepted.
  expect((await now('a')).json.admission.admission_id).toBe(first.json.admission.admission_id);
  turn.complete();
  await idle(server, id);
  // A refusal leaves no trace: the same key is free.
  expect((await now('b')).status).toBe(202);
  expect((await server.call('GET', `${address}/prompts`)).json.admissions).toHaveLength(2);
});

it('[AD4][AD5] a full queue refuses, forgets nothing, and runs in order', async () => {
  const { server, scripted, id, address } = await scriptedServer('queue: {max: 2}');
  await server.prompt(id, 'p0', { request_id: 'k0' });
  await scripted.turn(0);
  await server.prompt(id, 'p1', { request_id: 'k1' });
  const p2 = await server.prompt(id, 'p2', { request_id: 'k2' });
  expect(p2.admission.position).toBe(1);
  const full = await server.call('POST', `${address}/prompts`, { text: 'p3', request_id: 'k3' });
  expect([full.status, full.json.code, full.headers.get('retry-after')]).toEqual([429, 'queue_full', '5']);
  expect((await submitWait(server, id, { text: 'p3', request_id: 'k3' })).status).toBe(429);
  // Those that are in it are still answered.
  expect((await server.prompt(id, 'p2', { request_id: 'k2' })).admission.status).toBe('queued');
  // Another session has a queue of its own.
  await server.prompt(await server.session(), 'elsewhere');
  await server.call('DELETE', `${address}/prompts/${p2.admission.admission_id}`);
  await server.prompt(id, 'p3', { request_id: 'k3' });
  const mine = () => scripted.turns.filter((played) => played.turn.sessionId === id);
  for (const n of [0, 1, 2]) {
    await until(`turn ${n} has begun`, () => mine().length > n);
    mine()[n]!.complete();
  }
  await idle(server, id);
  expect(mine().map((played) => played.turn.input)).toEqual(['p0', 'p1', 'p3']);
});

it('[HT7] the prompts of a session are listed in order, with their state and place', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  for (const text of ['a', 'b', 'c', 'd']) await server.prompt(id, text);
  (await scripted.turn(0)).complete();
  await scripted.turn(1);
  await until('the first has ended', async () => (await sessionOf(server, id)).queue_length === 2);
  const list = async (query = '') => (await server.call('GET', `${address}/prompts${query}`)).json.admissions;
  const facts = (admissions: { text: string; status: string; position: number | null }[]) =>
    admissions.map(({ text, status, position }) => [text, status, position]);
  const open = [
    ['b', 'started', null],
    ['c', 'queued', 0],
    ['d', 'queued', 1],
  ];
  expect(facts(await list())).toEqual([['a', 'terminal', null], ...open]);
  expect(facts(await list('?pending=1'))).toEqual(open);
  expect(facts(await list('?limit=2'))).toEqual(open.slice(1));
  const sequences = (await list()).map((admission: { sequence: number }) => admission.sequence);
  expect([...sequences].sort((x: number, y: number) => x - y)).toEqual(sequences);
  expect(await sessionOf(server, id)).toMatchObject({ queue_length: 2, status: 'running' });
});

it('[CL5] a waiting prompt is cancelled once, and whoever waits for it hears so', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  await server.prompt(id, 'runs');
  const turn = await scripted.turn(0);
  const stream = await submitStream(server, id, { text: 'waits', request_id: 'w' });
  const waiting = submitWait(server, id, { text: 'waits', request_id: 'w' });
  const { admission } = await server.prompt(id, 'waits', { request_id: 'w' });
  const last = await server.prompt(id, 'last');
  expect(last.admission.position).toBe(1);
  const readers = await server.stream(`${address}/events`);
  await readers.next((event) => event.type === 'session.snapshot');

  const cancel = () => server.call('DELETE', `${address}/prompts/${admission.admission_id}`);
  const cancelled = await cancel();
  expect(cancelled.status).toBe(200);
  expect(cancelled.json.admission).toEqual({
    ...admission,
    status: 'terminal',
    outcome: 'cancelled',
    position: null,
  });
  await stream.ended;
  expect(stream.events.map((event) => [event.id, event.type])).toEqual([[null, 'message.complete']]);
  expect(stream.events[0]?.json).toMatchObject({
    run_id: admission.run_id,
    admission_id: admission.admission_id,
    payload: { text: '', status: 'interrupted', outcome: 'cancelled', admission_id: admission.admission_id },
  });
  expect((await waiting).json).toEqual({ admission: cancelled.json.admission, message: null });

  // Again and again: the same, in every form; and the key still names it.
  expect((await cancel()).json).toEqual(cancelled.json);
  expect((await server.prompt(id, 'waits', { request_id: 'w' })).admission).toEqual(cancelled.json.admission);
  const again = await submitStream(server, id, { text: 'waits', request_id: 'w' });
  await again.ended;
  expect(again.events.map((event) => event.data)).toEqual(stream.events.map((event) => event.data));
  expect((await submitWait(server, id, { text: 'waits', request_id: 'w' })).json.message).toBeNull();

  const pending = (await server.call('GET', `${address}/prompts?pending=1`)).json.admissions;
  expect(pending.map((one: { text: string; position: number }) => [one.text, one.position])).toEqual([
    ['runs', null],
    ['last', 0],
  ]);
  turn.complete();
  (await scripted.turn(1)).complete();
  await idle(server, id);
  expect(scripted.turns.map((played) => played.turn.input)).toEqual(['runs', 'last']);
  expect((await server.messages(id)).map((row) => row.content)).not.toContain('waits');
  const completions = readers.events.filter(
    (event) => event.type === 'message.complete' && event.json.payload.admission_id === admission.admission_id,
  );
  expect(completions).toHaveLength(1);
});

it('[CL5] what has started is not cancelled, what has ended stays, what is elsewhere is not found', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const { admission } = await server.prompt(id, 'runs');
  const turn = await scripted.turn(0);
  const started = await server.call('DELETE', `${address}/prompts/${admission.admission_id}`);
  expect([started.status, started.json.code]).toEqual([409, 'stale_generation']);
  expect(turn.signal.aborted).toBe(false);
  const elsewhere = await server.call(
    'DELETE',
    `/api/sessions/${await server.session()}/prompts/${admission.admission_id}`,
  );
  expect([elsewhere.status, elsewhere.json.code]).toEqual([404, 'prompt_not_found']);
  turn.complete();
  await idle(server, id);
  const ended = await server.call('DELETE', `${address}/prompts/${admission.admission_id}`);
  expect([ended.status, ended.json.admission.outcome]).toEqual([200, 'completed']);
});

it('[CL6] an interrupt stops the running turn, keeps what it said once, and leaves the queue', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const interrupt = (body?: object) => server.call('POST', `${address}/interrupt`, body);
  expect((await interrupt()).json).toEqual({ status: 'idle', generation: 0 });
  const stream = await submitStream(server, id, { text: 'long' });
  await server.prompt(id, 'next');
  const turn = await scripted.turn(0);
  turn.text('half an ans');
  await stream.next((event) => event.type === 'message.delta');

  const stale = await interrupt({ generation: 7 });
  expect([stale.status, stale.json.code, stale.json.generation]).toEqual([409, 'stale_generation', 1]);
  expect(turn.signal.aborted).toBe(false);
  const stopped = await interrupt({ generation: 1 });
  expect([stopped.status, stopped.json]).toEqual([200, { status: 'interrupted', generation: 1 }]);
  await stream.ended;
  expect(stream.events.filter((event) => event.type === 'message.complete')).toHaveLength(1);
  expect(stream.events.at(-1)?.json.payload).toMatchObject({
    text: 'half an ans',
    status: 'interrupted',
    outcome: 'interrupted',
  });

  const next = await scripted.turn(1);
  expect(next.turn.input).toBe('next');
  // The stop was for the other turn: the same again stops nothing.
  expect((await interrupt({ generation: 1 })).status).toBe(409);
  expect(next.signal.aborted).toBe(false);
  next.complete();
  await idle(server, id);
  const rows = await server.messages(id);
  const kept = rows.filter((row) => row.content === 'half an ans');
  expect(kept).toMatchObject([{ role: 'assistant', status: 'interrupted' }]);
  expect((await interrupt()).json).toEqual({ status: 'idle', generation: 2 });
});

it('[CL6] clear_queue cancels what waits too', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const running = submitWait(server, id, { text: 'runs' });
  await scripted.turn(0);
  const waiting = submitWait(server, id, { text: 'waits' });
  await until('it waits', async () => (await sessionOf(server, id)).queue_length === 1);
  const answer = await server.call('POST', `${address}/interrupt`, { clear_queue: true });
  expect(answer.json.status).toBe('interrupted');
  expect((await running).json.admission.outcome).toBe('interrupted');
  expect((await waiting).json).toMatchObject({ admission: { outcome: 'cancelled' }, message: null });
  await idle(server, id);
  expect(scripted.turns).toHaveLength(1);
  // A prompt right behind a stop runs.
  await server.prompt(id, 'after');
  (await scripted.turn(1)).complete();
  await idle(server, id);
});

it('[CL6] a stop right behind a prompt stops that prompt', async () => {
  const { server, id, address } = await scriptedServer();
  for (let n = 1; n <= 10; n += 1) {
    const waiting = submitWait(server, id, { text: `p${n}`, request_id: `k${n}` });
    await server.prompt(id, `p${n}`, { request_id: `k${n}` });
    expect((await server.call('POST', `${address}/interrupt`, {})).json).toEqual({
      status: 'interrupted',
      generation: n,
    });
    expect((await waiting).json.admission.outcome).toBe('interrupted');
  }
});

it('[HT7] open questions of the agent are listed and answered once, by the first valid answer', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const events = await server.stream(`${address}/events`);
  const waiting = submitWait(server, id, { text: 'do it' });
  const turn = await scripted.turn(0);
  const answers: AgentAnswer[] = [];
  const ask = (question: Parameters<typeof turn.turn.ask>[0]) =>
    turn.turn.ask(question).then((answer) => void answers.push(answer));
  const reply = async (request: string, body: object) => {
    const answer = await server.call('POST', `${address}/requests/${request}`, body);
    return [answer.status, answer.json.status ?? answer.json.code];
  };
  const open = () =>
    until('a question is open', async () => (await server.call('GET', `${address}/requests`)).json.requests[0]);

  expect((await server.call('GET', `${address}/requests`)).json).toEqual({ requests: [] });
  void ask({
    kind: 'approval',
    tool_name: 'shell',
    command: 'rm x',
    description: 'Remove x',
    choices: ['once', 'deny'],
  });
  const approval = await open();
  expect(approval).toMatchObject({
    id: expect.any(String),
    run_id: turn.turn.runId,
    kind: 'approval',
    params: { tool_name: 'shell', command: 'rm x', description: 'Remove x', choices: ['once', 'deny'] },
  });
  expect((await sessionOf(server, id)).status).toBe('waiting');
  const told = await events.next((event) => event.type === 'request.open');
  expect(told.json.payload).toEqual(approval);

  expect(await reply(approval.id, { choice: 'always' })).toEqual([422, 'unacceptable']);
  expect(await reply(approval.id, { answers: {} })).toEqual([422, 'unacceptable']);
  expect(await reply(approval.id, { value: 'yes' })).toEqual([422, 'unacceptable']);
  expect(await reply('nothing', { choice: 'once' })).toEqual([200, 'expired']);
  const other = await server.session();
  const elsewhere = await server.call('POST', `/api/sessions/${other}/requests/${approval.id}`, { choice: 'once' });
  expect(elsewhere.json.status).toBe('expired');
  expect(answers).toEqual([]);
  const race = await Promise.all(['once', 'deny', 'once'].map((choice) => reply(approval.id, { choice })));
  expect(race.map(([, status]) => status).sort()).toEqual(['expired', 'expired', 'ok']);
  await until('the agent has the answer', () => answers.length === 1);
  expect(answers[0]).toMatchObject({ kind: 'choice' });
  const cancelled = await events.next((event) => event.type === 'request.cancel');
  expect(cancelled.json.payload).toEqual({ id: approval.id, method: 'approval', reason: 'resolved' });

  void ask({
    kind: 'clarify',
    questions: [
      { qid: 'a', question: 'Which?' },
      { qid: 'b', question: 'When?' },
    ],
  });
  const clarify = await open();
  expect(await reply(clarify.id, { answers: { c: 'x' } })).toEqual([422, 'unacceptable']);
  expect(await reply(clarify.id, { choice: 'once' })).toEqual([422, 'unacceptable']);
  expect(await reply(clarify.id, { answers: { a: 'this', b: null } })).toEqual([200, 'ok']);
  expect(await reply(clarify.id, { answers: { a: 'that', b: null } })).toEqual([200, 'expired']);
  await until('the agent has the answer', () => answers.length === 2);
  expect(answers[1]).toEqual({ kind: 'answers', answers: { a: 'this', b: null } });

  // A question that is open when the turn is stopped is withdrawn.
  void ask({ kind: 'clarify', questions: [{ qid: 'a', question: 'Still?' }] });
  const last = await open();
  await server.call('POST', `${address}/interrupt`, {});
  await until('the agent is told', () => answers.length === 3);
  expect(answers[2]).toEqual({ kind: 'withdrawn' });
  expect((await waiting).json.admission.outcome).toBe('interrupted');
  expect(await reply(last.id, { answers: { a: 'yes' } })).toEqual([200, 'expired']);
  expect((await server.call('GET', `${address}/requests`)).json).toEqual({ requests: [] });
  const cancels = events.events.filter((event) => event.type === 'request.cancel');
  expect(cancels.map((event) => event.json.payload.reason)).toEqual(['resolved', 'resolved', 'interrupted']);
});

it('[CL4] a prompt of unknown fate blocks the queue until a person ends it', async () => {
  const { runner } = createEchoRunner();
  const server = await startTestServer({ overrides: { runner } });
  const id = await server.session();
  const { admission } = await server.ask(id, 'lost');
  await idle(server, id);
  const resolve = () =>
    server.call('POST', `/api/sessions/${id}/prompts/${admission.admission_id}/resolve`, { outcome: 'interrupted' });
  // Nothing to resolve: what has ended stays as it ended.
  expect((await resolve()).json.admission.outcome).toBe('completed');
  const db = new Database(path.join(server.home, 'state.db'), { timeout: 5000 });
  db.prepare("UPDATE session_admissions SET status = 'unknown', outcome = NULL").run();
  db.close();
  expect((await sessionOf(server, id)).status).toBe('unknown');
  const next = await server.prompt(id, 'next');
  expect(next.admission.status).toBe('queued');
  const lost = await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, {
    text: 'lost',
    request_id: admission.request_id,
  });
  expect([lost.status, lost.json.code]).toEqual([409, 'unknown_execution']);
  expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(409);

  const resolved = await resolve();
  expect([resolved.status, resolved.json.admission.outcome]).toEqual([200, 'interrupted']);
  expect((await resolve()).json).toEqual(resolved.json);
  await idle(server, id);
  expect((await server.messages(id)).at(-1)?.content).toBe('echo: next');
  const missing = await server.call('POST', `/api/sessions/${id}/prompts/${'0'.repeat(32)}/resolve`, {
    outcome: 'interrupted',
  });
  expect(missing.json.code).toBe('prompt_not_found');
});
