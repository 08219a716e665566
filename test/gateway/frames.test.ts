/** The gateway: frames, their answers, and who may connect. */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { expect, it } from 'vitest';
import { connectGateway, type GatewayClient } from '../support/gateway.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** Frames that are no events, behind the first ones. */
const repliesOf = (client: GatewayClient) => client.frames.filter((frame) => frame.method === undefined);

it.each([
  ['no JSON', '{"jsonrpc":', null, -32700],
  ['an array of requests', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', null, -32600],
  ['a number', '7', null, -32600],
  ['no method', '{"jsonrpc":"2.0","id":9}', 9, -32600],
  ['a method that is no text', '{"jsonrpc":"2.0","id":9,"method":{}}', 9, -32600],
  ['an id that is none', '{"jsonrpc":"2.0","id":[1],"method":"ping"}', null, -32600],
  ['parameters that are no object', '{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}', 9, -32602],
  ['a method that is not there', '{"jsonrpc":"2.0","id":9,"method":"session.explode"}', 9, -32601],
  ['a method of every object', '{"jsonrpc":"2.0","id":9,"method":"constructor"}', 9, -32601],
  ['an unknown parameter', '{"jsonrpc":"2.0","id":9,"method":"ping","params":{"loud":true}}', 9, 4000],
  ['a session that is not named', '{"jsonrpc":"2.0","id":9,"method":"session.usage"}', 9, 4006],
  [
    'a prompt without a text',
    '{"jsonrpc":"2.0","id":"a","method":"prompt.submit","params":{"session_id":"x"}}',
    'a',
    4002,
  ],
  [
    'a parameter of another kind',
    '{"jsonrpc":"2.0","id":9,"method":"session.usage","params":{"session_id":7}}',
    9,
    -32602,
  ],
])('[GW9] %s gets its own answer and costs nothing else', async (_what, text, id, code) => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  client.send(text);
  const [refused] = await until('it is answered', () => (repliesOf(client).length ? repliesOf(client) : null));
  expect(refused).toMatchObject({ jsonrpc: '2.0', id, error: { code, message: expect.stringMatching(/^.+[.]$/) } });
  expect(await client.call('ping')).toEqual({ pong: true });
});

it('[GW9] an unknown parameter is named', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { error } = await client.request('session.create', { titel: 'Plans' });
  expect(error).toMatchObject({ code: 4000, message: 'Unknown parameter "titel".' });
});

it('[GW9] an answer does not repeat what is too long, nor half of a surrogate pair', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const long = await client.request('ping', { ['x'.repeat(100_000)]: 1 });
  expect(long.error.code).toBe(4000);
  expect(long.error.message.length).toBeLessThan(200);
  expect((await client.request('session.create', { model: 'half \ud83d' })).error.message).toContain('half \ufffd');
  const { session_id } = await client.call('session.create');
  expect((await client.call('session.steer', { session_id, text: 'half \ud83d' })).text).toBe('half \ufffd');
});

it('[GW9] empty frames and requests without an id get no answer', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  for (const text of ['', '  \n', '{"jsonrpc":"2.0","method":"ping"}', '{"jsonrpc":"2.0","method":"nothing"}']) {
    client.send(text);
  }
  await client.call('ping');
  expect(repliesOf(client)).toHaveLength(1);
});

it('[GW9] requests are answered in the order in which they came, each once', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.create');
  const methods = ['session.list', 'ping', 'session.usage', 'session.history', 'session.active_list', 'ping'];
  const before = repliesOf(client).length;
  for (const round of [0, 1, 2]) {
    for (const [index, method] of methods.entries()) {
      const params = method === 'session.usage' || method === 'session.history' ? { session_id } : {};
      client.send(JSON.stringify({ jsonrpc: '2.0', id: `${round}.${index}`, method, params }));
    }
  }
  await until('all are answered', () => repliesOf(client).length === before + 18);
  const expected = [0, 1, 2].flatMap((round) => methods.map((_, index) => `${round}.${index}`));
  expect(
    repliesOf(client)
      .slice(before)
      .map((frame) => frame.id),
  ).toEqual(expected);
});

it('[GW9] a ping is answered while a request still works', async () => {
  const scripted = createScriptedRunner();
  let letGo: () => void = () => {};
  const checked = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const check = async () => {
    await checked;
    return 'ok' as const;
  };
  const server = await startTestServer({ overrides: { runner: scripted.runner, check } });
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.create');
  // Answered when the prompt is claimed, which waits for its check.
  const sent = client.request('prompt.submit', { session_id, text: 'hello' });
  expect((await client.request('gateway.ping')).result).toEqual({ ok: true });
  expect(repliesOf(client)).toHaveLength(2);
  letGo();
  expect((await sent).result.status).toBe('streaming');
});

it('[GW9] more frames at once than are read ahead are all answered', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  for (let id = 0; id < 2_000; id += 1) client.send(`{"jsonrpc":"2.0","id":"n${id}","method":"ping"}`);
  await until('all are answered', () => repliesOf(client).length === 2_000);
  expect(repliesOf(client).map((frame) => frame.id)).toEqual(Array.from({ length: 2_000 }, (_, id) => `n${id}`));
});

