/** The password, logins, tokens and the word of a proxy, over real requests. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { rawRequest } from '../support/raw.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'a long enough password';
const OTHER = 'another long password';

const startServer = (options: TestServerOptions = {}) =>
  startTestServer({ ...options, overrides: { runner: createEchoRunner().runner, ...options.overrides } });

/** A server with a password, and the cookie of whoever set it. */
async function withPassword(options: TestServerOptions = {}) {
  const server = await startServer(options);
  const set = await server.call('POST', '/api/auth/password', { password: PASSWORD });
  expect(set.status).toBe(200);
  return { server, owner: cookieOf(set.headers) };
}

/** The same behind a proxy, whose configuration comes when the password is there. */
async function behindProxy() {
  const { server: alone } = await withPassword();
  await alone.close();
  return { server: await startServer({ home: alone.home, config: 'server: {trusted_proxies: [127.0.0.1]}' }) };
}

const cookieOf = (headers: Headers): Record<string, string> => ({ cookie: headers.get('set-cookie')!.split(';')[0]! });

async function login(server: TestServer, body: object, headers: Record<string, string> = {}) {
  const answer = await server.call('POST', '/api/auth/login', body, headers);
  return {
    status: answer.status,
    code: answer.json.code,
    cookie: answer.status === 200 ? cookieOf(answer.headers) : {},
  };
}

const statusOf = async (server: TestServer, headers: Record<string, string> = {}): Promise<number> =>
  (await server.call('GET', '/api/sessions', undefined, headers)).status;

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

async function createToken(server: TestServer, wish: object, headers: Record<string, string>) {
  const made = await server.call('POST', '/api/auth/tokens', { name: 'one', ...wish }, headers);
  expect(made.status).toBe(201);
  return made.json as { secret: string; token: { token_id: string } };
}

it('[SE2][SE6] from the moment a password is set everything wants a credential, and who set it is in', async () => {
  const { server, owner } = await withPassword();
  expect(await statusOf(server)).toBe(401);
  expect(await statusOf(server, owner)).toBe(200);
  expect((await server.call('GET', '/api/auth/status')).json).toEqual({
    auth_required: true,
    logged_in: false,
    password: true,
    token: false,
    scope: null,
    can_set_password: false,
  });
  expect(await login(server, { password: OTHER })).toMatchObject({ status: 401, code: 'bad_credentials' });
  const { cookie } = await login(server, { password: PASSWORD });
  expect(await statusOf(server, cookie)).toBe(200);
  // Letters that look the same are the same, however a keyboard composes them.
  await server.call(
    'POST',
    '/api/auth/password',
    { password: 'Gr\u00FC\u00DFe aus Z\u00FCrich', current: PASSWORD },
    cookie,
  );
  expect((await login(server, { password: 'Gru\u0308\u00DFe aus Zu\u0308rich' })).status).toBe(200);
});

