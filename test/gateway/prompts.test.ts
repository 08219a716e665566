/** The gateway: prompts, the queue behind a running turn, and stopping. */
import { expect, it } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

async function played(config?: string) {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    overrides: { runner: scripted.runner },
    ...(config === undefined ? {} : { config }),
  });
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  const submit = (text: string, fields: object = {}) =>
    client.request('prompt.submit', { session_id, text, ...fields });
  return { scripted, server, client, session_id, stored_session_id, submit };
}

it('[CL1] a prompt to an idle session is answered when it is claimed; one behind it says that it waits', async () => {
  const { scripted, submit, client, session_id } = await played();
  expect((await submit('first')).result).toMatchObject({ status: 'streaming', admission: { status: 'started' } });
  expect((await submit('second')).result).toMatchObject({ status: 'queued', admission: { position: 0 } });
  expect((await submit('third')).result).toMatchObject({ status: 'queued', admission: { position: 1 } });
  for (const index of [0, 1, 2]) (await scripted.turn(index)).complete();
  await until('all have ended', () => client.events(session_id, 'message.complete').length === 3);
  expect(scripted.turns.map(({ turn }) => turn.input)).toEqual(['first', 'second', 'third']);
});

it('[AD5] prompts with the same text are all kept: nothing is merged and nothing dropped as equal', async () => {
  const { scripted, submit, server, stored_session_id } = await played();
  for (const text of ['go', 'go', 'go']) await submit(text);
  for (const index of [0, 1, 2]) (await scripted.turn(index)).complete();
  await until('all are stored', async () => (await server.messages(stored_session_id)).length === 3);
});

it('[AD2] the same key is the same prompt, and another text under it is a conflict', async () => {
  const { scripted, submit, session_id, client } = await played();
  const first = (await submit('hello', { request_id: 'k' })).result;
  const again = (await submit('hello', { request_id: 'k' })).result;
  expect(again.admission.admission_id).toBe(first.admission.admission_id);
  const other = await submit('something else', { request_id: 'k' });
  expect(other.error).toMatchObject({ code: 4092, data: { code: 'admission_conflict' } });
  (await scripted.turn(0)).complete();
  await client.event(session_id, 'message.complete');
  expect(scripted.turns).toHaveLength(1);
});

it('[AD5] a full queue refuses and says so', async () => {
  const { submit } = await played('queue: {max: 1}');
  await submit('first');
  await submit('second');
  expect((await submit('third')).error).toMatchObject({ code: 4095, data: { code: 'queue_full', retryable: true } });
});

it('[CL2] a queue that is held up says why instead of claiming to have begun', async () => {
  const server = await startTestServer({ overrides: { check: async () => ({ reason: 'no credit' }) } });
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  const sent = await client.call('prompt.submit', { session_id, text: 'hello' });
  expect(sent.status).toBe('queued');
  const { session } = (await server.call('GET', `/api/sessions/${stored_session_id}`)).json;
  expect(session).toMatchObject({ status: 'queued', paused: { reason: 'no credit' } });
});

it('[CL6] interrupt stops the turn, keeps what was said once, and empties the queue', async () => {
  const { scripted, submit, client, session_id, server, stored_session_id } = await played();
  await submit('first');
  await submit('never to run');
  const turn = await scripted.turn(0);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('half of it');
  await client.event(session_id, 'message.delta');
  expect(await client.call('session.interrupt', { session_id })).toMatchObject({
    status: 'interrupted',
    was: 'running',
  });
  await until('both have ended', () => client.events(session_id, 'message.complete').length === 2);
  const outcomes = client.events(session_id, 'message.complete').map(({ payload }) => payload.outcome);
  expect(outcomes.sort()).toEqual(['cancelled', 'interrupted']);
  const rows = await until('the turn is put away', async () => {
    const found = await server.messages(stored_session_id);
    return found.length === 2 ? found : null;
  });
  expect(rows[1]).toMatchObject({ role: 'assistant', content: 'half of it', status: 'interrupted' });
  expect(await client.call('session.interrupt', { session_id })).toMatchObject({ status: 'interrupted', was: 'idle' });
  const wrong = await client.request('session.interrupt', { session_id, generation: 99 });
  expect(wrong.error).toMatchObject({ code: 4093, data: { code: 'stale_generation' } });
});

