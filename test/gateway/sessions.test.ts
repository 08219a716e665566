/** The gateway: live sessions, drafts, and what is stored of them. */
import { expect, it } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { readStateDb } from '../support/state-db.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const QUICK = 'live: {orphan_reap_grace_s: 0.1}';

it('[GW9] the first frame says that the gateway is ready, and of which start', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  expect(client.frames[0]).toMatchObject({
    jsonrpc: '2.0',
    method: 'event',
    params: { type: 'gateway.ready', session_id: '', payload: { heartbeat: true, change_events: true } },
  });
  const other = await connectGateway(server.url);
  const epochOf = (one: typeof client) => one.frames[0].params.payload.replay_epoch;
  expect(epochOf(client)).toMatch(/^[0-9a-f]{32}$/);
  expect(epochOf(other)).toBe(epochOf(client));
});

it('[GW2] a session made over the gateway is known to REST from its first prompt on', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const made = await client.call('session.create', { cols: 100, title: 'Plans', source: 'desktop' });
  expect(made).toMatchObject({
    session_id: expect.stringMatching(/^[0-9a-f]{8}$/),
    stored_session_id: expect.stringMatching(/^\d{8}_\d{6}_[0-9a-f]{6}$/),
    message_count: 0,
    messages: [],
  });
  const address = `/api/sessions/${made.stored_session_id}`;
  expect((await server.call('GET', address)).status).toBe(404);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);

  const sent = await client.call('prompt.submit', { session_id: made.session_id, text: 'hello' });
  expect(sent.status).toBe('streaming');
  await client.event(made.session_id, 'message.complete');
  const { session } = (await server.call('GET', address)).json;
  expect(session).toMatchObject({ title: 'Plans', source: 'desktop', message_count: 2 });
  const [prompt] = await server.messages(made.stored_session_id);
  expect(prompt).toMatchObject({ id: sent.user_row_id, role: 'user', content: 'hello' });
});

it('[GW2] a first prompt that is refused leaves no session behind, and the next one may be accepted', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  const refused = await client.request('prompt.submit', { session_id, text: '   ' });
  expect(refused.error).toMatchObject({ code: 4002, data: { code: 'empty_prompt' } });
  expect((await server.call('GET', `/api/sessions/${stored_session_id}`)).status).toBe(404);
  await client.call('prompt.submit', { session_id, text: 'hello' });
  await client.event(session_id, 'message.complete');
  expect((await server.messages(stored_session_id)).length).toBe(2);
});

it('[GW2][GW9] what cannot be is refused when a session is made, not when it is used', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const model = await client.request('session.create', { model: 'nobody/nothing' });
  expect(model.error).toMatchObject({ code: -32602, data: { code: 'unknown_model' } });
  const folder = await client.request('session.create', { cwd: '/nowhere/at/all' });
  expect(folder.error).toMatchObject({ code: 4017, data: { code: 'bad_workspace' } });
  expect((await client.call('session.active_list')).sessions).toEqual([]);
});

it('[GW2] the same key makes the same session', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const first = await client.call('session.create', { idempotency_key: 'one' });
  const again = await client.call('session.create', { idempotency_key: 'one' });
  const other = await client.call('session.create', { idempotency_key: 'two' });
  expect(again.session_id).toBe(first.session_id);
  expect(other.session_id).not.toBe(first.session_id);
});

it('[GW1] whoever resumes a live session gets the same runtime, before its first prompt and after', async () => {
  const server = await startTestServer();
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const made = await one.call('session.create');
  const drafted = await two.call('session.resume', { session_id: made.stored_session_id });
  expect(drafted).toMatchObject({ session_id: made.session_id, message_count: 0, running: false, resumed: true });
  await one.call('prompt.submit', { session_id: made.session_id, text: 'hello' });
  await two.event(made.session_id, 'message.complete');
  const resumed = await two.call('session.resume', { session_id: made.stored_session_id });
  expect(resumed.session_id).toBe(made.session_id);
  expect((await two.call('session.active_list')).sessions).toHaveLength(1);
});