it('[SE6] of a password, a cookie and a token only digests are in the state DB', async () => {
  const { server, owner } = await withPassword();
  const { secret } = await createToken(server, {}, owner);
  const db = new Database(path.join(server.home, 'state.db'), { readonly: true });
  onTestFinished(() => void db.close());
  const { value } = db.prepare("SELECT value FROM state_meta WHERE key = 'password'").get() as { value: string };
  expect(value).toMatch(/^\$scrypt\$ln=15,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  const rows = JSON.stringify([db.prepare('SELECT * FROM logins').all(), db.prepare('SELECT * FROM api_tokens').all()]);
  const cookie = owner.cookie!.split('=')[1]!;
  for (const one of [PASSWORD, secret, cookie]) {
    expect(rows).not.toContain(one);
    expect(JSON.stringify(server.logs)).not.toContain(one);
  }
  for (const one of [secret, cookie]) expect(rows).toContain(createHash('sha256').update(one).digest('hex'));
});

it('[SE6] a change of the password needs the one before, logs everybody out and ends their streams', async () => {
  const { server, owner } = await withPassword();
  const { cookie: phone } = await login(server, { password: PASSWORD });
  const stream = await server.stream('/api/events', { headers: phone });
  expect(stream.status).toBe(200);
  const gateway = await connectGateway(server.url, { headers: phone });
  for (const current of [undefined, OTHER, '']) {
    const refused = await server.call('POST', '/api/auth/password', { password: OTHER, current }, owner);
    expect([refused.status, refused.json.code]).toEqual([401, 'bad_credentials']);
  }
  const changed = await server.call('POST', '/api/auth/password', { password: OTHER, current: PASSWORD }, owner);
  expect(changed.status).toBe(200);
  await stream.ended;
  expect(await until('the socket is closed', () => gateway.closed())).toBe(4401);
  expect(await statusOf(server, phone)).toBe(401);
  expect(await statusOf(server, owner)).toBe(401);
  expect(await statusOf(server, cookieOf(changed.headers))).toBe(200);
  expect((await login(server, { password: PASSWORD })).status).toBe(401);
});

it('[SE6] the first password is set at the machine, not by whoever a proxy on it lets through', async () => {
  const server = await startServer();
  for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'x-forwarded-host']) {
    for (const [address, body] of [
      ['/api/auth/password', { password: PASSWORD }],
      ['/api/auth/tokens', { name: 'mine' }],
    ] as const) {
      const answer = await server.call('POST', address, body, { [name]: '203.0.113.7' });
      expect([name, address, answer.status, answer.json.code]).toEqual([name, address, 403, 'insufficient_scope']);
    }
  }
  expect((await server.call('GET', '/api/auth/status')).json).toMatchObject({
    auth_required: false,
    can_set_password: true,
  });
});

it('[SE6] passwords that are too short or too long are refused whole', async () => {
  const server = await startServer();
  for (const password of ['', 'seven77', 'x'.repeat(1025), 12345678]) {
    expect((await server.call('POST', '/api/auth/password', { password })).status).toBe(400);
  }
  expect(await statusOf(server)).toBe(200);
});

it('[SE6] logins are listed and ended one by one; the streams of that browser end with it', async () => {
  const { server, owner } = await withPassword();
  const { cookie: phone } = await login(server, { password: PASSWORD }, { 'user-agent': 'Phone' });
  const list = async () => (await server.call('GET', '/api/auth/logins', undefined, owner)).json.logins;
  expect(
    (await list()).map(({ agent, current }: { agent: string; current: boolean }) => [agent, current]).sort(),
  ).toEqual([
    ['Phone', false],
    ['node', true],
  ]);
  const stream = await server.stream('/api/events', { headers: phone });
  const lost = (await list()).find((one: { agent: string }) => one.agent === 'Phone');
  expect(Object.keys(lost)).not.toContain('secret_hash');
  expect((await server.call('DELETE', `/api/auth/logins/${lost.login_id}`, undefined, owner)).status).toBe(204);
  await stream.ended;
  expect(await statusOf(server, phone)).toBe(401);
  expect(await statusOf(server, owner)).toBe(200);
  expect((await server.call('DELETE', `/api/auth/logins/${lost.login_id}`, undefined, owner)).status).toBe(404);
});

