/** The gateway: several connections that want different things of one session at the same moment. */
import { expect, it } from 'vitest';
import { connectGateway, type GatewayClient } from '../support/gateway.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { readStateDb } from '../support/state-db.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const echo = () => ({ overrides: { runner: createEchoRunner().runner } });

it('[GW2] ten first prompts of a draft from different clients at once are ten prompts of one session', async () => {
  const server = await startTestServer(echo());
  const clients = await Promise.all(Array.from({ length: 10 }, () => connectGateway(server.url)));
  const { session_id, stored_session_id } = await clients[0]!.call('session.create', { title: 'Race' });
  const sent = await Promise.all(
    clients.map((client, index) => client.call('prompt.submit', { session_id, text: `prompt ${index}` })),
  );
  expect(new Set(sent.map((one) => one.run_id)).size).toBe(10);
  await until('all are answered', async () => (await server.messages(stored_session_id)).length === 20);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
});

it.each([0, 1, 2, 3])(
  '[GW2] a draft that is named while its first prompt is stored keeps its name (%i)',
  async (late) => {
    const server = await startTestServer(echo());
    const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
    const { session_id, stored_session_id } = await one.call('session.create', { title: 'Before' });
    const naming = () => two.call('session.title', { session_id, title: 'After' });
    const moving = () => two.call('session.cwd.set', { session_id, cwd: server.home });
    const sending = () => one.call('prompt.submit', { session_id, text: 'hello' });
    const works = late % 2 === 0 ? [sending, naming, moving] : [moving, naming, sending];
    await Promise.all(works.map((work) => work()));
    await until('it is answered', async () => (await server.messages(stored_session_id)).length === 2);
    const { session } = (await server.call('GET', `/api/sessions/${stored_session_id}`)).json;
    expect(session).toMatchObject({ title: 'After', workspace: server.home });
    // And the gateway knows that it is stored.
    expect((await two.call('session.history', { session_id })).count).toBe(2);
    expect((await two.call('session.title', { session_id })).pending).toBeUndefined();
  },
);

it('[GW2] the same key makes one session, also of a conversation and from two clients at once', async () => {
  const server = await startTestServer(echo());
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const fields = { idempotency_key: 'k', messages: [{ role: 'user', content: 'my name is Ada' }] };
  const made = await Promise.all([one, two].map((client) => client.call('session.create', fields)));
  expect(made[0].session_id).toBe(made[1].session_id);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
  const again = await one.call('session.create', fields);
  expect(again).toMatchObject({
    session_id: made[0].session_id,
    message_count: 1,
    messages: [{ text: 'my name is Ada' }],
  });
  await one.call('session.close', { session_id: again.session_id });
  expect((await one.call('session.create', fields)).session_id).not.toBe(again.session_id);
});

it('[GW1][GW7] create, resume, submit, close and delete at once leave one state that everybody agrees on', async () => {
  const server = await startTestServer({ ...echo(), config: 'live: {orphan_reap_grace_s: 0.05}' });
  const clients = await Promise.all(Array.from({ length: 4 }, () => connectGateway(server.url)));
  const [a, b, c, d] = clients as [GatewayClient, GatewayClient, GatewayClient, GatewayClient];
  const odd: unknown[] = [];
  for (let round = 0; round < 40; round += 1) {
    const { session_id, stored_session_id } = await a.call('session.create');
    if (round % 2) await a.call('prompt.submit', { session_id, text: `first ${round}` });
    const answers = await Promise.all([
      a.request('prompt.submit', { session_id, text: `again ${round}` }),
      b.request('session.resume', { session_id: stored_session_id }),
      c.request('session.close', { session_id }),
      d.request('session.delete', { session_id: stored_session_id }),
      b.request('session.resume', { session_id: stored_session_id }),
      c.request(round % 3 ? 'session.title' : 'session.undo', { session_id, ...(round % 3 && { title: 'x' }) }),
    ]);
    for (const { error } of answers)
      if (error && ![4001, 4004, 4007, 4009, 4018, 4023, 4040].includes(error.code)) odd.push(error);
    const live = (await a.call('session.active_list')).sessions.filter(
      (one: { session_key: string }) => one.session_key === stored_session_id,
    );
    expect(live.length).toBeLessThanOrEqual(1);
    if (answers[0].result) {
      const rest = await server.call('GET', `/api/sessions/${stored_session_id}`);
      if (rest.status !== 200 && answers[3].error) odd.push(['accepted and gone', rest.status, answers]);
    }
  }
  expect(odd).toEqual([]);
  for (const client of clients) await client.close();
  await until('nothing is held', async () => (await server.call('GET', '/health')).json.live_sessions === 0);
  await until('no lease is left', () =>
    readStateDb(server.home, (db) => db.prepare('SELECT 1 FROM active_sessions').all().length === 0),
  );
  expect(server.logs.filter(({ level }) => level >= 40)).toEqual([]);
});

