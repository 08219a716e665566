/** HEAD: the headers of the GET without its body, everywhere; on a stream the headers and the end. */
import { expect, it } from 'vitest';
import { rawRequest } from '../support/raw.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

/** Of each connection, or of each moment. */
const PASSING = new Set(['date', 'connection', 'keep-alive']);

const lasting = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !PASSING.has(name)));

it('[HT3] HEAD answers like GET without a body, wherever GET does', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner, now: () => 1_750_000_000 } });
  const id = await server.session({ title: 'x' });
  const { admission } = await server.ask(id, 'hello');
  const document = (await server.call('GET', '/api/openapi.json')).json;
  const documented = Object.entries<Record<string, unknown>>(document.paths)
    .filter(([address, methods]) => methods.get && !address.endsWith('/events'))
    .map(([address]) => address.replace('{id}', id).replace('{admission_id}', admission.admission_id));
  expect(documented.length).toBeGreaterThan(8);
  const addresses = [
    ...documented,
    '/api/search?q=hello',
    '/api/openapi.json',
    '/docs/',
    '/docs/static/index.css',
    '/',
    '/index.html',
    // Refusals are answered alike.
    '/api/nothing',
    '/api/sessions/nobody',
    `/api/sessions/${id}/messages?before=nothing`,
    '/api/sessions?limit=0',
  ];
  for (const address of addresses) {
    const get = await rawRequest(server.url, { address });
    const head = await rawRequest(server.url, { method: 'HEAD', address });
    // Their length moves with the time.
    const of = (answer: typeof get) => {
      const headers = lasting(answer.headers);
      if (address === '/health' || address === '/metrics') delete headers['content-length'];
      return [address, answer.status, headers];
    };
    expect(of(head)).toEqual(of(get));
    expect([address, head.body]).toEqual([address, '']);
    expect([address, get.body === '']).toEqual([address, false]);
  }
});

it('[HT3][HT6] HEAD with a known ETag answers 304', async () => {
  const server = await startTestServer();
  const id = await server.session();
  for (const address of [`/api/sessions/${id}`, `/api/sessions/${id}/messages`]) {
    const head = await server.call('HEAD', address);
    const etag = head.headers.get('etag');
    expect(etag).toMatch(/^"1\./);
    expect((await server.call('HEAD', address, undefined, { 'if-none-match': etag! })).status).toBe(304);
  }
});

it('[HT3] HEAD on a stream answers its headers and ends, and nobody stays attached', async () => {
  const server = await startTestServer();
  const id = await server.session();
  for (const address of [`/api/sessions/${id}/events`, '/api/events', `/api/events?session=${id}`]) {
    const head = await rawRequest(server.url, { method: 'HEAD', address });
    expect([address, head.status, head.body]).toEqual([address, 200, '']);
    expect(head.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(head.headers['cache-control']).toBe('no-cache, no-transform');
    expect(head.headers['x-accel-buffering']).toBe('no');
  }
  expect((await server.call('GET', '/health')).json.live_sessions).toBe(0);
  expect((await server.call('HEAD', '/api/sessions/nobody/events')).status).toBe(404);
  expect((await server.call('HEAD', '/api/sessions/a.b/events')).status).toBe(400);
  expect((await server.call('HEAD', '/api/events?session=a.b')).status).toBe(400);
});