it('[SE6] a token does what its scope says and no more', async () => {
  const { server, owner } = await withPassword();
  const read = bearer((await createToken(server, { scope: 'read' }, owner)).secret);
  const prompt = bearer((await createToken(server, { scope: 'prompt' }, owner)).secret);
  const admin = bearer((await createToken(server, { scope: 'admin' }, owner)).secret);
  const may = async (method: string, address: string, body: unknown, headers: Record<string, string>) => {
    const answer = await server.call(method, address, body, headers);
    if (answer.status === 403) expect(answer.json).toMatchObject({ code: 'insufficient_scope' });
    return answer.status !== 403;
  };
  const id = (await server.call('POST', '/api/sessions', {}, prompt)).json.session.session_id;
  const ways = [
    ['GET', '/api/sessions', undefined, [true, true, true]],
    ['POST', '/api/sessions', {}, [false, true, true]],
    ['POST', `/api/sessions/${id}/prompts`, { text: 'x' }, [false, true, true]],
    ['PATCH', `/api/sessions/${id}`, { title: 'x' }, [false, true, true]],
    ['GET', '/api/auth/tokens', undefined, [false, false, true]],
    ['POST', '/api/auth/tokens', { name: 'more' }, [false, false, true]],
    ['GET', '/api/auth/logins', undefined, [false, false, true]],
    ['POST', '/api/auth/password', { password: OTHER, current: 'wrong' }, [false, false, true]],
  ] as const;
  for (const [method, address, body, expected] of ways) {
    const found = [
      await may(method, address, body, read),
      await may(method, address, body, prompt),
      await may(method, address, body, admin),
    ];
    expect([method, address, ...found]).toEqual([method, address, ...expected]);
  }
  // A browser that logs in with a token gets no more than it.
  const { cookie } = await login(server, { token: read.authorization.slice('Bearer '.length) });
  expect(await statusOf(server, cookie)).toBe(200);
  expect((await server.call('POST', '/api/sessions', {}, cookie)).status).toBe(403);
});

it('[SE6] a token ends when it is taken back or its days are over, with everything that was got with it', async () => {
  let time = 1_800_000_000;
  const { server, owner } = await withPassword({ overrides: { now: () => time } });
  const lasting = await createToken(server, {}, owner);
  const short = await createToken(server, { days: 2 }, owner);
  const { cookie } = await login(server, { token: lasting.secret });
  const stream = await server.stream('/api/events', { headers: bearer(lasting.secret) });
  time += 2 * 24 * 3600;
  expect(await statusOf(server, bearer(short.secret))).toBe(401);
  expect(await statusOf(server, bearer(lasting.secret))).toBe(200);
  expect((await server.call('DELETE', `/api/auth/tokens/${lasting.token.token_id}`, undefined, owner)).status).toBe(
    204,
  );
  await stream.ended;
  expect(await statusOf(server, bearer(lasting.secret))).toBe(401);
  expect(await statusOf(server, cookie)).toBe(401);
});

it('[SE6] a login that is under way with the old password while it is changed is none', async () => {
  const { server, owner } = await withPassword();
  // Both are checked one after another; whichever ends last, nobody is in with the old one.
  const [late, changed] = await Promise.all([
    login(server, { password: PASSWORD }),
    server.call('POST', '/api/auth/password', { password: OTHER, current: PASSWORD }, owner),
    login(server, { password: PASSWORD }),
  ]);
  expect(changed.status).toBe(200);
  if (late.status === 200) expect(await statusOf(server, late.cookie)).toBe(401);
  // Written as such a login would be, behind the change.
  const { cookie } = await login(server, { password: OTHER });
  expect(await statusOf(server, cookie)).toBe(200);
  const db = new Database(path.join(server.home, 'state.db'));
  db.exec("UPDATE logins SET basis = 'password:0123456789abcdef'");
  db.close();
  expect(await statusOf(server, cookie)).toBe(401);
});

it('[SE6] a browser that logged in with a token is out when the days of the token are over', async () => {
  let time = 1_800_000_000;
  const { server, owner } = await withPassword({ overrides: { now: () => time } });
  const { secret } = await createToken(server, { scope: 'admin', days: 1 }, owner);
  const { cookie } = await login(server, { token: secret });
  expect(await statusOf(server, cookie)).toBe(200);
  time += 24 * 3600;
  expect(await statusOf(server, cookie)).toBe(401);
  expect((await server.call('GET', '/api/auth/logins', undefined, owner)).json.logins).toHaveLength(1);
});

