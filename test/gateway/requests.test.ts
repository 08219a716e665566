/** The gateway: questions of an agent, asked of every client that can answer. */
import { expect, it } from 'vitest';
import type { Question } from '../../server/runners/runner.ts';
import { connectGateway, type GatewayClient } from '../support/gateway.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const APPROVAL: Question = {
  kind: 'approval',
  tool_name: 'terminal',
  command: 'rm -r build',
  description: 'Removes the build folder.',
  choices: ['once', 'session', 'deny'],
};
const CLARIFY: Question = {
  kind: 'clarify',
  questions: [
    { qid: 'q0', question: 'Which colour?', choices: ['red', 'blue'] },
    { qid: 'q1', question: 'How many?' },
  ],
};

/** A turn that runs, with two clients that can answer and one that cannot. */
async function asking(config?: string) {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    overrides: { runner: scripted.runner },
    ...(config === undefined ? {} : { config }),
  });
  const one = await connectGateway(server.url, { name: 'one', capable: true });
  const two = await connectGateway(server.url, { name: 'two', capable: true });
  const mute = await connectGateway(server.url, { name: 'mute' });
  const { session_id, stored_session_id } = await one.call('session.create');
  for (const client of [two, mute]) await client.call('session.resume', { session_id: stored_session_id });
  await one.call('prompt.submit', { session_id, text: 'do it' });
  const { turn, complete } = await scripted.turn(0);
  return { server, scripted, one, two, mute, session_id, stored_session_id, turn, complete };
}

const questionsTo = (client: GatewayClient) =>
  client.frames.filter((frame) => String(frame.id).startsWith('srq-') && frame.method);
const questionTo = (client: GatewayClient) =>
  until(`${client.name} is asked`, () => questionsTo(client).at(-1) ?? null);

it('[GW8] a question goes to every attached client that can answer; the first answer wins, the others are told once', async () => {
  const { one, two, mute, session_id, turn } = await asking();
  const answer = turn.ask(APPROVAL);
  const asked = await questionTo(one);
  expect(asked).toMatchObject({
    jsonrpc: '2.0',
    id: expect.stringMatching(/^srq-[0-9a-f]{12}$/),
    method: 'approval',
    params: { session_id, request_id: asked.id, command: 'rm -r build', choices: ['once', 'session', 'deny'] },
  });
  expect(await questionTo(two)).toEqual(asked);
  two.send(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { choice: 'once' } }));
  expect(await answer).toEqual({ kind: 'choice', choice: 'once' });
  for (const client of [one, two, mute]) {
    const told = await client.event(session_id, 'request.cancel');
    expect(told.payload).toEqual({ id: asked.id, method: 'approval', reason: 'resolved' });
    expect(client.events(session_id, 'request.cancel')).toHaveLength(1);
  }
  // A second answer comes too late and changes nothing.
  one.send(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { choice: 'deny' } }));
  expect(await one.call('request.answer', { id: asked.id, result: { choice: 'deny' } })).toEqual({ status: 'expired' });
  expect(questionsTo(mute)).toEqual([]);
  expect(mute.events(session_id, 'request.open')).toHaveLength(1);
});

it('[GW8] an answer that does not fit, or an error, leaves the question open for the others', async () => {
  const { one, two, turn, session_id } = await asking();
  const answer = turn.ask(APPROVAL);
  const { id } = await questionTo(one);
  one.send(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }));
  one.send(JSON.stringify({ jsonrpc: '2.0', id, result: { choice: 'always' } }));
  one.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'yes' }));
  expect((await one.request('approval.respond', { session_id, choice: 'always', request_id: id })).error.code).toBe(
    5004,
  );
  expect((await two.call('approval.pending', { session_id })).approvals).toMatchObject([{ request_id: id }]);
  expect(await two.call('approval.respond', { session_id, choice: 'deny', request_id: id })).toEqual({ resolved: 1 });
  expect(await answer).toEqual({ kind: 'choice', choice: 'deny' });
});