it('[GW6] a session is closed while its turn runs: the turn goes on, and who resumes sees it go on', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  const { session_id, stored_session_id } = await one.call('session.create');
  await one.call('prompt.submit', { session_id, text: 'hello' });
  const turn = await scripted.turn(0);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('a');
  const closing = two.call('session.close', { session_id });
  await one.event('', 'session.reclaimed');
  const resumed = await one.call('session.resume', { session_id: stored_session_id });
  expect(resumed.session_id).not.toBe(session_id);
  expect(resumed).toMatchObject({ running: true, resumed: false });
  turn.text('b');
  turn.complete();
  await closing;
  expect((await one.event(resumed.session_id, 'message.complete')).payload.text).toBe('ab');
});

it('[GW7] deleted with ?stop=1 while clients resume it, it is gone for all of them in the end', async () => {
  const server = await startTestServer({ ...echo(), config: 'live: {orphan_reap_grace_s: 0.05}' });
  const clients = await Promise.all(Array.from({ length: 6 }, () => connectGateway(server.url)));
  for (let round = 0; round < 10; round += 1) {
    const id = await server.session();
    const resuming = clients.map((client) => client.request('session.resume', { session_id: id }));
    const deleting = server.call('DELETE', `/api/sessions/${id}?stop=1`);
    const frames = await Promise.all(resuming);
    const { status } = await deleting;
    expect([204, 409]).toContain(status);
    if (status === 409) continue;
    for (const { error } of frames) if (error) expect([4001, 4007]).toContain(error.code);
    await until('nobody holds it', async () =>
      (await clients[0]!.call('session.active_list')).sessions.every(
        (one: { session_key: string }) => one.session_key !== id,
      ),
    );
    for (const client of clients) {
      expect((await client.request('session.resume', { session_id: id })).error.code).toBe(4007);
    }
  }
  expect(server.logs.filter(({ level }) => level >= 40)).toEqual([]);
});

it('[GW1] a session is found by its exact title however many have its words, and a draft by the title it will have', async () => {
  const server = await startTestServer(echo());
  const id = await server.session({ title: 'plan' });
  await Promise.all(Array.from({ length: 230 }, (_, index) => server.session({ title: `plan ${index}` })));
  const client = await connectGateway(server.url);
  expect((await client.call('session.resume', { session_id: 'plan' })).session_key).toBe(id);
  expect((await client.call('session.list', { title: 'plan' })).sessions).toMatchObject([{ id, title: 'plan' }]);
  const draft = await client.call('session.create', { title: 'not yet' });
  const other = await connectGateway(server.url);
  expect((await other.call('session.resume', { session_id: 'not yet' })).session_id).toBe(draft.session_id);
});

it('[GW6] who comes back in the last moment of the grace finds the session or a new one, never nothing', async () => {
  const server = await startTestServer({ ...echo(), config: 'live: {orphan_reap_grace_s: 0.03}' });
  const id = await server.session();
  const watcher = await connectGateway(server.url);
  for (let round = 0; round < 20; round += 1) {
    const client = await connectGateway(server.url);
    const back = await connectGateway(server.url);
    await client.call('session.resume', { session_id: id });
    await client.drop();
    await new Promise((resolve) => setTimeout(resolve, 20 + round));
    const resumed = await back.call('session.resume', { session_id: id });
    expect((await back.call('session.activate', { session_id: resumed.session_id })).session_id).toBe(
      resumed.session_id,
    );
    expect((await watcher.call('session.active_list')).sessions).toHaveLength(1);
    await back.close();
  }
});
