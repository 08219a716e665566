/** Refusals: every code of the catalogue is reached through a socket, and every refusal has its shape. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { MAX_ATTACHMENTS } from '../../server/attachments/attachments.ts';
import { CATALOGUE, type ErrorCode } from '../../server/errors.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { rawExchange, rawRequest } from '../support/raw.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const TOKEN = 'a-token-of-tests';

/** What a refusal must be, whoever says it. */
interface Refusal {
  status: number;
  headers: Headers | Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: looked at by the test.
  json: any;
}

function expectRefusal(answer: Refusal, code: ErrorCode): void {
  expect(answer.json).toMatchObject({ error: expect.stringMatching(/^[A-Z"].*\S.*[.!]$/s), code });
  expect(answer.status).toBe(CATALOGUE[code].status);
}

/** Changes the state DB behind the server's back. */
function changeState(server: TestServer, sql: string, ...values: unknown[]): void {
  const db = new Database(path.join(server.home, 'state.db'), { timeout: 5000 });
  try {
    db.prepare(sql).run(...values);
  } finally {
    db.close();
  }
}

const prompts = (id: string): string => `/api/sessions/${id}/prompts`;

/** A server with a session whose turn runs until the test ends it. */
async function busyServer(config?: string) {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    overrides: { runner: scripted.runner },
    ...(config === undefined ? {} : { config }),
  });
  const id = await server.session();
  const { admission } = await server.prompt(id, 'first');
  return { server, id, admission, turn: await scripted.turn(0) };
}

/** What a server answers whose clock fails while it does. Everybody else who asks for the time meanwhile fails too. */
async function whileFailing(error: Error, ask: (server: TestServer) => Promise<Refusal>): Promise<Refusal> {
  let fails = false;
  const now = (): number => {
    if (fails) throw error;
    return Date.now() / 1000;
  };
  const server = await startTestServer({ overrides: { now } });
  await server.session();
  fails = true;
  try {
    return await ask(server);
  } finally {
    fails = false;
  }
}

const codeError = (code: string): Error => Object.assign(new Error(`a secret from inside`), { code });

/** One way to each code. A new code without a way here does not compile. */
const WAYS: Record<ErrorCode, () => Promise<Refusal>> = {
  bad_request: async () => (await startTestServer()).call('GET', '/api/sessions?limit=0'),
  bad_json: async () => (await startTestServer()).call('POST', '/api/sessions', '{"title":'),
  unauthorized: async () => (await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } })).call('GET', '/api/sessions'),
  bad_credentials: async () =>
    (await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } })).call('POST', '/api/auth/login', { token: 'wrong' }),
  async insufficient_scope() {
    const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const { secret } = (await server.call('POST', '/api/auth/tokens', { name: 'x', scope: 'read' }, bearer)).json;
    return server.call('POST', '/api/sessions', {}, { authorization: `Bearer ${secret}` });
  },
  login_not_found: async () => (await startTestServer()).call('DELETE', '/api/auth/logins/nobody'),
  token_not_found: async () => (await startTestServer()).call('DELETE', '/api/auth/tokens/nobody'),
  async too_many_streams() {
    const server = await startTestServer({ config: 'limits: {streams: 1}' });
    await server.stream('/api/events');
    return server.call('GET', '/api/events');
  },
  async too_many_prompts() {
    const server = await startTestServer({
      env: { TURNKEEP_TOKEN: TOKEN },
      config: 'limits: {prompts_per_minute: 1}',
      overrides: { runner: createScriptedRunner().runner },
    });
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const { session } = (await server.call('POST', '/api/sessions', {}, bearer)).json;
    await server.call('POST', prompts(session.session_id), { text: 'one' }, bearer);
    return server.call('POST', prompts(session.session_id), { text: 'two' }, bearer);
  },
  async disk_nearly_full() {
    const server = await startTestServer({ config: 'limits: {min_free_mb: 1000000000}' });
    return server.call('POST', prompts(await server.session()), { text: 'x' });
  },
  async overloaded() {
    const server = await startTestServer({ overrides: { mostInFlight: 0 } });
    return server.call('POST', '/api/sessions', {});
  },
  forbidden_host: async () =>
    rawRequest((await startTestServer()).url, { address: '/api/sessions', headers: { host: 'evil.example' } }),
  forbidden_origin: async () =>
    rawRequest((await startTestServer()).url, {
      method: 'POST',
      address: '/api/sessions',
      headers: { origin: 'https://evil.example' },
      body: '{}',
    }),
  not_found: async () => (await startTestServer()).call('GET', '/api/nothing'),
  session_not_found: async () => (await startTestServer()).call('GET', '/api/sessions/nobody'),
  project_not_found: async () => (await startTestServer()).call('DELETE', '/api/projects/nobody'),
  async prompt_not_found() {
    const server = await startTestServer();
    return server.call('DELETE', `${prompts(await server.session())}/${'0'.repeat(32)}`);
  },
  method_not_allowed: async () => (await startTestServer()).call('PUT', '/api/sessions'),
  async too_slow() {
    const server = await startTestServer({ overrides: { requestTimeoutMs: 200 } });
    return rawRequest(server.url, {
      method: 'POST',
      address: '/api/sessions',
      headers: { 'content-length': '50' },
      body: '{"title":',
    });
  },
  upgrade_required: async () => (await startTestServer()).call('GET', '/api/ws'),
  /** Only the gateway has runtime ids: its refusal, in the shape of the others. */
  async runtime_not_live() {
    const client = await connectGateway((await startTestServer()).url);
    const { error } = await client.request('session.usage', { session_id: 'nobody' });
    expect(error.code).toBe(CATALOGUE.runtime_not_live.rpc);
    const { status } = CATALOGUE.runtime_not_live;
    return { status, headers: {}, json: { error: error.message, code: error.data.code } };
  },
  async foreign_home() {
    const theirs = await temporaryFolder();
    await writeFile(path.join(theirs, 'theirs.json'), JSON.stringify({ session_id: 'theirs', messages: [] }));
    const server = await startTestServer({ config: `foreign: {sessions_dir: ${theirs}}` });
    return server.call('POST', prompts('theirs'), { text: 'hello' });
  },
  async session_live() {
    const { server, id } = await busyServer();
    return server.call('DELETE', `/api/sessions/${id}`);
  },
  async session_busy() {
    const { server, id } = await busyServer();
    return server.call('POST', prompts(id), { text: 'now or never', mode: 'reject' });
  },
  async admission_conflict() {
    const { server, id } = await busyServer();
    await server.prompt(id, 'one', { request_id: 'key' });
    return server.call('POST', prompts(id), { text: 'another', request_id: 'key' });
  },
  async idempotency_conflict() {
    const server = await startTestServer();
    const key = { 'idempotency-key': 'key' };
    await server.call('POST', '/api/sessions', { title: 'one' }, key);
    return server.call('POST', '/api/sessions', { title: 'another' }, key);
  },
  async stale_generation() {
    const { server, id, admission } = await busyServer();
    return server.call('DELETE', `${prompts(id)}/${admission.admission_id}`);
  },
  async unknown_execution() {
    const server = await startTestServer();
    const id = await server.session();
    const { admission } = await server.ask(id, 'hello');
    changeState(server, "UPDATE session_admissions SET status = 'unknown', outcome = NULL");
    return server.call('DELETE', `${prompts(id)}/${admission.admission_id}`);
  },
  async revision_conflict() {
    const server = await startTestServer();
    return server.call('PATCH', `/api/sessions/${await server.session()}`, { title: 'x' }, { 'if-match': '"99"' });
  },
  async too_large() {
    const server = await startTestServer({ config: 'limits: {body_mb: 0.001}' });
    return rawRequest(server.url, {
      method: 'POST',
      address: '/api/sessions',
      body: JSON.stringify({ title: 'x'.repeat(2000) }),
    });
  },
  not_json: async () =>
    (await startTestServer()).call('POST', '/api/sessions', 'title=x', { 'content-type': 'text/plain' }),
  async empty_prompt() {
    const server = await startTestServer();
    return server.call('POST', prompts(await server.session()), { text: '' });
  },
  async unsupported_mode() {
    const server = await startTestServer();
    return server.call('POST', prompts(await server.session()), { text: 'x', mode: 'steer', replaces: 'y' });
  },
  async attachment_not_found() {
    const server = await startTestServer();
    return server.call('GET', `/api/sessions/${await server.session()}/attachments/${'0'.repeat(32)}`);
  },
  async not_multipart() {
    const server = await startTestServer();
    return server.call('POST', `/api/sessions/${await server.session()}/attachments`, { file: 'x' });
  },
  async too_many_attachments() {
    const server = await startTestServer();
    const id = await server.session();
    const folder = path.join(server.home, 'attachments', id);
    await mkdir(folder, { recursive: true });
    for (let n = 0; n < MAX_ATTACHMENTS; n += 1) await writeFile(path.join(folder, `${n}.txt`), 'x');
    const form = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n--b--\r\n';
    const type = { 'content-type': 'multipart/form-data; boundary=b' };
    return server.call('POST', `/api/sessions/${id}/attachments`, form, type);
  },
  async unknown_attachment() {
    const server = await startTestServer();
    return server.call('POST', prompts(await server.session()), { text: 'x', attachments: ['a'] });
  },
  unknown_model: async () => (await startTestServer()).call('POST', '/api/sessions', { model: 'no/such' }),
  unknown_project: async () => (await startTestServer()).call('POST', '/api/sessions', { project_id: 'no' }),
  bad_workspace: async () => (await startTestServer()).call('POST', '/api/sessions', { workspace: '/no/such/folder' }),
  async unknown_message() {
    const server = await startTestServer();
    return server.call('GET', `/api/sessions/${await server.session()}/messages?before=nothing`);
  },
  async unacceptable() {
    const { server, id, turn } = await busyServer();
    void turn.turn.ask({ kind: 'clarify', questions: [{ qid: 'q', question: 'Which one?' }] });
    const address = `/api/sessions/${id}/requests`;
    const open = await until('a question is open', async () => (await server.call('GET', address)).json.requests[0]);
    return server.call('POST', `${address}/${open.id}`, { choice: 'once' });
  },
  async session_not_owned() {
    const server = await startTestServer();
    const id = await server.session();
    // A process that surely lives: the one that started this.
    changeState(
      server,
      `INSERT INTO active_sessions (session_id, lease_id, surface, pid, live_session_id, epoch, started_at, updated_at)
       VALUES (?, 'l', 'other', ?, 'runtime', 99, 0, 0)`,
      id,
      process.ppid,
    );
    return server.call('POST', prompts(id), { text: 'mine' });
  },
  async max_concurrent_sessions() {
    const { server } = await busyServer('max_concurrent_sessions: 1');
    return server.call('POST', prompts(await server.session()), { text: 'one too many' });
  },
  async queue_full() {
    const { server, id } = await busyServer('queue: {max: 1}');
    await server.prompt(id, 'waits');
    return server.call('POST', prompts(id), { text: 'one too many' });
  },
  async too_many_attempts() {
    const server = await startTestServer({ env: { TURNKEEP_TOKEN: TOKEN } });
    for (let n = 0; n < 5; n += 1) await server.call('POST', '/api/auth/login', { token: 'wrong' });
    return server.call('POST', '/api/auth/login', { token: TOKEN });
  },
  async headers_too_large() {
    const server = await startTestServer();
    return rawRequest(server.url, { address: '/health', headers: { 'x-long': 'x'.repeat(100_000) } });
  },
  internal: async () =>
    whileFailing(new TypeError('a secret from inside'), (server) => server.call('POST', '/api/sessions', {})),
  async draining() {
    const { server, id } = await busyServer();
    void server.app.close();
    return server.call('POST', prompts(id), { text: 'too late' });
  },
  storage_unavailable: async () =>
    whileFailing(codeError('SQLITE_IOERR_READ'), (server) => server.call('POST', '/api/sessions', {})),
  async session_coordination_unavailable() {
    const server = await startTestServer();
    const id = await server.session();
    changeState(server, 'DROP TABLE active_sessions');
    return server.call('POST', prompts(id), { text: 'mine' });
  },
  disk_full: async () => whileFailing(codeError('SQLITE_FULL'), (server) => server.call('POST', '/api/sessions', {})),
};