it('[GW8] an open question stands in resume, in what was missed, over REST and in the snapshot, under one id', async () => {
  const { server, one, turn, session_id, stored_session_id } = await asking();
  const answer = turn.ask(APPROVAL);
  const { id } = await questionTo(one);
  const later = await connectGateway(server.url);
  const resumed = await later.call('session.resume', { session_id: stored_session_id });
  expect(resumed).toMatchObject({ status: 'waiting', open_requests: [{ id, method: 'approval' }] });
  const missed = await later.call('session.events.since', { session_id, last_seen: 0 });
  expect(missed.open_requests).toEqual(resumed.open_requests);
  const rest = await server.call('GET', `/api/sessions/${stored_session_id}/requests`);
  expect(rest.json.requests).toMatchObject([{ id, kind: 'approval' }]);
  const stream = await server.stream(`/api/sessions/${stored_session_id}/events`);
  const snapshot = await stream.next((event) => event.type === 'session.snapshot');
  expect(snapshot.json.payload.open_requests).toMatchObject([{ id }]);
  // Answered over REST: the gateway's clients hear of it.
  await server.call('POST', `/api/sessions/${stored_session_id}/requests/${id}`, { choice: 'session' });
  expect(await answer).toEqual({ kind: 'choice', choice: 'session' });
  await one.event(session_id, 'request.cancel');
});

it('[GW8] a question stays open while nobody is attached, and whoever comes back can answer it', async () => {
  const { server, one, two, mute, turn, stored_session_id, session_id } = await asking(
    'live: {orphan_reap_grace_s: 0.05}',
  );
  const answer = turn.ask(APPROVAL);
  await questionTo(one);
  for (const client of [one, two, mute]) await client.drop();
  const back = await connectGateway(server.url);
  const resumed = await back.call('session.resume', { session_id: stored_session_id });
  expect(resumed).toMatchObject({ session_id, status: 'waiting', open_requests: [{ method: 'approval' }] });
  const [{ id }] = resumed.open_requests;
  expect(await back.call('request.answer', { id, result: { choice: 'once' } })).toEqual({ status: 'ok' });
  expect(await answer).toEqual({ kind: 'choice', choice: 'once' });
});

it('[GW8] an interrupt withdraws what was asked, once', async () => {
  const { one, two, turn, session_id } = await asking();
  const answer = turn.ask(APPROVAL);
  await questionTo(two);
  await one.call('session.interrupt', { session_id });
  expect(await answer).toEqual({ kind: 'withdrawn' });
  for (const client of [one, two]) {
    expect((await client.event(session_id, 'request.cancel')).payload.reason).toBe('interrupted');
    await client.event(session_id, 'message.complete');
    expect(client.events(session_id, 'request.cancel')).toHaveLength(1);
  }
});

it('[GW8] a question that nobody answers in its time is told to have timed out', async () => {
  const { one, turn, session_id } = await asking('approvals: {timeout: 0.2}');
  expect(await turn.ask(APPROVAL)).toEqual({ kind: 'timeout' });
  expect((await one.event(session_id, 'request.cancel')).payload.reason).toBe('timeout');
});

it('[GW8] questions of a clarification are locked one by one; the last lock answers', async () => {
  const { server, one, two, turn, session_id, stored_session_id } = await asking();
  const answer = turn.ask(CLARIFY);
  const { id } = await questionTo(one);
  const lock = (client: GatewayClient, question_id: string, said: string | null) =>
    client.request('clarify.lock', { request_id: id, question_id, answer: said });
  expect((await lock(one, 'q9', 'red')).error.code).toBe(4002);
  expect((await lock(one, 'q0', 'red')).result).toEqual({ status: 'ok', remaining: 1 });
  const later = await connectGateway(server.url);
  const resumed = await later.call('session.resume', { session_id: stored_session_id });
  expect(resumed.open_requests[0].params.answers).toEqual({ q0: 'red' });
  expect((await lock(two, 'q1', null)).result).toEqual({ status: 'ok', remaining: 0 });
  expect(await answer).toEqual({ kind: 'answers', answers: { q0: 'red', q1: null } });
  expect((await lock(one, 'q1', '3')).result).toEqual({ status: 'expired' });
  await one.event(session_id, 'request.cancel');
});

