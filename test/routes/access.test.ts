/** Who may ask: credentials, Host, Origin; and that no secret is ever told. */
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { ConfigError, loadConfig } from '../../server/config.ts';
import { temporaryFolder } from '../support/home.ts';
import { rawRequest } from '../support/raw.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const TOKEN = 'correct-horse-battery';
const PASSWORD = 'a long enough password';
const BEARER = { authorization: `Bearer ${TOKEN}` };

/** A server with a token, and a clock that moves when told. */
async function guarded(config?: string) {
  let time = 1_750_000_000;
  const server = await startTestServer({
    env: { TURNKEEP_TOKEN: TOKEN },
    overrides: { runner: createEchoRunner().runner, now: () => time },
    ...(config === undefined ? {} : { config }),
  });
  return {
    server,
    pass(seconds: number) {
      time += seconds;
    },
  };
}

/** All calls of the document, with ids that are well-formed. */
async function documented(server: TestServer): Promise<{ method: string; address: string; open: boolean }[]> {
  const document = (await server.call('GET', '/api/openapi.json', undefined, BEARER)).json;
  return Object.entries<Record<string, { security?: unknown[] }>>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      address: path.replaceAll('{id}', 'nobody').replaceAll(/\{\w+\}/g, '0'.repeat(32)),
      open: operation.security?.length === 0,
    })),
  );
}

const statusOf = async (server: TestServer, headers: Record<string, string>): Promise<number> =>
  (await server.call('GET', '/api/sessions', undefined, headers)).status;