it('[GW1] twenty at once who resume a stored session get one runtime', async () => {
  const server = await startTestServer();
  const id = await server.session();
  await server.ask(id, 'hello');
  const clients = await Promise.all(Array.from({ length: 20 }, () => connectGateway(server.url)));
  const resumed = await Promise.all(clients.map((client) => client.call('session.resume', { session_id: id })));
  expect(new Set(resumed.map((one) => one.session_id)).size).toBe(1);
});

it('[GW1] a session is resumed by its exact title as well; what is unknown is refused with what to do', async () => {
  const server = await startTestServer();
  const id = await server.session({ title: 'The garden' });
  const client = await connectGateway(server.url);
  expect((await client.call('session.resume', { session_id: 'The garden' })).session_key).toBe(id);
  const refused = await client.request('session.resume', { session_id: 'The gard' });
  expect(refused.error).toMatchObject({ code: 4007, data: { code: 'session_not_found' } });
  const runtime = await client.request('session.activate', { session_id: '00000000' });
  expect(runtime.error).toMatchObject({ code: 4001, data: { code: 'runtime_not_live' } });
});

it('[GW4] resume in the middle of a turn says what was shown of it, and what follows comes as events', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  await server.prompt(id, 'tell me');
  const turn = await scripted.turn(0);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('Once ');
  turn.text('upon ');
  const client = await connectGateway(server.url);
  const resumed = await until('the turn has shown its text', async () => {
    const found = await client.call('session.resume', { session_id: id });
    return found.inflight?.assistant === 'Once upon ' ? found : null;
  });
  expect(resumed).toMatchObject({
    running: true,
    status: 'streaming',
    inflight: { user: 'tell me', streaming: true },
    messages: [{ role: 'user', text: 'tell me' }],
  });
  turn.text('a time.');
  turn.complete();
  const end = await client.event(resumed.session_id, 'message.complete');
  expect(end.payload).toMatchObject({ text: 'Once upon a time.', status: 'complete' });
  const deltas = client.events(resumed.session_id, 'message.delta').filter((one) => one.seq! > resumed.latest_seq);
  expect(deltas.map((one) => one.payload.text).join('')).toBe('a time.');
});

it('[GW3] events are numbered from 1 over all turns, the same for all; nothing old is sent again by resume', async () => {
  const server = await startTestServer();
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const { session_id, stored_session_id } = await one.call('session.create');
  await two.call('session.resume', { session_id: stored_session_id });
  for (const text of ['hello', 'what is 2 + 2?']) {
    const before = one.frames.length;
    await one.call('prompt.submit', { session_id, text });
    await one.event(session_id, 'message.complete', before);
  }
  await one.call('session.resume', { session_id: stored_session_id });
  await until('both have the same', () => one.events(session_id).length === two.events(session_id).length);
  const seqs = one.events(session_id).map((event) => event.seq);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(two.events(session_id)).toEqual(one.events(session_id));
});

it('[GW3] what a client has missed is pulled, as it was sent; a place that never was is said to be', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.create');
  await client.call('prompt.submit', { session_id, text: 'hello' });
  await client.event(session_id, 'message.complete');
  const missed = await until('the turn is put away', async () => {
    const found = await client.call('session.events.since', { session_id, last_seen: 2 });
    return found.latest_seq === client.events(session_id).at(-1)!.seq ? found : null;
  });
  expect(missed.events).toEqual(client.events(session_id).filter((event) => event.seq! > 2));
  expect(missed).toMatchObject({ truncated: false, count: missed.events.length, open_requests: [] });
  expect(missed.epoch).toBe(client.frames[0].params.payload.replay_epoch);
  const ahead = await client.call('session.events.since', { session_id, last_seen: 10_000 });
  expect(ahead).toMatchObject({ events: [], truncated: true });
  const garbage = await client.request('session.events.since', { session_id, last_seen: 'soon' });
  expect(garbage.error.code).toBe(-32602);
  expect(await client.call('session.events.stats')).toMatchObject({ sessions: 1, max_per_session: 512 });
});

