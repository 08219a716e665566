/** Bad input: refused early and whole. After each refusal nothing has changed, and the server works on. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CATALOGUE, type ErrorCode } from '../../server/errors.ts';
import { temporaryFolder } from '../support/home.ts';
import { type RawAnswer, rawRequest } from '../support/raw.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { type Answer, startTestServer, type TestServer } from '../support/test-server.ts';

/** Everything that a client can see, but the clock and the counters of the process. */
async function visible(server: TestServer, id: string) {
  const addresses = [
    '/api/sessions?limit=1000&archived=1',
    `/api/sessions/${id}`,
    `/api/sessions/${id}/messages?limit=1000`,
    `/api/sessions/${id}/prompts`,
    `/api/sessions/${id}/requests`,
    '/api/projects',
  ];
  return Promise.all(addresses.map(async (address) => (await server.call('GET', address)).json));
}

const echoServer = () => startTestServer({ overrides: { runner: createEchoRunner().runner } });

/** Sends each request to a server with one conversation; each is refused, and nothing else happens. */
async function expectRefused(
  rows: readonly [request: string, body: unknown, code: ErrorCode, headers?: Record<string, string>][],
  given?: TestServer,
): Promise<void> {
  const server = given ?? (await echoServer());
  const id = await server.session({ title: 'A conversation' });
  await server.ask(id, 'hello');
  const before = await visible(server, id);
  for (const [request, body, code, headers] of rows) {
    const [method = '', address = ''] = request.split(' ');
    const answer = await server.call(method, address.replace(':id', id), body, headers);
    const what = `${request} ${String(JSON.stringify(body)).slice(0, 80)}`;
    expect([what, answer.status, answer.json?.code]).toEqual([what, CATALOGUE[code].status, code]);
    expect(answer.json.error).toMatch(/\S/);
    expect([what, await visible(server, id)]).toEqual([what, before]);
  }
  expect((await server.call('GET', '/health')).json.status).toBe('ok');
  expect((await server.ask(id, 'still there?')).message.content).toBe('echo: still there?');
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
}