it('[LE7] a refusal of the lease has its reason for a machine and a sentence for a person', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    config: 'max_concurrent_sessions: 1',
    overrides: { runner: scripted.runner },
  });
  const client = await connectGateway(server.url);
  const one = await client.call('session.create');
  const two = await client.call('session.create');
  await client.call('prompt.submit', { session_id: one.session_id, text: 'hello' });
  const { error } = await client.request('prompt.submit', { session_id: two.session_id, text: 'me too' });
  expect(error).toMatchObject({ code: 4090, data: { reason: 'MAX_CONCURRENT_SESSIONS', retryable: true } });
  expect(error.message).toMatch(/max_concurrent_sessions/);
  // Nothing of the refused one was stored.
  expect((await server.call('GET', `/api/sessions/${two.stored_session_id}`)).status).toBe(404);
});

it.each(['session.steer', 'session.redirect'])('[GW9] %s says what cannot be', async (method) => {
  const { client, session_id } = await played();
  expect((await client.request(method, { session_id, text: ' ' })).error.code).toBe(4002);
  expect((await client.request(method, { session_id: 'gone', text: 'left' })).error.code).toBe(4001);
});

it('[HT9] a server that drains takes no prompt over the gateway either', async () => {
  const { scripted, server, client, submit } = await played();
  await submit('first');
  const turn = await scripted.turn(0);
  const closing = server.close();
  const refused = await until('it drains', async () => {
    const frame = await client.request('prompt.submit', {
      session_id: client.frames.find((one) => one.result?.session_id)!.result.session_id,
      text: 'too late',
    });
    return frame.error ?? null;
  });
  expect(refused).toMatchObject({ code: 5035, data: { code: 'draining' } });
  turn.complete();
  await closing;
});

it('[ED3] an earlier prompt is sent again with another text: what came of it is taken back in the same step', async () => {
  const { scripted, submit, client, server, session_id, stored_session_id } = await played();
  const answers = ['one', 'two', 'three'];
  for (const [index, text] of ['first', 'second'].entries()) {
    const before = client.frames.length;
    await submit(text);
    const turn = await scripted.turn(index);
    turn.say({ type: 'message.start', payload: {} });
    turn.text(answers[index]!);
    turn.complete();
    await client.event(session_id, 'message.complete', before);
  }
  const [first, , second] = await until('both are stored', async () => {
    const rows = await server.messages(stored_session_id);
    return rows.length === 4 ? rows : null;
  });
  const truncate_before_message_id = second.id;
  const error = async (fields: object) => (await submit('other', fields)).error?.code;
  expect(await error({ truncate_before_message_id })).toBe(4028);
  expect(await error({ truncate_before_message_id: 'gone', confirm_truncate: true })).toBe(4018);
  expect(await error({ truncate_before_user_ordinal: 7, confirm_truncate: true })).toBe(4018);
  expect(await error({ truncate_before_message_id: first.id, confirm_truncate: true })).toBe(4029);
  expect(await error({ truncate_before_message_id, truncate_before_user_ordinal: 1, confirm_truncate: true })).toBe(
    4004,
  );
  expect(await server.messages(stored_session_id)).toHaveLength(4);

  const fields = { truncate_before_message_id, confirm_truncate: true, request_id: 'again' };
  const sent = await until('the turn is put away', async () => {
    const frame = await submit('second, better', fields);
    return frame.error?.code === 4009 ? null : frame;
  });
  expect(sent.result.status).toBe('streaming');
  const turn = await scripted.turn(2);
  expect(turn.turn.history.map((row) => row.content)).toEqual(['first', 'one']);
  // Sent twice it is one.
  expect((await submit('second, better', fields)).result.run_id).toBe(sent.result.run_id);
  turn.complete();
  const rows = await until('it is stored', async () => {
    const found = await server.messages(stored_session_id);
    return found.length === 3 ? found : null;
  });
  expect(rows.map((row) => row.content)).toEqual(['first', 'one', 'second, better']);
});
