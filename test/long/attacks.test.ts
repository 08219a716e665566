/** Attacks with a load: many guesses, many slow senders, a loop that is held up, and requests of every allowed shape. */
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { CATALOGUE, type ErrorCode } from '../../server/errors.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { anyValueOf, type Operation, operationsOf } from '../support/schema-values.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'a long enough password';
const TOKEN = 'a-token-of-tests';
const BEARER = { authorization: `Bearer ${TOKEN}` };

/** Asks again and again until it is told to stop; how often it was answered, and the longest that it took, in milliseconds. */
function askOn(server: TestServer, ask: () => Promise<{ status: number }>, wanted: number) {
  let isOver = false;
  let longest = 0;
  let answers = 0;
  const asking = (async () => {
    while (!isOver) {
      const asked = performance.now();
      expect((await ask()).status).toBe(wanted);
      longest = Math.max(longest, performance.now() - asked);
      answers += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    isOver = true;
    await asking;
    expect((await server.call('GET', '/health')).json.status).toBe('ok');
    return { answers, longest };
  };
}

it('[LI4][SE2] ten thousand passwords from two thousand addresses: few are looked at, and others are answered meanwhile', async () => {
  let time = 1_750_000_000;
  const server = await startTestServer({
    config: 'server: {trusted_proxies: [127.0.0.1]}',
    env: { TURNKEEP_TOKEN: TOKEN },
    overrides: { runner: createEchoRunner().runner, now: () => time },
  });
  expect((await server.call('POST', '/api/auth/password', { password: PASSWORD }, BEARER)).status).toBe(200);
  const attempt = async (password: string, address: string) =>
    server.call('POST', '/api/auth/login', { password }, { 'x-forwarded-for': address });
  expect((await attempt(PASSWORD, '203.0.113.1')).status).toBe(200);
  const done = askOn(server, () => server.call('GET', '/api/sessions', undefined, BEARER), 200);
  const counts: Record<number, number> = {};
  let next = 0;
  const guess = async (): Promise<void> => {
    while (next < 10_000) {
      const n = next++;
      // Ten in a second: the whole flood takes a thousand of them.
      time += 0.1;
      const { status } = await attempt(`guess number ${n}`, `198.51.${(n >> 8) % 8}.${n % 256}`);
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 20 }, guess));
  const { answers, longest } = await done();
  console.info(
    `passwords ${JSON.stringify(counts)}; ${answers} answers for others, who waited ${longest.toFixed(0)} ms at the longest`,
  );
  // Thirty in ten minutes, of which the flood touches two; what was busy is refused as well.
  expect(counts[401]).toBeLessThanOrEqual(60);
  expect((counts[401] ?? 0) + (counts[429] ?? 0)).toBe(10_000);
  expect(answers).toBeGreaterThan(10);
  // A promise, not a speed: only what hangs takes as long as this.
  expect(longest).toBeLessThan(5_000);
  // Who was here before is not locked out by any of it.
  expect((await attempt(PASSWORD, '203.0.113.1')).status).toBe(200);
  expect((await attempt(PASSWORD, '203.0.113.2')).status).toBe(429);
});

it('[LI4][HT2] a hundred who send a byte at a time are ended when their time is over, and others are answered meanwhile', async () => {
  const server = await startTestServer({
    overrides: { runner: createEchoRunner().runner, requestTimeoutMs: 4_000, mostInFlight: 50 },
  });
  const { hostname, port, host } = new URL(server.url);
  const body = JSON.stringify({ title: 'y'.repeat(1000) });
  const length = `host: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  const messages = [
    // Headers without an end, a body, and a file.
    `GET /api/sessions HTTP/1.1\r\nhost: ${host}\r\n${'x-more: of the same\r\n'.repeat(500)}`,
    `POST /api/sessions HTTP/1.1\r\n${length}\r\n${body}`,
    `POST /api/auth/login HTTP/1.1\r\n${length}\r\n${body}`,
  ];
  const sockets = new Set<Socket>();
  let received = '';
  for (let n = 0; n < 100; n += 1) {
    const bytes = messages[n % messages.length]!;
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.add(socket);
    // The head of a body comes at once, or its sender would be one of the first kind.
    let sent = n % messages.length === 0 ? 0 : bytes.indexOf('\r\n\r\n') + 4;
    socket.on('connect', () => socket.write(bytes.slice(0, sent)));
    const timer = setInterval(() => socket.write(bytes.charAt(sent++)), 30);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(timer);
      sockets.delete(socket);
    });
  }
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const id = await server.session();
  const done = askOn(server, () => server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'x' }), 200);
  await until('all of them are ended', () => sockets.size === 0, 60_000);
  const { answers, longest } = await done();
  console.info(`${answers} answers for others, who waited ${longest.toFixed(0)} ms at the longest`);
  expect(received.split('"too_slow"').length - 1).toBe(100);
  expect(answers).toBeGreaterThan(10);
  // A promise, not a speed: only what hangs takes as long as this.
  expect(longest).toBeLessThan(5_000);
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[LI3] while the event loop is held up, new work is refused; afterwards it is taken', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const still = new Int32Array(new SharedArrayBuffer(4));
  let isHeld = true;
  onTestFinished(() => {
    isHeld = false;
  });
  // What a request far too large does, again and again.
  const hold = (): void => {
    Atomics.wait(still, 0, 0, 1_200);
    if (isHeld) setTimeout(hold, 0);
  };
  hold();
  const refused = await until('it is refused', async () => {
    const answer = await server.call('POST', '/api/sessions', {});
    return answer.status === 201 ? null : answer;
  });
  expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([503, 'overloaded', '5']);
  expect((await server.call('GET', '/health')).json.status).toBe('ok');
  expect((await server.call('GET', '/api/sessions')).status).toBe(200);
  isHeld = false;
  await until('it is taken', async () => (await server.call('POST', '/api/sessions', {})).status === 201);
});

const REQUESTS = 2_000;

it('[LI4][HT1][HT2] requests of every shape that the document allows: never a 5xx, never a hang', async () => {
  const seed = testSeed();
  console.info(`seed ${seed}`);
  const random = seededRandom(seed);
  // With a token, for a password or a token that is made on the way would lock everybody else out.
  const server = await startTestServer({
    env: { TURNKEEP_TOKEN: TOKEN },
    config: 'limits: {prompts_per_minute: 100000}',
    overrides: { runner: createEchoRunner().runner },
  });
  const post = async (address: string, body: object) => (await server.call('POST', address, body, BEARER)).json;
  const operations = operationsOf((await server.call('GET', '/api/openapi.json', undefined, BEARER)).json);
  let known: string[] = [];
  let stored = '';
  /** A session with a turn, whose ids are tried in every place. */
  const begin = async (): Promise<void> => {
    stored = (await post('/api/sessions', { title: 'known' })).session.session_id;
    const { admission, message } = await post(`/api/sessions/${stored}/prompts?wait=1`, { text: 'hello' });
    known = [stored, admission.admission_id, admission.run_id, message.id, '1', 'nobody'];
  };
  await begin();
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const statuses: Record<string, number> = {};

  async function one({ method, address, parameters, body }: Operation): Promise<void> {
    const asked = (schema: object) => (random() < 0.3 ? pick(known) : anyValueOf(schema, random));
    const where = address.replaceAll(/\{(\w+)\}/g, (_, name) =>
      name === 'id' && random() < 0.7 ? stored : encodeURIComponent(String(asked({ type: 'string' })).toWellFormed()),
    );
    const query = new URLSearchParams();
    const headers: Record<string, string> = { ...BEARER };
    for (const parameter of parameters) {
      const value = String(asked(parameter.schema)).toWellFormed();
      if (random() < 0.5) continue;
      if (parameter.in === 'query') query.append(parameter.name, value);
      if (parameter.in === 'header') headers[parameter.name] = value.replaceAll(/[^\x20-\x7e]/g, '').trim();
    }
    const leave = new AbortController();
    const sends = body !== null && method !== 'GET';
    const text = sends ? JSON.stringify(random() < 0.1 ? asked({}) : anyValueOf(body, random, known)) : null;
    const what = `seed ${seed}: ${method} ${where}?${query} ${text?.slice(0, 300)}`;
    const answer = await fetch(`${server.url}${where}?${query}`, {
      method,
      headers: { ...headers, ...(text === null ? {} : { 'content-type': 'application/json' }) },
      signal: AbortSignal.any([leave.signal, AbortSignal.timeout(20_000)]),
      ...(text === null ? {} : { body: text }),
    }).catch((error) => {
      throw new Error(what, { cause: error });
    });
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (answer.headers.get('content-type')?.startsWith('text/event-stream')) return leave.abort();
    const said = await answer.text();
    expect(answer.status, what).toBeLessThan(500);
    if (answer.status < 400) return;
    const { error, code } = JSON.parse(said);
    expect([error, CATALOGUE[code as ErrorCode]?.status], what).toEqual([expect.stringMatching(/\S/), answer.status]);
  }

  for (let n = 0; n < REQUESTS; n += 1) {
    const operation = pick(operations);
    if (operation.address !== '/api/ws') await one(operation);
    if (operation.method !== 'DELETE') continue;
    if ((await server.call('GET', `/api/sessions/${stored}`, undefined, BEARER)).status === 404) await begin();
  }
  console.info(`answers ${JSON.stringify(statuses)}`);
  // Most of what is well-formed must get somewhere, or this would try nothing.
  expect(
    Object.entries(statuses).reduce((sum, [status, count]) => sum + (Number(status) < 400 ? count : 0), 0),
  ).toBeGreaterThan(REQUESTS / 10);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  const { session } = await post('/api/sessions', {});
  expect((await post(`/api/sessions/${session.session_id}/prompts?wait=1`, { text: 'and now?' })).message.content).toBe(
    'echo: and now?',
  );
});