it('[HT2] unknown fields are heard, not ignored', () =>
  expectRefused([
    ['POST /api/sessions', { titel: 'x' }, 'bad_request'],
    ['PATCH /api/sessions/:id', { title: 'y', tilte: 'x' }, 'bad_request'],
    ['PATCH /api/sessions/:id', { revision: 5 }, 'bad_request'],
    ['DELETE /api/sessions/:id', { stop: true }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', txt: 'x' }, 'bad_request'],
    ['POST /api/sessions/:id/interrupt', { gen: 1 }, 'bad_request'],
    ['POST /api/sessions/:id/rewind', { turns: 1, revision: 1, keep: 2 }, 'bad_request'],
    ['POST /api/sessions/:id/clear', { revison: 1 }, 'bad_request'],
    ['POST /api/sessions/:id/retry', { text: 'x' }, 'bad_request'],
    ['POST /api/sessions/:id/fork', { message: 'x' }, 'bad_request'],
    ['POST /api/sessions/:id/requests/r', { choice: 'once', value: 'x' }, 'bad_request'],
    ['POST /api/projects', { name: 'x', colour: '#ffffff' }, 'bad_request'],
    ['POST /api/auth/login', { tokn: 'x' }, 'bad_request'],
    ['POST /api/auth/logout', { everywhere: true }, 'bad_request'],
  ]));

it('[HT2] a refusal names the field that is wrong', async () => {
  const server = await startTestServer();
  const says = async (method: string, address: string, body?: unknown) =>
    (await server.call(method, address, body)).json.error;
  expect(await says('POST', '/api/sessions', { titel: 'x' })).toContain('"titel"');
  expect(await says('POST', '/api/sessions', { title: 5 })).toContain('"title"');
  expect(await says('GET', '/api/sessions?limit=abc')).toContain('"limit"');
  expect(await says('GET', '/api/sessions/a.b')).toContain('"id"');
});

it('[HT2] a value of another type is not converted', () =>
  expectRefused([
    ['POST /api/sessions', { title: 5 }, 'bad_request'],
    ['POST /api/sessions', { title: ['x'] }, 'bad_request'],
    ['POST /api/sessions', { model: true }, 'bad_request'],
    ['PATCH /api/sessions/:id', { pinned: 'true' }, 'bad_request'],
    ['PATCH /api/sessions/:id', { pinned: 1 }, 'bad_request'],
    ['PATCH /api/sessions/:id', { archived: null }, 'bad_request'],
    ['PATCH /api/sessions/:id', { draft: 5 }, 'bad_request'],
    ['PATCH /api/sessions/:id', { draft: null }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', {}, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 5 }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: null }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: ['x'] }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', attachments: 'a' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', mode: 'later' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 5 }, 'bad_request'],
    ['POST /api/sessions/:id/interrupt', { generation: '1' }, 'bad_request'],
    ['POST /api/sessions/:id/interrupt', { generation: 1.5 }, 'bad_request'],
    ['POST /api/sessions/:id/interrupt', { generation: -1 }, 'bad_request'],
    ['POST /api/sessions/:id/rewind', { turns: '1', revision: 1 }, 'bad_request'],
    ['POST /api/sessions/:id/rewind', { turns: 1.5, revision: 1 }, 'bad_request'],
    ['POST /api/sessions/:id/rewind', { to_message: 5, revision: 1 }, 'bad_request'],
    ['POST /api/sessions/:id/rewind', { turns: 1, revision: '1' }, 'bad_request'],
    ['POST /api/sessions/:id/clear', { revision: null }, 'bad_request'],
    ['POST /api/sessions/:id/retry', { request_id: 5 }, 'bad_request'],
    ['POST /api/sessions/:id/fork', { title: 5 }, 'bad_request'],
    ['POST /api/sessions/:id/fork', { at_message: null }, 'bad_request'],
    ['POST /api/sessions/:id/interrupt', { clear_queue: 'yes' }, 'bad_request'],
    ['POST /api/sessions/:id/requests/r', { choice: 'perhaps' }, 'bad_request'],
    ['POST /api/sessions/:id/requests/r', { answers: { q: 5 } }, 'bad_request'],
    ['POST /api/sessions/:id/requests/r', {}, 'bad_request'],
    ['POST /api/projects', { name: 5 }, 'bad_request'],
    ['POST /api/projects', { name: '' }, 'bad_request'],
    ['POST /api/projects', { name: '  ' }, 'bad_request'],
    ['POST /api/projects', { name: 'x', color: 'red' }, 'bad_request'],
    ['POST /api/projects', { name: 'x'.repeat(129) }, 'bad_request'],
  ]));

it('[HT2] a prompt without words and one over a mebibyte of UTF-8 are refused, at the exact byte', async () => {
  const server = await echoServer();
  await expectRefused(
    [
      ['POST /api/sessions/:id/prompts', { text: '' }, 'empty_prompt'],
      ['POST /api/sessions/:id/prompts', { text: ' \n\t\u00a0\u3000' }, 'empty_prompt'],
      ['POST /api/sessions/:id/prompts', { text: 'x'.repeat(1_048_577) }, 'too_large'],
      ['POST /api/sessions/:id/prompts', { text: `${'é'.repeat(524_288)}x` }, 'too_large'],
      // Each half becomes U+FFFD, three bytes.
      ['POST /api/sessions/:id/prompts', { text: '\ud800'.repeat(349_526) }, 'too_large'],
    ],
    server,
  );
  const id = await server.session();
  for (const text of ['x'.repeat(1_048_576), 'é'.repeat(524_288), `x${'\ud800'.repeat(349_525)}`]) {
    const { admission, message } = await server.ask(id, text);
    expect(admission.outcome).toBe('completed');
    expect(message.content).toBe(`echo: ${text.toWellFormed()}`);
  }
});

it('[HT2] modes that do not fit and attachments that are not there are said to be so', () =>
  expectRefused([
    ['POST /api/sessions/:id/prompts', { text: 'x', mode: 'steer', replaces: 'y' }, 'unsupported_mode'],
    ['POST /api/sessions/:id/prompts', { text: 'x', mode: 'interrupt', replaces: 'y' }, 'unsupported_mode'],
    ['POST /api/sessions/:id/prompts', { text: 'x', mode: 'shout' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', attachments: ['0'] }, 'unknown_attachment'],
  ]));

it('[HT2] request ids are visible ASCII, and the two names of one agree', () =>
  expectRefused([
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: '' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'a b' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'é' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'a\0' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'a\n' }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'x'.repeat(256) }, 'bad_request'],
    ['POST /api/sessions/:id/prompts', { text: 'x', request_id: 'a' }, 'bad_request', { 'idempotency-key': 'b' }],
    ['POST /api/sessions/:id/prompts', { text: 'x' }, 'bad_request', { 'idempotency-key': 'a b' }],
    ['POST /api/sessions', {}, 'bad_request', { 'idempotency-key': 'x'.repeat(256) }],
  ]));

const IDS = [
  'a%2Fb',
  '..',
  '%2e%2e',
  '..%2F..%2Fetc',
  'a.b',
  '%00',
  'a%00b',
  'x'.repeat(129),
  '-a',
  '_a',
  'a%20b',
  '%C3%A9',
  'a;b',
  '%F0%9F%92%A9',
  "a'--",
  'a%0Ab',
];

it('[HT2][SE1] ids that are no ids are refused on every route before anything is looked for', async () => {
  const server = await echoServer();
  const routes: [string, string, unknown][] = [
    ['GET', '/api/sessions/:id', undefined],
    ['PATCH', '/api/sessions/:id', { title: 'x' }],
    ['DELETE', '/api/sessions/:id', undefined],
    ['GET', '/api/sessions/:id/messages', undefined],
    ['POST', '/api/sessions/:id/prompts', { text: 'x' }],
    ['GET', '/api/sessions/:id/prompts', undefined],
    ['POST', '/api/sessions/:id/interrupt', {}],
    ['GET', '/api/sessions/:id/requests', undefined],
    ['GET', '/api/sessions/:id/events', undefined],
  ];
  for (const id of IDS) {
    for (const [method, route, body] of routes) {
      const answer = await rawRequest(server.url, {
        method,
        address: route.replace(':id', id),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      // `..` is no segment for every router: nothing is there, or it is no id.
      const codes = id.includes('.') && !id.includes('a') ? ['bad_request', 'not_found'] : ['bad_request'];
      expect([method, route, id, codes.includes(answer.json?.code)]).toEqual([method, route, id, true]);
    }
  }
  expect((await server.call('GET', `/api/sessions/${'x'.repeat(128)}`)).json.code).toBe('session_not_found');
  for (const long of ['x'.repeat(301), 'x'.repeat(5000)]) {
    expect((await server.call('GET', `/api/sessions/${long}`)).status).toBe(404);
    expect((await server.call('DELETE', `/api/sessions/x/prompts/${long}`)).json.code).toBe('not_found');
  }
  const id = await server.session();
  for (const admission of ['x', '0'.repeat(31), '0'.repeat(33), 'F'.repeat(32), '..', '%00']) {
    const answer = await rawRequest(server.url, {
      method: 'DELETE',
      address: `/api/sessions/${id}/prompts/${admission}`,
    });
    expect([400, 404]).toContain(answer.status);
    expect(answer.json.code).toMatch(/^(bad_request|not_found)$/);
  }
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(1);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT2] paths beside the page are found nowhere, and break nothing', async () => {
  const server = await startTestServer();
  const paths = [
    '//evil',
    '/%2e%2e/x',
    '/..%2f..%2fetc/passwd',
    '/%00',
    '/index.html%00.js',
    '/\\..\\..',
    '/docs/static/%00',
    '/docs/static/..%2f..%2fpackage.json',
    '/.env',
    '/vendor/',
  ];
  for (const address of paths) {
    const answer = await rawRequest(server.url, { address });
    expect([address, answer.status, answer.json?.code]).toEqual([address, 404, 'not_found']);
  }
  for (const address of ['/%', '/%zz', '/x%ff']) {
    expect((await rawRequest(server.url, { address })).json.code).toBe('bad_request');
  }
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT2] limits are whole numbers from 1 to 100,000, everywhere', () =>
  expectRefused(
    ['/api/sessions', '/api/sessions/:id/messages', '/api/sessions/:id/prompts', '/api/search?q=x'].flatMap((address) =>
      ['0', '-1', '1e9', '100001', '1.5', 'abc', '', 'NaN', 'Infinity', '-Infinity', '1e999', '0x', '5&limit=6'].map(
        (limit): [string, undefined, ErrorCode] => [
          `GET ${address}${address.includes('?') ? '&' : '?'}limit=${limit}`,
          undefined,
          'bad_request',
        ],
      ),
    ),
  ));

it('[HT2] the largest limit is served', async () => {
  const server = await startTestServer();
  const id = await server.session();
  for (const address of ['/api/sessions?', `/api/sessions/${id}/messages?`, '/api/search?q=x&']) {
    expect((await server.call('GET', `${address}limit=100000`)).status).toBe(200);
  }
});

it('[HT2] other query values that mean nothing are refused', () =>
  expectRefused([
    ['GET /api/sessions?archived=2', undefined, 'bad_request'],
    ['GET /api/sessions?archived=', undefined, 'bad_request'],
    ['GET /api/sessions/:id?messages=-1', undefined, 'bad_request'],
    ['GET /api/sessions/:id?messages=some', undefined, 'bad_request'],
    ['GET /api/sessions/:id?messages=Infinity', undefined, 'bad_request'],
    ['GET /api/sessions/:id/prompts?pending=yes', undefined, 'bad_request'],
    ['POST /api/sessions/:id/prompts?wait=2', { text: 'x' }, 'bad_request'],
    ['DELETE /api/sessions/:id?stop=yes', undefined, 'bad_request'],
    ['GET /api/search', undefined, 'bad_request'],
    [`GET /api/search?q=${'x'.repeat(1001)}`, undefined, 'bad_request'],
    [`GET /api/sessions?q=${'x'.repeat(501)}`, undefined, 'bad_request'],
    ['GET /api/events?session=a.b', undefined, 'bad_request'],
    [`GET /api/events?${'session=a&'.repeat(51)}`, undefined, 'bad_request'],
  ]));

it('[HT2] a cursor of the list is one that the list gave', () =>
  expectRefused(
    [
      'abc',
      '0',
      Buffer.from('null').toString('base64url'),
      Buffer.from('[]').toString('base64url'),
      Buffer.from('{"pinned":true}').toString('base64url'),
      Buffer.from('["true",1,"x"]').toString('base64url'),
      Buffer.from('[true,"1","x"]').toString('base64url'),
      '%00',
    ].map((cursor) => [`GET /api/sessions?cursor=${cursor}`, undefined, 'bad_request']),
  ));

it('[HT2] a message that is not in the session is no place to page from', async () => {
  const server = await echoServer();
  const other = await server.session();
  const { message } = await server.ask(other, 'elsewhere');
  await expectRefused(
    ['before', 'after'].flatMap((name): [string, undefined, ErrorCode][] => [
      [`GET /api/sessions/:id/messages?${name}=nothing`, undefined, 'unknown_message'],
      [`GET /api/sessions/:id/messages?${name}=`, undefined, 'unknown_message'],
      [`GET /api/sessions/:id/messages?${name}=%00`, undefined, 'unknown_message'],
      [`GET /api/sessions/:id/messages?${name}=${message.id}`, undefined, 'unknown_message'],
      [`GET /api/sessions/:id/messages?${name}=${'x'.repeat(201)}`, undefined, 'bad_request'],
    ]),
    server,
  );
});

it('[HT2] a revision that is none is refused, and one that passed is a conflict', () =>
  expectRefused([
    ['PATCH /api/sessions/:id', { title: 'x' }, 'bad_request', { 'if-match': 'abc' }],
    ['PATCH /api/sessions/:id', { title: 'x' }, 'bad_request', { 'if-match': '"1' }],
    ['PATCH /api/sessions/:id', { title: 'x' }, 'bad_request', { 'if-match': '"-1"' }],
    ['PATCH /api/sessions/:id', { title: 'x' }, 'revision_conflict', { 'if-match': '"1"' }],
    ['PATCH /api/sessions/:id', { title: 'x' }, 'revision_conflict', { 'if-match': '999999999999999' }],
  ]));

it('[HT2] what a field names must exist', async () => {
  const folder = await temporaryFolder();
  const file = path.join(folder, 'a-file');
  await writeFile(file, 'x');
  const fields: [object, ErrorCode][] = [
    [{ workspace: path.join(folder, 'missing') }, 'bad_workspace'],
    [{ workspace: file }, 'bad_workspace'],
    [{ workspace: 'relative' }, 'bad_workspace'],
    [{ workspace: './x' }, 'bad_workspace'],
    [{ workspace: '' }, 'bad_workspace'],
    [{ workspace: `${folder}\0` }, 'bad_workspace'],
    [{ workspace: `${folder}/\ud800` }, 'bad_workspace'],
    [{ workspace: `/${'x'.repeat(4000)}` }, 'bad_workspace'],
    [{ workspace: `/${'x'.repeat(5000)}` }, 'bad_request'],
    [{ model: 'nobody/nothing' }, 'unknown_model'],
    [{ model: 'nothing' }, 'unknown_model'],
    [{ model: '' }, 'unknown_model'],
    [{ model: '\ud800\0' }, 'unknown_model'],
    [{ project_id: 'nothing' }, 'unknown_project'],
    [{ project_id: '' }, 'unknown_project'],
    [{ project_id: '\ud800' }, 'unknown_project'],
    [{ title: 'x'.repeat(501) }, 'bad_request'],
  ];
  await expectRefused(
    fields.flatMap(([body, code]): [string, unknown, ErrorCode][] => [
      ['POST /api/sessions', body, code],
      // With a good field besides: all or nothing.
      ['PATCH /api/sessions/:id', { pinned: true, ...body }, code],
    ]),
  );
  const server = await startTestServer();
  const id = await server.session({ workspace: folder });
  expect((await server.call('GET', `/api/sessions/${id}`)).json.session.workspace).toBe(folder);
});

it('[HT5] halves of characters and NUL are stored and shown as U+FFFD, and the turn completes', async () => {
  const server = await echoServer();
  const bad = 'a\ud800b\0c\udc00';
  const good = 'a\ufffdb\ufffdc\ufffd';
  const project = (await server.call('POST', '/api/projects', { name: bad })).json.project;
  expect(project.name).toBe(good);
  const renamed = await server.call('PATCH', `/api/projects/${project.project_id}`, { name: `${bad}2` });
  expect(renamed.json.project.name).toBe(`${good}2`);

  const id = await server.session({ title: bad });
  const stream = await server.stream(`/api/sessions/${id}/events`);
  const { admission, message } = await server.ask(id, bad);
  expect(admission).toMatchObject({ status: 'terminal', outcome: 'completed', text: good });
  expect(message.content).toBe(`echo: ${good}`);
  expect((await server.messages(id)).map((row) => row.content)).toEqual([good, `echo: ${good}`]);
  const start = await stream.next((event) => event.type === 'run.start');
  expect(start.json.payload.input).toBe(good);

  await server.call('PATCH', `/api/sessions/${id}`, { title: `${bad}3`, draft: bad });
  const { session } = (await server.call('GET', `/api/sessions/${id}`)).json;
  expect(session).toMatchObject({ title: `${good}3`, draft: good });
  expect((await server.call('GET', '/api/sessions')).json.sessions[0].title).toBe(`${good}3`);

  // The same prompt again is the same prompt, as it was stored.
  const first = await server.prompt(id, bad, { request_id: 'k' });
  const again = await server.prompt(id, good, { request_id: 'k' });
  expect(again.admission.admission_id).toBe(first.admission.admission_id);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT5][DB4] a search for such text answers', async () => {
  const server = await echoServer();
  const id = await server.session();
  await server.ask(id, 'before\0after');
  for (const q of ['before%00after', '%ED%A0%80', '%EF%BF%BD', '%00', '%22', '%2A', 'a%20OR%20', '(', 'NEAR(', '-']) {
    expect([q, (await server.call('GET', `/api/search?q=${q}`)).status]).toEqual([q, 200]);
    expect([q, (await server.call('GET', `/api/sessions?q=${q}`)).status]).toEqual([q, 200]);
  }
  expect((await server.call('GET', '/api/search?q=before')).json.hits).toHaveLength(2);
});

/** One call of the interface, as its document describes it. */
interface Operation {
  method: string;
  address: string;
  query: string[];
  fields: string[] | null;
}

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as it is.
function operationsOf(document: any): Operation[] {
  const operations: Operation[] = [];
  for (const [address, methods] of Object.entries<Record<string, never>>(document.paths)) {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    for (const [method, operation] of Object.entries<any>(methods)) {
      const schema = operation.requestBody?.content?.['application/json']?.schema;
      const objects = schema ? (schema.anyOf ?? [schema]) : [];
      operations.push({
        method: method.toUpperCase(),
        address,
        query: (operation.parameters ?? [])
          .filter((parameter: { in: string }) => parameter.in === 'query')
          .map((parameter: { name: string }) => parameter.name),
        fields: schema
          ? objects.flatMap((object: { properties?: object }) => Object.keys(object.properties ?? {}))
          : null,
      });
    }
  }
  return operations;
}

/** Sends a request and leaves a stream as soon as it begins. */
async function send(
  url: string,
  method: string,
  body: string | null,
): Promise<Pick<Answer | RawAnswer, 'status' | 'json'>> {
  const leave = new AbortController();
  const response = await fetch(url, {
    method,
    signal: AbortSignal.any([leave.signal, AbortSignal.timeout(10_000)]),
    ...(body === null ? {} : { body, headers: { 'content-type': 'application/json' } }),
  });
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    leave.abort();
    return { status: response.status, json: null };
  }
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  return { status: response.status, json: isJson && text !== '' ? JSON.parse(text) : null };
}

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) });
const anyValue = fc.oneof(
  fc.jsonValue(),
  anyText,
  fc.constantFrom<unknown>(null, '', 0, -1, 1e308, true, [], {}, 'builtin', '/', 'queue', '1', 'x'.repeat(5000)),
);