it.each(Object.entries(WAYS) as [ErrorCode, () => Promise<Refusal>][])(
  '[HT1] the code %s is reached, with its status and its shape',
  async (code, way) => {
    const answer = await way();
    expectRefusal(answer, code);
    const { retryAfter } = CATALOGUE[code] as { retryAfter?: number };
    const header =
      answer.headers instanceof Headers ? answer.headers.get('retry-after') : answer.headers['retry-after'];
    if (retryAfter !== undefined) expect(Number(header)).toBeGreaterThan(0);
    expect(JSON.stringify(answer.json)).not.toContain('from inside');
  },
);

it('[HT1] the catalogue has no code that no source throws', () => {
  const sources = ['routes', 'server'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(path.join(ROOT, folder, file), 'utf8')),
  );
  const all = sources.join('\n');
  expect(Object.keys(CATALOGUE).filter((code) => !all.includes(`'${code}'`))).toEqual([]);
});

it('[HT1] an address that exists says which methods it takes', async () => {
  const server = await startTestServer();
  const id = await server.session();
  const cases: [string, string, string][] = [
    ['PUT', '/api/sessions', 'GET, HEAD, POST'],
    ['OPTIONS', '/api/sessions', 'GET, HEAD, POST'],
    ['POST', `/api/sessions/${id}`, 'DELETE, GET, HEAD, PATCH'],
    ['GET', `/api/sessions/${id}/interrupt`, 'POST'],
    ['POST', '/health', 'GET, HEAD'],
    ['DELETE', `/api/sessions/${id}/events`, 'GET, HEAD'],
  ];
  for (const [method, address, allow] of cases) {
    const answer = await server.call(method, address);
    expectRefusal(answer, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe(allow);
  }
  expectRefusal(await server.call('PUT', '/api/nothing'), 'not_found');
  // What the body holds does not matter then.
  expectRefusal(await server.call('PUT', '/api/sessions', '{', { 'content-type': 'text/plain' }), 'method_not_allowed');
});

it('[HT1] what curl sends by itself is told how to be right', async () => {
  const server = await startTestServer();
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const answer = await server.call('POST', '/api/sessions', '{"title":"x"}', form);
  expectRefusal(answer, 'not_json');
  expect(answer.json.error).toContain('-H "content-type: application/json"');
  const multipart = await server.call('POST', '/api/sessions', '--x--', {
    'content-type': 'multipart/form-data; boundary=x',
  });
  expectRefusal(multipart, 'not_json');
  const none = await rawRequest(server.url, {
    method: 'POST',
    address: '/api/sessions',
    headers: { 'content-type': null },
    body: '{}',
  });
  expectRefusal(none, 'not_json');
});

it.each([
  ['an unclosed object', '{"title":"x"', 'bad_json'],
  ['a single quote', "{'title':'x'}", 'bad_json'],
  ['two values', '{}{}', 'bad_json'],
  ['only white space', '  \n', 'bad_json'],
  ['a byte order mark alone', '\uFEFF', 'bad_json'],
  ['null', 'null', 'bad_request'],
  ['an array', '[]', 'bad_request'],
  ['a text', '"x"', 'bad_request'],
  ['a number', '5', 'bad_request'],
  ['true', 'true', 'bad_request'],
  ['a polluted prototype', '{"__proto__":{"admin":true}}', 'bad_json'],
  ['a polluted prototype, escaped', '{"\\u005f\\u005fproto__":{"admin":true}}', 'bad_json'],
  ['a polluted constructor', '{"constructor":{"prototype":{"admin":true}}}', 'bad_json'],
  ['a polluted prototype inside', '{"title":{"__proto__":{"admin":true}}}', 'bad_json'],
  ['a key of every object', '{"toString":"x"}', 'bad_request'],
] as [string, string, ErrorCode][])('[HT1, HT2] a body that is %s is refused', async (_what, body, code) => {
  const server = await startTestServer();
  expectRefusal(await server.call('POST', '/api/sessions', body), code);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
  expect(({} as Record<string, unknown>).admin).toBeUndefined();
});

it('[HT2] a POST without a body counts as an empty object', async () => {
  const server = await startTestServer();
  expect((await server.call('POST', '/api/sessions')).status).toBe(201);
  expect((await server.call('POST', '/api/sessions', '')).status).toBe(201);
  const chunked = await rawRequest(server.url, {
    method: 'POST',
    address: '/api/sessions',
    headers: { 'transfer-encoding': 'chunked', 'content-type': 'application/json', 'content-length': null },
    body: '0\r\n\r\n',
  });
  expect(chunked.status).toBe(201);
});

const POST = (host: string, headers: string, body = ''): string =>
  `POST /api/sessions HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${headers}\r\n\r\n${body}`;

it.each([
  ['garbage', () => 'what is this?\r\n\r\n', 'bad_request'],
  ['bytes of TLS', () => Buffer.from('160301020001000001fc0303', 'hex').toString('latin1'), 'bad_request'],
  ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad_request'],
  ['an unknown method', (host) => `BREW /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 'bad_request'],
  ['a negative length', (host) => POST(host, 'content-length: -5', '{}'), 'bad_request'],
  ['a length that is no number', (host) => POST(host, 'content-length: many', '{}'), 'bad_request'],
  ['two lengths', (host) => POST(host, 'content-length: 2\r\ncontent-length: 3', '{}'), 'bad_request'],
  [
    'a length and chunks',
    (host) => POST(host, 'content-length: 2\r\ntransfer-encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'),
    'bad_request',
  ],
  ['a broken chunk', (host) => POST(host, 'transfer-encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'), 'bad_request'],
  ['an unknown coding', (host) => POST(host, 'transfer-encoding: magic', '{}'), 'bad_request'],
  ['a bare line feed in a header', (host) => POST(host, 'x: a\nb\r\ncontent-length: 2', '{}'), 'bad_request'],
  ['NUL in a header', (host) => POST(host, 'x: a\0b\r\ncontent-length: 2', '{}'), 'bad_request'],
  [
    'very many headers',
    (host) => POST(host, `${'x-header: of-a-crowd\r\n'.repeat(5000)}content-length: 0`),
    'headers_too_large',
  ],
  ['a very long address', () => `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 'headers_too_large'],
  ['no Host', () => 'GET /api/sessions HTTP/1.1\r\nconnection: close\r\n\r\n', 'forbidden_host'],
  ['HTTP/1.0 without Host', () => 'GET /api/sessions HTTP/1.0\r\n\r\n', 'forbidden_host'],
  [
    'a whole URL of elsewhere',
    (host) => `GET http://evil.example/x HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
    'not_found',
  ],
] as [string, (host: string) => string, ErrorCode][])(
  '[HT1, HT2] %s on the socket is refused and the server goes on',
  async (_what, bytes, code) => {
    const server = await startTestServer();
    const answers = await rawExchange(server.url, Buffer.from(bytes(new URL(server.url).host), 'latin1'));
    expectRefusal(answers.at(-1) ?? { status: 0, headers: {}, json: null }, code);
    expect((await server.call('GET', '/health')).json.status).toBe('ok');
    expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
    expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  },
);

it('[HT1, HT2] a body that is shorter than it says is refused when its time is over, and nothing is stored', async () => {
  const server = await startTestServer({ overrides: { requestTimeoutMs: 200 } });
  const { host } = new URL(server.url);
  const [answer, ...more] = await rawExchange(server.url, POST(host, 'content-length: 100', '{"title":"x"}'));
  expectRefusal(answer!, 'too_slow');
  expect(more).toEqual([]);
  const [head] = await rawExchange(server.url, 'GET /health HTTP/1.1\r\nhost: lo');
  expectRefusal(head!, 'too_slow');
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT1, HT2] a body that is longer than it says is cut there, and the rest is no request', async () => {
  const server = await startTestServer();
  const { host } = new URL(server.url);
  const cut = await rawExchange(server.url, POST(host, 'content-length: 5', '{"title":"x"}'));
  expectRefusal(cut.at(-1)!, 'bad_request');
  const whole = await rawExchange(server.url, POST(host, 'content-length: 13', '{"title":"x"}and more\r\n\r\n'));
  expectRefusal(whole.at(-1)!, 'bad_request');
  const none = await rawExchange(server.url, POST(host, 'x-none: 1', '{"title":"y"}\r\n\r\n'));
  expectRefusal(none.at(-1)!, 'bad_request');
  const { sessions } = (await server.call('GET', '/api/sessions')).json;
  // The first is cut to no JSON, the second is whole, the third has no body at all.
  expect(sessions.map((session: { title: string | null }) => session.title).sort()).toEqual([null, 'x']);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT1, HT2] HTTP/1.0 and unknown expectations are served', async () => {
  const server = await startTestServer();
  const { host } = new URL(server.url);
  const [old] = await rawExchange(server.url, `GET /api/sessions HTTP/1.0\r\nhost: ${host}\r\n\r\n`);
  expect(old!.status).toBe(200);
  const odd = await rawRequest(server.url, { address: '/api/sessions', headers: { expect: 'the-unexpected' } });
  expect(odd.status).toBe(200);
});

it('[HT1] a body over the limit is refused whether or not it says its length', async () => {
  const server = await startTestServer({ config: 'limits: {body_mb: 0.01}' });
  const body = JSON.stringify({ title: 'x'.repeat(20_000) });
  expectRefusal(await rawRequest(server.url, { method: 'POST', address: '/api/sessions', body }), 'too_large');
  const chunked = await rawRequest(server.url, {
    method: 'POST',
    address: '/api/sessions',
    headers: { 'transfer-encoding': 'chunked', 'content-type': 'application/json', 'content-length': null },
    body: `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  });
  expectRefusal(chunked, 'too_large');
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
});