it('[GW8] two questions at once are two, and all of them can be answered together', async () => {
  const { one, turn, session_id } = await asking();
  const answers = [turn.ask(APPROVAL), turn.ask({ ...APPROVAL, command: 'make clean' })];
  await until('both are asked', () => questionsTo(one).length === 2);
  const [first, second] = questionsTo(one);
  expect(first.id).not.toBe(second.id);
  const isOpen = async () => (await one.call('approval.pending', { session_id })).approvals[0];
  const { created_at, expires_at } = await isOpen();
  expect(expires_at - created_at).toBeCloseTo(300);
  await until('time has passed', () => Date.now() / 1000 > created_at);
  expect(await one.call('approval.received', { session_id, request_id: first.id })).toEqual({ acknowledged: true });
  expect((await isOpen()).expires_at).toBeGreaterThan(expires_at);
  expect(await one.call('approval.respond', { session_id, choice: 'once', all: true })).toEqual({ resolved: 2 });
  expect(await Promise.all(answers)).toEqual([
    { kind: 'choice', choice: 'once' },
    { kind: 'choice', choice: 'once' },
  ]);
  expect(await one.call('approval.received', { session_id, request_id: first.id })).toEqual({ acknowledged: false });
});

it('[GW8] an answer to an approval may be meant for all that are open', async () => {
  const { one, two, turn } = await asking();
  const answers = ['a', 'b', 'c'].map((command) => turn.ask({ ...APPROVAL, command }));
  await until('all are asked', () => questionsTo(one).length === 3);
  const [first, second, third] = questionsTo(one);
  one.send(JSON.stringify({ jsonrpc: '2.0', id: first.id, result: { choice: 'once' } }));
  expect(await answers[0]).toEqual({ kind: 'choice', choice: 'once' });
  const result = { choice: 'deny', all: true };
  expect(await two.call('request.answer', { id: third.id, result })).toEqual({ status: 'ok' });
  expect(await answers[1]).toEqual({ kind: 'choice', choice: 'deny' });
  expect(await two.call('request.answer', { id: second.id, result })).toEqual({ status: 'expired' });
});

it('[GW8] what is locked of a clarification stays when the rest is answered at once; an empty answer wants nothing', async () => {
  const { one, turn } = await asking();
  const [whole, none] = [turn.ask(CLARIFY), turn.ask(CLARIFY)];
  await until('both are asked', () => questionsTo(one).length === 2);
  const [first, second] = questionsTo(one);
  for (const { id } of [first, second]) {
    await one.call('clarify.lock', { request_id: id, question_id: 'q0', answer: 'red' });
  }
  for (const result of [[], { choice: 7 }, { answers: { q9: 'x' } }]) {
    one.send(JSON.stringify({ jsonrpc: '2.0', id: first.id, result })); // Fits no question: it stays open.
  }
  one.send(JSON.stringify({ jsonrpc: '2.0', id: first.id, result: { answers: { q1: '3' } } }));
  one.send(JSON.stringify({ jsonrpc: '2.0', id: second.id, result: {} }));
  expect(await whole).toEqual({ kind: 'answers', answers: { q0: 'red', q1: '3' } });
  expect(await none).toEqual({ kind: 'answers', answers: {} });
});

it('[GW8] of four answers that come by four ways at once one wins, and the others are told so', async () => {
  const { server, one, two, turn, session_id, stored_session_id } = await asking();
  for (let round = 0; round < 10; round += 1) {
    const answer = turn.ask(APPROVAL);
    const { id } = await until('it is asked', () => questionsTo(one)[round] ?? null);
    const rest = `/api/sessions/${stored_session_id}/requests/${id}`;
    two.send(JSON.stringify({ jsonrpc: '2.0', id, result: { choice: 'session' } }));
    const said = await Promise.all([
      one
        .call('approval.respond', { session_id, choice: 'once', request_id: id })
        .then(({ resolved }) => resolved === 1),
      server.call('POST', rest, { choice: 'deny' }).then(({ json }) => json.status === 'ok'),
      two.call('request.answer', { id, result: { choice: 'deny' } }).then(({ status }) => status === 'ok'),
    ]);
    const won = await answer;
    const winners = said.filter(Boolean).length;
    expect(winners + (won.kind === 'choice' && won.choice === 'session' ? 1 : 0)).toBe(1);
    await until('both are told once', () =>
      [one, two].every((client) => client.events(session_id, 'request.cancel').length === round + 1),
    );
  }
});
