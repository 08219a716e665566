/** What is chosen for the whole server: read, changed, obeyed by every server on the home. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** A provider that nobody asks for its list here: its models are named. */
const CONFIG = `
model: {provider: custom, base_url: 'http://127.0.0.1:9/v1', default: small, models: [large]}
`;
const AS_CONFIGURED = {
  default_model: null,
  busy_input_mode: null,
  configured: { default_model: 'custom/small', busy_input_mode: 'queue' },
};

const startServer = (home?: string, runner = createEchoRunner().runner) =>
  startTestServer({ config: CONFIG, overrides: { runner }, ...(home !== undefined && { home }) });
const change = (server: TestServer, body: unknown, headers = {}) =>
  server.call('PATCH', '/api/settings', body, headers);
const read = async (server: TestServer) => (await server.call('GET', '/api/settings')).json;
const defaultOf = async (server: TestServer) => (await server.call('GET', '/api/models')).json.default;

it('[SE9] nothing is chosen at first; a chosen model is that of sessions that name none, and null goes back', async () => {
  const echo = createEchoRunner();
  const server = await startServer(undefined, echo.runner);
  expect(await read(server)).toEqual(AS_CONFIGURED);
  expect(await defaultOf(server)).toBe('custom/small');
  const old = await server.session();
  const own = await server.session({ model: 'custom/small' });
  const changed = await change(server, { default_model: 'custom/large' });
  expect(changed).toMatchObject({ status: 200, json: { ...AS_CONFIGURED, default_model: 'custom/large' } });
  expect(await read(server)).toEqual(changed.json);
  expect(await defaultOf(server)).toBe('custom/large');
  const asked = async (id: string) => {
    await server.ask(id, 'which one?');
    return (await server.messages(id)).at(-1).model;
  };
  expect([await asked(old), await asked(own), await asked(await server.session())]).toEqual([
    'custom/large',
    'custom/small',
    'custom/large',
  ]);
  await change(server, { default_model: null });
  expect(await defaultOf(server)).toBe('custom/small');
  expect(await read(server)).toEqual(AS_CONFIGURED);
});

it('[SE9] a chosen mode is what a prompt does while a turn runs and that does not say it itself', async () => {
  const script = createScriptedRunner();
  const server = await startServer(undefined, script.runner);
  const id = await server.session();
  await server.prompt(id, 'work');
  const turn = await script.turn(0);
  await change(server, { busy_input_mode: 'interrupt' });
  await server.prompt(id, 'no, this');
  await script.turn(1);
  expect(turn.signal.aborted).toBe(true);
  await server.prompt(id, 'later', { mode: 'queue' });
  const pending = (await server.call('GET', `/api/sessions/${id}/prompts?pending=1`)).json.admissions;
  expect(pending.map((one: { text: string }) => one.text)).toEqual(['no, this', 'later']);
});

it('[SE9] what cannot hold is refused whole', async () => {
  const server = await startServer();
  for (const [body, status, code] of [
    [{ default_model: 'nobody/nothing' }, 422, 'unknown_model'],
    [{ default_model: 'nobody/nothing', busy_input_mode: 'steer' }, 422, 'unknown_model'],
    [{ default_model: '' }, 400, 'bad_request'],
    [{ busy_input_mode: 'reject' }, 400, 'bad_request'],
    [{ theme: 'dark' }, 400, 'bad_request'],
    ['[]', 400, 'bad_request'],
  ] as const) {
    expect([body, await change(server, body)]).toMatchObject([body, { status, json: { code } }]);
  }
  expect(await read(server)).toEqual(AS_CONFIGURED);
});

it('[SE9] everybody who is in may read them, only `admin` may choose', async () => {
  const server = await startServer();
  const headers: Record<string, Record<string, string>> = {};
  for (const scope of ['admin', 'prompt', 'read']) {
    const { secret } = (await server.call('POST', '/api/auth/tokens', { name: scope, scope }, headers.admin)).json;
    headers[scope] = { authorization: `Bearer ${secret}` };
  }
  for (const scope of ['prompt', 'read']) {
    expect((await server.call('GET', '/api/settings', undefined, headers[scope])).status).toBe(200);
    const refused = await change(server, { busy_input_mode: 'steer' }, headers[scope]);
    expect(refused).toMatchObject({ status: 403, json: { code: 'insufficient_scope' } });
  }
  expect((await change(server, { busy_input_mode: 'steer' })).status).toBe(401);
  expect((await change(server, { busy_input_mode: 'steer' }, headers.admin)).status).toBe(200);
});

it('[SE9] another server on the home obeys within a second, readers are told, and a restart forgets nothing', async () => {
  const one = await startServer();
  const two = await startServer(one.home);
  const streams = await Promise.all([one.stream('/api/events'), two.stream('/api/events')]);
  await change(one, { default_model: 'custom/large' });
  await until('the other one obeys', async () => (await defaultOf(two)) === 'custom/large');
  for (const stream of streams) {
    await stream.next(({ type, json }) => type === 'sessions.changed' && json.payload.reason === 'settings');
  }
  await change(two, { busy_input_mode: 'steer' });
  const both = { ...AS_CONFIGURED, default_model: 'custom/large', busy_input_mode: 'steer' };
  expect(await read(one)).toEqual(both);
  await one.close();
  expect(await read(await startServer(one.home))).toEqual(both);
});

it('[SE9] a kept value that somebody spoiled is no choice, and the server starts', async () => {
  const first = await startServer();
  await change(first, { default_model: 'custom/large' });
  await first.close();
  const db = new Database(path.join(first.home, 'state.db'));
  db.prepare("UPDATE state_meta SET value = '{spoiled' WHERE key = 'settings'").run();
  db.close();
  const server = await startServer(first.home);
  expect(await read(server)).toEqual(AS_CONFIGURED);
  expect((await change(server, { busy_input_mode: 'steer' })).json).toMatchObject({ busy_input_mode: 'steer' });
});