it('[GW5] a connection gets events of the sessions that it attached to and of no others', async () => {
  const server = await startTestServer();
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const mine = await one.call('session.create');
  const theirs = await two.call('session.create');
  const second = await one.call('session.create');
  for (const [client, made] of [
    [one, mine],
    [two, theirs],
    [one, second],
  ] as const) {
    await client.call('prompt.submit', { session_id: made.session_id, text: 'hello' });
    await client.event(made.session_id, 'message.complete');
  }
  expect(new Set(one.events().map((event) => event.session_id))).toEqual(
    new Set(['', mine.session_id, second.session_id]),
  );
  expect(new Set(two.events().map((event) => event.session_id))).toEqual(new Set(['', theirs.session_id]));
});

it('[GW6] a dropped connection stops nothing, and an idle session that everybody has left is given back', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ config: QUICK, overrides: { runner: scripted.runner } });
  const [owner, watcher] = [await connectGateway(server.url), await connectGateway(server.url)];
  const { session_id, stored_session_id } = await owner.call('session.create');
  await owner.call('prompt.submit', { session_id, text: 'go on without me' });
  const turn = await scripted.turn(0);
  await owner.drop();
  turn.say({ type: 'message.start', payload: {} });
  turn.text('still here');
  const row = async () =>
    (await watcher.call('session.active_list')).sessions.find(
      (one: { session_key: string }) => one.session_key === stored_session_id,
    );
  await until('the turn streams', async () => (await row())?.status === 'streaming');
  turn.complete();
  const told = await watcher.event('', 'session.reclaimed');
  expect(told.payload).toEqual({ session_id, stored_session_id, reason: 'ws_orphan_reap' });
  expect(await row()).toBeUndefined();
  expect((await server.messages(stored_session_id)).at(-1)).toMatchObject({ content: 'still here' });

  const taken = await watcher.call('session.resume', { session_id: stored_session_id });
  expect(taken.session_id).not.toBe(session_id);
  expect((await watcher.request('session.usage', { session_id })).error.code).toBe(4001);
});

it('[GW6] who comes back within the grace finds the same runtime', async () => {
  const server = await startTestServer({ config: 'live: {orphan_reap_grace_s: 30}' });
  const first = await connectGateway(server.url);
  const { session_id, stored_session_id } = await first.call('session.create');
  await first.drop();
  const back = await connectGateway(server.url);
  expect((await back.call('session.resume', { session_id: stored_session_id })).session_id).toBe(session_id);
});

it('[GW6] a session that was to end with its last client does', async () => {
  const server = await startTestServer({ config: 'live: {orphan_reap_grace_s: 30}' });
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const { session_id } = await one.call('session.create', { close_on_disconnect: true });
  await one.drop();
  const told = await two.event('', 'session.reclaimed');
  expect(told.payload).toMatchObject({ session_id, reason: 'closed' });
});

it('[GW6] the lease of an idle session stays while somebody holds it, and is given back with it', async () => {
  const server = await startTestServer({ config: QUICK });
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  await client.call('prompt.submit', { session_id, text: 'hello' });
  await client.event(session_id, 'message.complete');
  const leases = () => readStateDb(server.home, (db) => db.prepare('SELECT session_id FROM active_sessions').all());
  expect(leases()).toEqual([{ session_id: stored_session_id }]);
  await client.drop();
  await until('the lease is given back', () => leases().length === 0);
});