it('[GW9][HT5] lone surrogates and bytes that are no UTF-8 become U+FFFD and cost nothing', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  const { session_id, stored_session_id } = await client.call('session.create');
  client.send(
    `{"jsonrpc":"2.0","id":"s","method":"prompt.submit","params":{"session_id":"${session_id}","text":"half \\ud83d"}}`,
  );
  await client.event(session_id, 'message.complete');
  expect((await server.messages(stored_session_id))[0].content).toBe('half \ufffd');
  client.send(Buffer.from([0x22, 0xff, 0xfe, 0x22]) as unknown as string);
  await until('it is answered', () => repliesOf(client).some((frame) => frame.error?.code === -32600));
  expect(await client.call('ping')).toEqual({ pong: true });
});

it('[GW9] a bug answers that there was one, tells nothing from inside, and the next request works', async () => {
  let fails = false;
  const now = () => {
    if (fails) throw new Error('a secret from inside');
    return Date.now() / 1000;
  };
  const server = await startTestServer({ overrides: { now } });
  const client = await connectGateway(server.url);
  fails = true;
  const { error } = await client.request('session.create');
  fails = false;
  expect(error).toMatchObject({ code: -32603, data: { code: 'internal' } });
  expect(JSON.stringify(error)).not.toContain('a secret');
  expect((await client.call('session.create')).session_id).toMatch(/^[0-9a-f]{8}$/);
});

it('[GW9] a frame that is too long ends its own connection and no other', async () => {
  const server = await startTestServer({ config: 'limits: {body_mb: 1}' });
  const [one, two] = [await connectGateway(server.url), await connectGateway(server.url)];
  one.send('x'.repeat(1_100_000));
  await until('it is closed', () => one.closed() !== null);
  expect(one.closed()).toBe(1009);
  expect(server.logs.filter(({ level }) => level >= 40)).toEqual([]); // It is nobody's fault here.
  expect(await two.call('ping')).toEqual({ pong: true });
});

const TOKEN = 'a-token-of-tests';

it.each([
  ['no credential', {}, 401],
  ['a wrong token', { token: 'wrong' }, 401],
  ['an empty token', { token: '' }, 401],
  ['a foreign origin', { token: TOKEN, headers: { origin: 'https://evil.example' } }, 403],
  ['a foreign host', { token: TOKEN, headers: { host: 'evil.example' } }, 403],
])('[GW10] %s is refused before the upgrade', async (_what, options, status) => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  await expect(connectGateway(server.url, options)).rejects.toThrow(`refused: ${status}`);
  expect((await server.call('GET', '/health')).json.live_sessions).toBe(0);
});

it.each([
  ['the token in the query', { token: TOKEN }],
  ['the token in its header', { headers: { authorization: `Bearer ${TOKEN}` } }],
])('[GW10] %s opens the gateway', async (_what, options) => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  const client = await connectGateway(server.url, options);
  expect(await client.call('ping')).toEqual({ pong: true });
  expect(JSON.stringify(server.logs)).not.toContain(TOKEN);
});

it('[GW10][SE2] the token in the query opens nothing but the gateway', async () => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  expect((await server.call('GET', `/api/sessions?token=${TOKEN}`)).status).toBe(401);
  expect((await server.call('GET', `/api/events?token=${TOKEN}`)).status).toBe(401);
});

/** Asks for an upgrade, and is told the status of the answer. */
const upgrade = (url: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const request = http.get(url, { headers: { ...headers, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' } });
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    request.on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
  });

it('[GW10] no other address is upgraded, and a token that was sent to it is not in the log', async () => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  const statuses = ['/health', '/', '/api/wsx', '/api/sessions', '/api/auth', '/api/ws'].map((address) =>
    upgrade(`${server.url}${address}?token=${TOKEN}`),
  );
  expect(await Promise.all(statuses)).toEqual([404, 404, 404, 404, 404, 101]);
  expect(JSON.stringify(server.logs)).not.toContain(TOKEN);
});

it('[GW10] a refused upgrade leaves no connection behind', async () => {
  const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  const { port } = new URL(server.url);
  const ends = ['/api/ws', '/health', '/%zz'].map(async (address) => {
    const socket = net.connect(Number(port), '127.0.0.1');
    socket.write(
      `GET ${address} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    const [head] = await once(socket, 'data');
    await once(socket, 'end');
    return head.toString().slice(9, 12);
  });
  expect(await Promise.all(ends)).toEqual(['401', '404', '400']);
});

it('[GW10] who asks for the gateway without an upgrade is told what it is', async () => {
  const server = await startTestServer();
  const answer = await server.call('GET', '/api/ws');
  expect([answer.status, answer.json.code]).toEqual([426, 'upgrade_required']);
});

it('[GW10][HT10] the gateway is under the base path', async () => {
  const server = await startTestServer({ flags: { basePath: '/x' } });
  const client = await connectGateway(`${server.url}/`);
  expect(await client.call('ping')).toEqual({ pong: true });
});

it('[HT9] a server that stops ends its connections as going away, in time', async () => {
  const server = await startTestServer();
  const client = await connectGateway(server.url);
  await client.call('session.create');
  await server.close();
  await until('it is closed', () => client.closed() !== null);
  expect(client.closed()).toBe(1001);
});