it('[HT1] a failure inside is told only to the log', async () => {
  await whileFailing(new TypeError('a secret from inside'), async (server) => {
    const answer = await server.call('POST', '/api/sessions', {});
    expect(answer.json).toEqual({ error: CATALOGUE.internal.message, code: 'internal' });
    const told = server.logs.filter((line) => line.level === 50);
    expect(JSON.stringify(told)).toContain('a secret from inside');
    return answer;
  });
});

it('[HT1] what may stand in a field is said in words', async () => {
  const server = await startTestServer();
  const id = await server.session();
  const said = async (method: string, address: string, body?: unknown) =>
    (await server.call(method, address, body)).json.error;
  const ofMessages = 'The query is malformed: "messages" must be "all" or be >= 0.';
  expect(await said('GET', `/api/sessions/${id}?messages=-1`)).toBe(ofMessages);
  expect(await said('GET', `/api/sessions/${id}?messages=some`)).toContain('"messages" must be "all" or be integer.');
  expect(await said('GET', '/api/sessions?archived=yes')).toContain('"archived" must be one of "0", "1", "only".');
  expect(await said('GET', '/api/sessions?limit=0')).toContain('"limit" must be >= 1.');
  expect(await said('PATCH', `/api/sessions/${id}`, { model: 5 })).toContain('"model" must be string or be null.');
  expect(await said('PATCH', `/api/sessions/${id}`, { pinned: 'yes' })).toContain('"pinned" must be boolean.');
});