it('[SE2] guesses at TURNKEEP_TOKEN in a header are limited for each address, and tokens of ours are not guesses', async () => {
  let time = 1_800_000_000;
  const TOKEN = 'correct-horse-battery';
  const server = await startServer({
    env: { TURNKEEP_TOKEN: TOKEN },
    config: 'server: {trusted_proxies: [127.0.0.1]}',
    overrides: { now: () => time },
  });
  const from = (address: string, secret: string) => ({ ...bearer(secret), 'x-forwarded-for': address });
  for (let n = 0; n < 30; n += 1) expect(await statusOf(server, from('203.0.113.1', `guess-${n}`))).toBe(401);
  for (const address of ['/api/sessions', '/api/auth/status']) {
    const refused = await server.call('GET', address, undefined, from('203.0.113.1', TOKEN));
    expect([address, refused.status, refused.json.code]).toEqual([address, 429, 'too_many_attempts']);
  }
  expect(await statusOf(server, from('203.0.113.2', TOKEN))).toBe(200);
  for (let n = 0; n < 40; n += 1) expect(await statusOf(server, from('203.0.113.3', `tk_${n}`))).toBe(401);
  expect(await statusOf(server, from('203.0.113.3', TOKEN))).toBe(200);
  time += 60;
  expect(await statusOf(server, from('203.0.113.1', TOKEN))).toBe(200);
});