it('[GW7] a live session is not deleted, by nobody and not even when it is idle', async () => {
  const server = await startTestServer();
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const { session_id, stored_session_id } = await one.call('session.create');
  const draft = await two.request('session.delete', { session_id: stored_session_id });
  expect(draft.error).toMatchObject({ code: 4023, data: { code: 'session_live' } });
  await one.call('prompt.submit', { session_id, text: 'hello' });
  await one.event(session_id, 'message.complete');
  expect((await two.request('session.delete', { session_id: stored_session_id })).error.code).toBe(4023);
  const byRest = await server.call('DELETE', `/api/sessions/${stored_session_id}`);
  expect([byRest.status, byRest.json.code]).toEqual([409, 'session_live']);
  expect((await server.messages(stored_session_id)).length).toBe(2);

  expect(await one.call('session.close', { session_id })).toEqual({ closed: true });
  expect((await two.call('session.active_list')).sessions).toEqual([]);
  expect(await two.call('session.delete', { session_id: stored_session_id })).toEqual({ deleted: stored_session_id });
  const left = readStateDb(server.home, (db) =>
    ['sessions', 'messages'].map((table) => db.prepare(`SELECT COUNT(*) AS n FROM ${table}`).get()),
  );
  expect(left).toEqual([{ n: 0 }, { n: 0 }]);
  expect((await two.request('session.delete', { session_id: stored_session_id })).error.code).toBe(4007);
});

it('[GW7] with ?stop=1 a session that clients hold is taken from them and deleted; they are told', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const id = await server.session();
  const { session_id } = await client.call('session.resume', { session_id: id });
  expect((await server.call('DELETE', `/api/sessions/${id}?stop=1`)).status).toBe(204);
  expect((await client.event('', 'session.reclaimed')).payload).toMatchObject({ session_id });
  await until('the list has it', () =>
    client
      .events('', 'sessions.changed')
      .some(({ payload }) => payload.session_id === id && payload.reason === 'deleted'),
  );
});

it('[GW5] fields, undo and branches of a live session go to its readers as they do over REST', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  expect(await client.call('session.title', { session_id, title: 'Before' })).toMatchObject({
    title: 'Before',
    pending: true,
  });
  for (const text of ['hello', 'what is 2 + 2?']) {
    const before = client.frames.length;
    await client.call('prompt.submit', { session_id, text });
    await client.event(session_id, 'message.complete', before);
  }
  expect(await client.call('session.title', { session_id })).toEqual({
    title: 'Before',
    session_key: stored_session_id,
  });
  expect((await client.request('session.title', { session_id, title: ' ' })).error.code).toBe(4021);
  const history = await client.call('session.history', { session_id });
  expect(history.count).toBe(6);

  const branch = await until('the turn is put away', async () => {
    const frame = await client.request('session.branch', { session_id, name: 'Aside' });
    return frame.result ?? null;
  });
  expect(branch).toMatchObject({ parent: stored_session_id, title: 'Aside', message_count: 6 });
  expect(branch.session_id).not.toBe(session_id);

  expect((await client.call('session.undo', { session_id })).removed).toBe(4);
  expect((await client.event(session_id, 'session.reset')).payload).toEqual({ reason: 'edited' });
  expect((await client.call('session.history', { session_id })).count).toBe(2);
  expect((await client.call('session.history', { session_id: branch.session_id })).count).toBe(6);
  expect(await client.call('session.archive', { session_id })).toEqual({
    archived: true,
    session_key: stored_session_id,
  });
  expect((await client.call('session.status', { session_id })).output).toContain('Before');
  expect((await client.call('session.usage', { session_id })).total).toBe(0);
  expect((await client.call('session.list')).sessions.map((one: { id: string }) => one.id)).toEqual([
    branch.stored_session_id,
  ]);
});

it('[GW2] a conversation that a client brings along is stored at once, and the agent goes on from it', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const messages = [
    { role: 'user', content: 'my name is Ada' },
    { role: 'assistant', text: 'Hello Ada.' },
  ];
  const made = await client.call('session.create', { messages });
  expect(made.message_count).toBe(2);
  expect((await server.messages(made.stored_session_id)).map((row) => row.content)).toEqual([
    'my name is Ada',
    'Hello Ada.',
  ]);
});