/** Logs in; the `name=value` of the cookie and its attributes. */
async function login(server: TestServer, headers: Record<string, string> = {}) {
  const answer = await server.call('POST', '/api/auth/login', { token: TOKEN }, headers);
  expect(answer.status).toBe(200);
  const [pair = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
  return { pair, attributes };
}

it('[SE2] with a token, every route but health and login wants it', async () => {
  const { server } = await guarded();
  const calls = await documented(server);
  expect(calls.filter((call) => call.open).map((call) => `${call.method} ${call.address}`)).toEqual([
    'GET /health',
    'GET /api/auth/status',
    'POST /api/auth/login',
    'POST /api/auth/logout',
  ]);
  for (const { method, address, open } of calls) {
    if (open) continue;
    // A token of our making: guesses at TURNKEEP_TOKEN are counted.
    for (const headers of [{}, { authorization: 'Bearer tk_wrong' }] as Record<string, string>[]) {
      // Whatever the body is: nobody looks at it before.
      const answer = await rawRequest(server.url, { method, address, headers, body: method === 'GET' ? '' : '{' });
      expect([method, address, answer.status, answer.json?.code]).toEqual([method, address, 401, 'unauthorized']);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    }
    expect([address, (await rawRequest(server.url, { method: 'HEAD', address })).status]).not.toEqual([address, 200]);
  }
  for (const address of ['/api/openapi.json', '/docs', '/docs/', '/docs/json', '/docs/static/index.css']) {
    expect([address, (await server.call('GET', address)).status]).toEqual([address, 401]);
  }
  // The page shell is there for everybody, so that it can ask for the token.
  for (const address of ['/', '/index.html', '/health', '/api/auth/status']) {
    expect([address, (await server.call('GET', address)).status]).toEqual([address, 200]);
  }
});

it('[SE2] the token is a bearer, and nothing like it', async () => {
  const { server } = await guarded();
  for (const authorization of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER  ${TOKEN} `]) {
    expect([authorization, await statusOf(server, { authorization })]).toEqual([authorization, 200]);
  }
  const wrong = [
    TOKEN,
    `Basic ${btoa(`:${TOKEN}`)}`,
    'Bearer',
    'Bearer ',
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
  ];
  for (const authorization of [...wrong, `Bearer ${TOKEN.toUpperCase()}`]) {
    expect([authorization, await statusOf(server, { authorization })]).toEqual([authorization, 401]);
  }
  expect((await server.call('GET', `/api/sessions?token=${TOKEN}`)).status).toBe(401);
  const session = await server.call('POST', '/api/sessions', {}, BEARER);
  expect(session.status).toBe(201);
  const stream = await server.stream(`/api/sessions/${session.json.session.session_id}/events`, { headers: BEARER });
  expect(stream.status).toBe(200);
});

const nobody = { password: false, token: true, scope: null, can_set_password: false };

it('[SE2][SE6] a login gives a cookie that a script and another site never see, and a logout ends it for good', async () => {
  const { server } = await guarded();
  const status = async (headers: Record<string, string> = {}) =>
    (await server.call('GET', '/api/auth/status', undefined, headers)).json;
  expect(await status()).toEqual({ auth_required: true, logged_in: false, ...nobody });
  const { pair, attributes } = await login(server);
  expect(pair).toMatch(/^turnkeep_login_\d+=[\w-]{43}$/);
  expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Strict']);
  expect(await statusOf(server, { cookie: pair })).toBe(200);
  expect(await statusOf(server, { cookie: `a=b; ${pair}; c=d` })).toBe(200);
  expect(await status({ cookie: pair })).toMatchObject({ auth_required: true, logged_in: true, scope: 'admin' });
  const logout = await server.call('POST', '/api/auth/logout', undefined, { cookie: pair });
  expect(logout.headers.get('set-cookie')).toMatch(
    /^turnkeep_login_\d+=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
  );
  // Whoever has kept a copy of the cookie has nothing.
  expect(await statusOf(server, { cookie: pair })).toBe(401);
  for (const body of [{ token: 'wrong' }, { token: '' }, { password: TOKEN }]) {
    const answer = await server.call('POST', '/api/auth/login', body);
    expect([answer.status, answer.json.code, answer.headers.get('set-cookie')]).toEqual([401, 'bad_credentials', null]);
  }
});

it('[SE2][SE6] a cookie that was changed, is old or was got with another token is none', async () => {
  const { server, pass } = await guarded();
  const { pair } = await login(server);
  const [name, value = ''] = pair.split('=');
  const forged = [
    '',
    '.',
    value.slice(0, -1),
    `${value}A`,
    value.toLowerCase(),
    'A'.repeat(43),
    TOKEN,
    createHash('sha256').update(value).digest('hex'),
    createHash('sha256').update(value).digest('base64url'),
    '%00',
    'x'.repeat(4000),
  ];
  for (const one of forged) expect([one, await statusOf(server, { cookie: `${name}=${one}` })]).toEqual([one, 401]);
  expect(await statusOf(server, { cookie: `other=${value}` })).toBe(401);
  expect(await statusOf(server, { cookie: pair, authorization: 'Bearer wrong' })).toBe(401);
  pass(30 * 24 * 3600 - 1);
  expect(await statusOf(server, { cookie: pair })).toBe(200);
  pass(1);
  expect(await statusOf(server, { cookie: pair })).toBe(401);
});

it('[SE6] a login with TURNKEEP_TOKEN outlives a restart, and ends when the token is another one', async () => {
  const first = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
  const value = (await login(first)).pair.split('=')[1];
  const cookieFor = ({ url }: { url: string }) => ({ cookie: `turnkeep_login_${new URL(url).port}=${value}` });
  await first.close();
  const again = await startTestServer({ home: first.home, env: { TURNKEEP_TOKEN: TOKEN } });
  expect(await statusOf(again, cookieFor(again))).toBe(200);
  await again.close();
  const changed = await startTestServer({ home: first.home, env: { TURNKEEP_TOKEN: 'another-token' } });
  expect(await statusOf(changed, cookieFor(changed))).toBe(401);
});

it("[SE2] two servers on one host, which a browser sends the same cookies, do not take each other's", async () => {
  const [one, other] = [await guarded(), await guarded()];
  const cookie = `${(await login(one.server)).pair}; ${(await login(other.server)).pair}`;
  for (const { server } of [one, other]) expect(await statusOf(server, { cookie })).toBe(200);
  const logout = await one.server.call('POST', '/api/auth/logout', undefined, { cookie });
  expect(cookie).toContain(logout.headers.get('set-cookie')!.split('=')[0]);
  expect([await statusOf(one.server, { cookie }), await statusOf(other.server, { cookie })]).toEqual([401, 200]);
});

it('[SE2] behind a trusted proxy that speaks TLS the cookie is Secure', async () => {
  const https = { 'x-forwarded-proto': 'https' };
  const { server: trusting } = await guarded('server: {trusted_proxies: [loopback]}');
  const bound = await login(trusting, https);
  // The name makes the browser refuse it from any other host, and without TLS.
  expect(bound.pair).toMatch(/^__Host-turnkeep_login_\d+=/);
  expect(bound.attributes).toEqual(expect.arrayContaining(['Secure', 'Path=/']));
  expect(await statusOf(trusting, { ...https, cookie: bound.pair })).toBe(200);
  expect(await statusOf(trusting, { cookie: bound.pair })).toBe(401);
  expect((await login(trusting)).attributes).not.toContain('Secure');
  const logout = await trusting.call('POST', '/api/auth/logout', undefined, https);
  expect(logout.headers.get('set-cookie')).toContain('; Secure');
  const { server: plain } = await guarded();
  expect((await login(plain, https)).attributes).not.toContain('Secure');
});

it('[SE2] after five failed logins in a minute an address waits, and no other', async () => {
  const { server, pass } = await guarded('server: {trusted_proxies: [127.0.0.1]}');
  const attempt = (token: string, address: string) =>
    server.call('POST', '/api/auth/login', { token }, { 'x-forwarded-for': address });
  for (let n = 0; n < 5; n += 1) {
    expect((await attempt('wrong', '203.0.113.1')).status).toBe(401);
    pass(1);
  }
  const refused = await attempt(TOKEN, '203.0.113.1');
  expect([refused.status, refused.json.code]).toEqual([429, 'too_many_attempts']);
  expect(refused.headers.get('retry-after')).toBe('55');
  expect(refused.json.retry_after).toBe(55);
  expect((await attempt(TOKEN, '203.0.113.2')).status).toBe(200);
  // Only the last hop is the proxy's word; what a client writes before it is its own.
  expect((await attempt(TOKEN, '203.0.113.9, 203.0.113.1')).status).toBe(429);
  // Requests with the token go on meanwhile.
  expect(await statusOf(server, { ...BEARER, 'x-forwarded-for': '203.0.113.1' })).toBe(200);
  pass(54);
  expect((await attempt(TOKEN, '203.0.113.1')).status).toBe(429);
  pass(1);
  expect((await attempt(TOKEN, '203.0.113.1')).status).toBe(200);
  const many = await Promise.all(Array.from({ length: 20 }, () => attempt('wrong', '203.0.113.3')));
  expect(many.filter((answer) => answer.status === 401)).toHaveLength(5);
});

it('[SE2] without a trusted proxy nobody can give himself another address', async () => {
  const { server } = await guarded();
  for (let n = 0; n < 5; n += 1) {
    await server.call('POST', '/api/auth/login', { token: 'wrong' }, { 'x-forwarded-for': `203.0.113.${n}` });
  }
  const answer = await server.call('POST', '/api/auth/login', { token: TOKEN }, { 'x-forwarded-for': '203.0.113.77' });
  expect(answer.status).toBe(429);
});

it('[SE2] without a token a loopback server is open, and a login harmless', async () => {
  const server = await startTestServer();
  expect((await server.call('GET', '/api/auth/status')).json).toMatchObject({ auth_required: false, logged_in: true });
  const answer = await server.call('POST', '/api/auth/login', { token: 'anything' });
  expect([answer.status, answer.headers.get('set-cookie')]).toEqual([200, null]);
  expect(await statusOf(server, { authorization: 'Bearer anything' })).toBe(200);
});

it('[SE3] a foreign Host is refused on every route but /health, with or without the token', async () => {
  const { server } = await guarded();
  const calls = [
    ...(await documented(server)),
    { method: 'GET', address: '/' },
    { method: 'GET', address: '/docs/' },
    { method: 'GET', address: '/api/nothing' },
    { method: 'PUT', address: '/api/sessions' },
  ];
  for (const { method, address } of calls) {
    const answer = await rawRequest(server.url, { method, address, headers: { host: 'evil.example', ...BEARER } });
    const expected = address === '/health' ? [200, undefined] : [403, 'forbidden_host'];
    expect([method, address, answer.status, answer.json?.code]).toEqual([method, address, ...expected]);
  }
});

it('[SE3] the Hosts of a loopback server are loopback and what is allowed, in any spelling', async () => {
  const server = await startTestServer({
    config: 'server: {allowed_hosts: [chat.example, "Box.LAN:8787", "fe80::1"]}',
  });
  const { port } = new URL(server.url);
  const accepted = [
    '127.0.0.1',
    'localhost',
    'LOCALHOST',
    '[::1]',
    'chat.example',
    'CHAT.example',
    'box.lan',
    '[fe80::1]',
  ];
  for (const name of accepted) {
    for (const host of [name, `${name}:${port}`, `${name}:1`]) {
      const answer = await rawRequest(server.url, { address: '/api/sessions', headers: { host } });
      expect([host, answer.status]).toEqual([host, 200]);
    }
  }
  const refused = [
    '',
    ' ',
    'evil.example',
    'chat.example.evil.example',
    'localhost.evil.example',
    '192.168.0.7',
    '[::2]',
    '0.0.0.0',
    'a b',
    'localhost,evil',
    '@',
    'http://localhost',
  ];
  for (const host of refused) {
    const answer = await rawRequest(server.url, { address: '/api/sessions', headers: { host } });
    expect([host, answer.status, answer.json.code]).toEqual([host, 403, 'forbidden_host']);
    expect(answer.json.error).toContain('server.allowed_hosts');
  }
});

it('[SE3] a server on the network is reached by addresses and by allowed names', async () => {
  const server = await startTestServer({
    config: 'server: {allowed_hosts: [chat.example]}',
    flags: { host: '0.0.0.0' },
    env: { TURNKEEP_TOKEN: TOKEN },
  });
  const status = async (host: string) =>
    (await rawRequest(server.url, { address: '/api/sessions', headers: { host, ...BEARER } })).status;
  for (const host of ['192.168.0.7:8787', '[fe80::1]', 'chat.example', 'localhost']) {
    expect([host, await status(host)]).toEqual([host, 200]);
  }
  expect(await status('evil.example')).toBe(403);
});

const hasIpv6 = Object.values(os.networkInterfaces()).some((list) => list?.some((one) => one.address === '::1'));

it.runIf(hasIpv6)('[SE3] a server on the IPv6 loopback is reached there, by its own page too', async () => {
  const server = await startTestServer({ flags: { host: '::1' } });
  const url = `http://[::1]:${new URL(server.url).port}`;
  expect((await fetch(`${url}/api/sessions`)).status).toBe(200);
  const own = { origin: url, 'content-type': 'application/json' };
  expect((await fetch(`${url}/api/sessions`, { method: 'POST', headers: own, body: '{}' })).status).toBe(201);
  const foreign = { ...own, origin: 'http://[::2]' };
  expect((await fetch(`${url}/api/sessions`, { method: 'POST', headers: foreign, body: '{}' })).status).toBe(403);
});

it('[SE3] a page of another origin can neither change anything nor open a stream', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  const { host, port } = new URL(server.url);
  const calls = [
    ...(await documented(server)).filter((call) => call.method !== 'GET'),
    { method: 'GET', address: `/api/sessions/${id}/events` },
    { method: 'HEAD', address: `/api/sessions/${id}/events` },
    { method: 'GET', address: '/api/events' },
    { method: 'HEAD', address: '/api/events' },
  ];
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: '' },
    { origin: `http://${host}.evil.example` },
    { origin: `http://evil.example@${host}.x` },
    { origin: `http://localhost:${port}` },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ];
  for (const { method, address } of calls) {
    for (const headers of foreign) {
      const answer = await rawRequest(server.url, { method, address, headers, body: method === 'GET' ? '' : '{}' });
      const what = [method, address, JSON.stringify(headers)];
      expect([...what, answer.status, answer.json?.code]).toEqual([
        ...what,
        403,
        method === 'HEAD' ? undefined : 'forbidden_origin',
      ]);
    }
  }
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
  // Other reads are answered, but the browser shows them to nobody: no CORS header says so.
  const read = await rawRequest(server.url, { address: '/api/sessions', headers: { origin: 'https://evil.example' } });
  expect(read.status).toBe(200);
  expect(Object.keys(read.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  const preflight = await rawRequest(server.url, {
    method: 'OPTIONS',
    address: '/api/sessions',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  });
  expect(Object.keys(preflight.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  expect(read.headers['cross-origin-resource-policy']).toBe('same-origin');
});

it('[SE3] the own origin and allowed ones pass', async () => {
  const server = await startTestServer({
    config:
      'server: {allowed_hosts: [chat.example], allowed_origins: ["https://App.example", "http://lan.example:81"]}',
  });
  const { host } = new URL(server.url);
  const own: Record<string, string>[] = [
    {},
    { origin: `http://${host}` },
    { origin: `http://${host.toUpperCase()}` },
    // A proxy in front speaks TLS and keeps the Host.
    { origin: 'https://chat.example', host: 'chat.example' },
    { origin: 'https://app.example' },
    { origin: 'http://lan.example:81' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
  ];
  for (const headers of own) {
    const post = await rawRequest(server.url, { method: 'POST', address: '/api/sessions', headers, body: '{}' });
    expect([JSON.stringify(headers), post.status]).toEqual([JSON.stringify(headers), 201]);
    const stream = await rawRequest(server.url, { method: 'HEAD', address: '/api/events', headers });
    expect([JSON.stringify(headers), stream.status]).toEqual([JSON.stringify(headers), 200]);
  }
  for (const origin of [
    'http://app.example',
    'https://app.example:444',
    'http://lan.example',
    'https://chat.example',
  ]) {
    const post = await rawRequest(server.url, {
      method: 'POST',
      address: '/api/sessions',
      headers: { origin },
      body: '{}',
    });
    expect([origin, post.status]).toEqual([origin, 403]);
  }
});

it('[SE4] a bind beyond loopback is refused until there is a credential, and says what to do', async () => {
  for (const host of ['0.0.0.0', '::', '192.168.0.7', 'box.lan', '127.0.0.1.evil.example', '[::]', '128.0.0.1']) {
    await expect(startTestServer({ flags: { host } })).rejects.toThrow(ConfigError);
    await expect(startTestServer({ flags: { host } })).rejects.toThrow(
      /turnkeep password.*TURNKEEP_TOKEN.*127\.0\.0\.1/,
    );
  }
  const home = await temporaryFolder();
  for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', '::1']) {
    expect(loadConfig({ home, host }, {}).server.host).toBe(host);
  }
  // A token that anybody guesses is none.
  expect(() => loadConfig({ home, host: '0.0.0.0' }, { TURNKEEP_TOKEN: 'short' })).toThrow(/at least 8/);
  await expect(startTestServer({ flags: { host: '0.0.0.0' }, env: { TURNKEEP_TOKEN: '' } })).rejects.toThrow(
    ConfigError,
  );
  await startTestServer({ flags: { host: '0.0.0.0' }, env: { TURNKEEP_TOKEN: TOKEN } });
  const local = await startTestServer();
  expect((await local.call('POST', '/api/auth/password', { password: PASSWORD })).status).toBe(200);
  await local.close();
  await startTestServer({ home: local.home, flags: { host: '0.0.0.0' } });
});

const KEY = 'sk-very-secret-0123456789';

it('[SE5] neither the token, nor a cookie, nor the key of a provider is in any log line or answer', async () => {
  // A provider that repeats the key that it refuses, as some do.
  const provider = http.createServer((request, response) => {
    response.writeHead(401, { 'content-type': 'application/json', 'x-echo': String(request.headers.authorization) });
    response.end(
      JSON.stringify({ error: { message: `Incorrect API key provided: ${request.headers.authorization}` } }),
    );
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void provider.close());
  const { port } = provider.address() as AddressInfo;
  const server = await startTestServer({
    env: { TURNKEEP_TOKEN: TOKEN, PROVIDER_KEY: KEY },
    config: `model: {provider: custom, base_url: "http://127.0.0.1:${port}/v1", default: m, api_key_env: PROVIDER_KEY}`,
  });
  const said: string[] = [];
  const call = async (method: string, address: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await server.call(method, address, body, headers);
    said.push(answer.text, JSON.stringify([...answer.headers].filter(([name]) => name !== 'set-cookie')));
    return answer;
  };
  const { pair } = await login(server);
  const secret = pair.split('=')[1]!;
  await call('POST', '/api/auth/login', { token: TOKEN, password: TOKEN });
  await call('POST', '/api/auth/login', `{"token":"${TOKEN}"`);
  await call('POST', '/api/auth/login', { token: `${TOKEN}x` });
  await call('GET', `/api/sessions?token=${TOKEN}`);
  await call('GET', `/api/sessions?limit=${TOKEN}`, undefined, BEARER);
  await call('GET', `/api/nothing/${TOKEN}`, undefined, BEARER);
  await call('GET', '/api/sessions', undefined, { authorization: `Basic ${TOKEN}` });
  await call('GET', '/api/sessions', undefined, { cookie: pair, 'idempotency-key': TOKEN });
  await call('GET', '/api/models', undefined, BEARER);
  await call('GET', '/docs/', undefined, BEARER);
  const { session } = (await call('POST', '/api/sessions', {}, BEARER)).json;
  const stream = await server.stream(`/api/sessions/${session.session_id}/events`, { headers: BEARER });
  const turn = await call('POST', `/api/sessions/${session.session_id}/prompts?wait=1`, { text: 'hello' }, BEARER);
  expect(turn.json.message).toMatchObject({ status: 'error', error: { code: 'auth' } });
  await stream.next((event) => event.type === 'message.complete');
  await call('GET', `/api/sessions/${session.session_id}?messages=all`, undefined, BEARER);
  await call('GET', '/api/models', undefined, BEARER);
  const told = [...said, stream.text(), JSON.stringify(server.logs), JSON.stringify(server.app.server.printRoutes())];
  for (const one of [KEY, secret]) expect(told.filter((text) => text.includes(one))).toEqual([]);
  // What a caller sent us is repeated to that caller at most, never in the log.
  expect(JSON.stringify(server.logs)).not.toContain(TOKEN);
  expect(told.filter((text) => text.includes(TOKEN))).toEqual([]);
  expect(server.logs.length).toBeGreaterThan(5);
});