it('[SE6] whoever may everything must still be who they were when a slow body has arrived', async () => {
  const { server, owner } = await withPassword();
  const { port } = new URL(server.url);
  const body = '{"name": "mine", "scope": "admin"}';
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  onTestFinished(() => void socket.destroy());
  socket.write(
    `POST /api/auth/tokens HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncookie: ${owner.cookie}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  );
  await until('it is let in', () => server.logs.length >= 0 && socket.bytesWritten > 0);
  await server.call('POST', '/api/auth/logout', undefined, owner);
  socket.write(body.slice(5));
  await until('it is answered', () => received.includes('\r\n\r\n'));
  expect(received).toContain('401 Unauthorized');
  const { cookie } = await login(server, { password: PASSWORD });
  expect((await server.call('GET', '/api/auth/tokens', undefined, cookie)).json.tokens).toEqual([]);
});

it('[SE8] answers that are waited for count as streams, and end with their credential', async () => {
  const scripted = createScriptedRunner();
  const { server, owner } = await withPassword({
    config: 'limits: {streams: 2}',
    overrides: { runner: scripted.runner },
  });
  const id = (await server.call('POST', '/api/sessions', {}, owner)).json.session.session_id;
  const address = `/api/sessions/${id}/prompts`;
  const body = { text: 'long', request_id: 'one' };
  const streamed = await server.stream(address, { method: 'POST', body, headers: owner });
  const waited = server.call('POST', `${address}?wait=1`, body, owner).catch(() => null);
  await until('both are counted', async () => {
    const stream = await server.stream('/api/events', { headers: owner });
    stream.drop();
    return stream.status === 429;
  });
  const refused = await server.call('POST', `${address}?wait=1`, { text: 'more' }, owner);
  expect([refused.status, refused.json.code]).toEqual([429, 'too_many_streams']);
  expect((await server.call('GET', address, undefined, owner)).json.admissions).toHaveLength(1);
  expect((await server.call('POST', address, { text: 'only handed over' }, owner)).status).toBe(202);
  await server.call('POST', '/api/auth/logout', undefined, owner);
  await streamed.ended;
  expect(await waited).toBeNull();
});

it('[SE6] where the configuration speaks of a proxy nobody who asks over HTTP sets the first credential', async () => {
  for (const config of ['server: {trusted_proxies: [10.0.0.1]}', 'server: {public_url: "https://chat.example/"}']) {
    const server = await startServer({ config });
    expect((await server.call('POST', '/api/auth/password', { password: PASSWORD })).status).toBe(403);
  }
});

it('[SE6] what another process takes back ends here too, streams as well', async () => {
  const { server, owner } = await withPassword({ overrides: { heartbeatS: 0.05 } });
  const stream = await server.stream('/api/events', { headers: owner });
  const db = new Database(path.join(server.home, 'state.db'));
  db.exec('DELETE FROM logins');
  db.close();
  await stream.ended;
  expect(await statusOf(server, owner)).toBe(401);
});

it('[SE2] many addresses guess no faster than one, and who was logged in before is not locked out by them', async () => {
  const { server } = await behindProxy();
  const attempt = (password: string, address: string) => login(server, { password }, { 'x-forwarded-for': address });
  expect((await attempt(PASSWORD, '203.0.113.1')).status).toBe(200);
  const counts = new Map<number, number>();
  for (let n = 0; n < 40; n += 1) {
    const { status } = await attempt('a wrong password', `198.51.100.${n}`);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  expect([...counts]).toEqual([
    [401, 30],
    [429, 10],
  ]);
  expect((await attempt(PASSWORD, '198.51.100.200')).status).toBe(429);
  expect((await attempt(PASSWORD, '203.0.113.1')).status).toBe(200);
});

it('[SE2] one IPv6 network is one address', async () => {
  const { server } = await behindProxy();
  const attempt = (address: string) => login(server, { password: 'a wrong password' }, { 'x-forwarded-for': address });
  for (let n = 1; n <= 5; n += 1) expect((await attempt(`2001:db8::${n}`)).status).toBe(401);
  expect((await attempt('2001:DB8:0:0:ffff::1')).status).toBe(429);
  expect((await attempt('2001:db8:0:1::1')).status).toBe(401);
});

it('[SE7] a proxy that knows who asks says so in its header; from anybody else the header says nothing', async () => {
  const config = 'server: {trusted_proxies: [127.0.0.1], user_header: X-Remote-User}';
  const trusting = await startServer({ config });
  expect(await statusOf(trusting)).toBe(401);
  expect(await statusOf(trusting, { 'x-remote-user': 'anna@example.org' })).toBe(200);
  for (const name of ['', ' ', 'a'.repeat(129), 'a\tb']) {
    expect([name, await statusOf(trusting, { 'x-remote-user': name })]).toEqual([name, 401]);
  }
  const elsewhere = await startServer({ config: 'server: {trusted_proxies: [192.0.2.1], user_header: X-Remote-User}' });
  expect(await statusOf(elsewhere, { 'x-remote-user': 'anna', 'x-forwarded-for': '192.0.2.1' })).toBe(401);
  await expect(startServer({ config: 'server: {user_header: X-Remote-User}' })).rejects.toThrow(/trusted_proxies/);
});

it('[SE3] the public address is said once: its host and its origin are allowed', async () => {
  const server = await startServer({ config: 'server: {public_url: "https://chat.example/x/"}' });
  const ask = async (headers: Record<string, string>) => {
    return (await rawRequest(server.url, { method: 'POST', address: '/api/sessions', headers, body: '{}' })).status;
  };
  expect(await ask({ host: 'chat.example', origin: 'https://chat.example' })).toBe(201);
  // A proxy that does not hand the Host on.
  expect(await ask({ origin: 'https://chat.example' })).toBe(201);
  expect(await ask({ host: 'chat.example', origin: 'https://evil.example' })).toBe(403);
  expect(await ask({ host: 'evil.example' })).toBe(403);
});

it('[SE8] one credential has so many streams and no more, over SSE and the gateway together', async () => {
  const server = await startServer({ config: 'limits: {streams: 2}' });
  const first = await server.stream('/api/events');
  const gateway = await connectGateway(server.url);
  const refused = await server.call('GET', '/api/events');
  expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([
    429,
    'too_many_streams',
    '5',
  ]);
  await expect(connectGateway(server.url)).rejects.toThrow();
  first.drop();
  await until('there is room again', async () => {
    const stream = await server.stream('/api/events');
    return stream.status === 200 ? true : null;
  });
  await gateway.close();
});