it('[HT1, HT2] whatever is sent to any route of the document: never a 5xx, never a hang, always an error of our shape', async () => {
  const server = await echoServer();
  const known = await server.session();
  const { admission } = await server.ask(known, 'hello');
  const operations = operationsOf((await server.call('GET', '/api/openapi.json')).json);
  expect(operations.length).toBeGreaterThan(20);

  const pathValue = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(known, admission.admission_id, 'nobody', '..', '%00') },
    { weight: 1, arbitrary: anyText.map((text) => encodeURIComponent(text.toWellFormed())) },
  );
  const request = fc.constantFrom(...operations).chain((operation) =>
    fc.record({
      operation: fc.constant(operation),
      path: fc.array(pathValue, { minLength: 2, maxLength: 2 }),
      query: fc.dictionary(
        fc.constantFrom(...operation.query, 'other'),
        fc.oneof(anyText, fc.constantFrom('0', '1', '50', '1e999', known)),
        { maxKeys: 3 },
      ),
      body:
        operation.fields === null
          ? fc.constant(null)
          : fc.oneof(
              fc
                .dictionary(fc.constantFrom(...operation.fields, 'other', 'toString'), anyValue, { maxKeys: 4 })
                .map((value) => JSON.stringify(value)),
              fc.jsonValue().map((value) => JSON.stringify(value)),
              anyText.map((text) => text.toWellFormed()),
            ),
    }),
  );

  await fc.assert(
    fc.asyncProperty(request, async ({ operation, path: values, query, body }) => {
      let next = 0;
      const filled = operation.address.replaceAll(/\{\w+\}/g, () => values[next++ % values.length] ?? '');
      // The others need the session that is there.
      fc.pre(!(operation.method === 'DELETE' && filled === `/api/sessions/${known}`));
      const search = new URLSearchParams();
      for (const [key, value] of Object.entries(query)) search.append(key, value.toWellFormed());
      const answer = await send(`${server.url}${filled}?${search}`, operation.method, body);
      expect(answer.status).toBeLessThan(500);
      if (answer.status < 400) return;
      const { error, code } = answer.json;
      expect(error).toMatch(/\S/);
      expect(Object.keys(CATALOGUE)).toContain(code);
      expect(CATALOGUE[code as ErrorCode].status).toBe(answer.status);
    }),
    { numRuns: 400 },
  );
  expect((await server.call('GET', '/health')).json.status).toBe('ok');
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  const id = await server.session();
  expect((await server.ask(id, 'and now?')).message.content).toBe('echo: and now?');
}, 60_000);
