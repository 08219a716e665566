/**
 * Attacks as requests: credentials in the wrong place, forged headers, names that are paths, files and documents that
 * unpack to much. Those that need a load are in test/long/attacks.test.ts.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { deflateRawSync, gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { DOCUMENT_FORMAT, DOCUMENT_VERSION } from '../../server/core/session-document.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { rawRequest } from '../support/raw.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { attachmentsOf, upload, uploaded } from '../support/uploads.ts';

const TOKEN = 'a-token-of-tests';
const BEARER = { authorization: `Bearer ${TOKEN}` };

const guarded = (config = '') =>
  startTestServer({ env: { TURNKEEP_TOKEN: TOKEN }, config, overrides: { runner: createEchoRunner().runner } });

/** All calls of the document: method, address with `{names}`, and whether anybody may. */
async function documented(server: TestServer) {
  const { paths } = (await server.call('GET', '/api/openapi.json', undefined, BEARER)).json;
  return Object.entries<Record<string, { security?: unknown[] }>>(paths).flatMap(([address, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      address,
      open: operation.security?.length === 0,
    })),
  );
}

const filled = (address: string, value = 'nobody'): string => address.replaceAll(/\{\w+\}/g, value);

/** Everything that the state DB holds. */
function dataOf(server: TestServer): Record<string, unknown[]> {
  const db = new Database(path.join(server.home, 'state.db'), { readonly: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").pluck().all();
    return Object.fromEntries((tables as string[]).map((name) => [name, db.prepare(`SELECT * FROM "${name}"`).all()]));
  } finally {
    db.close();
  }
}

it('[SE2] a token anywhere but in its header is none, on every route', async () => {
  const server = await guarded();
  const wrong: [what: string, query: string, headers: Record<string, string>, body: string][] = [
    ['in the query', `?token=${TOKEN}`, {}, ''],
    ['in the query, as OAuth has it', `?access_token=${TOKEN}&authorization=Bearer%20${TOKEN}`, {}, ''],
    [
      'in a cookie',
      '',
      {
        cookie: `turnkeep_login_${new URL(server.url).port}=${TOKEN}; token=${TOKEN}; authorization=Bearer ${TOKEN}`,
      },
      '',
    ],
    ['as Basic', '', { authorization: `Basic ${Buffer.from(`owner:${TOKEN}`).toString('base64')}` }, ''],
    [
      'in other headers',
      '',
      { 'x-api-key': TOKEN, 'x-auth-token': TOKEN, 'proxy-authorization': `Bearer ${TOKEN}` },
      '',
    ],
    ['in the body', '', {}, JSON.stringify({ token: TOKEN, authorization: `Bearer ${TOKEN}` })],
    ['behind another one', '', { authorization: `Bearer tk_none, Bearer ${TOKEN}` }, ''],
  ];
  for (const { method, address, open } of await documented(server)) {
    // The gateway alone takes it in its query, for a browser cannot send headers with an upgrade.
    if (open || address === '/api/ws') continue;
    for (const [what, query, headers, body] of wrong) {
      if (body !== '' && method === 'GET') continue;
      const answer = await rawRequest(server.url, { method, address: filled(address) + query, headers, body });
      expect([method, address, what, answer.status]).toEqual([method, address, what, 401]);
    }
  }
  const notThere: Record<string, string>[] = [
    { cookie: `token=${TOKEN}` },
    { 'sec-websocket-protocol': `bearer, ${TOKEN}` },
  ];
  for (const headers of notThere) {
    await expect(connectGateway(server.url, { headers })).rejects.toThrow('401');
  }
  await (await connectGateway(server.url, { token: TOKEN })).close();
});

it('[LI4][SE3] headers that a proxy would set mean nothing from anybody else', async () => {
  const server = await guarded();
  const forged: Record<string, string>[] = [
    { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', 'x-client-ip': '127.0.0.1' },
    { forwarded: 'for=127.0.0.1;host=localhost;proto=https' },
    { 'x-forwarded-user': 'admin', 'x-remote-user': 'admin', 'remote-user': 'admin' },
    { 'x-original-url': '/health', 'x-rewrite-url': '/health' },
    { 'x-http-method-override': 'GET', 'x-method-override': 'GET' },
  ];
  for (const headers of forged) {
    const { status } = await rawRequest(server.url, { method: 'POST', address: '/api/sessions', headers, body: '{}' });
    expect([headers, status]).toEqual([headers, 401]);
  }
  // The Host is the one that is sent, whatever else calls itself that.
  for (const name of ['x-forwarded-host', 'x-host', 'x-original-host', 'x-forwarded-server']) {
    const foreign = { ...BEARER, host: 'evil.example', [name]: 'localhost' };
    expect((await rawRequest(server.url, { address: '/api/sessions', headers: foreign })).json.code).toBe(
      'forbidden_host',
    );
    const own = await rawRequest(server.url, {
      address: '/api/sessions',
      headers: { ...BEARER, [name]: 'evil.example' },
    });
    expect(own.status).toBe(200);
    expect(JSON.stringify([own.headers, own.body])).not.toContain('evil.example');
  }
  // Nobody becomes another address, so the sixth wrong one waits; and no cookie claims to be of https.
  const asked = (token: string, n: number) =>
    server.call(
      'POST',
      '/api/auth/login',
      { token },
      {
        'x-forwarded-for': `203.0.113.${n}`,
        forwarded: `for=203.0.113.${n}`,
        'x-real-ip': `203.0.113.${n}`,
        'x-forwarded-proto': 'https',
      },
    );
  expect((await asked(TOKEN, 0)).headers.get('set-cookie')).not.toMatch(/Secure|__Host-/);
  for (let n = 1; n <= 5; n += 1) expect((await asked('wrong', n)).status).toBe(401);
  expect((await asked(TOKEN, 6)).json.code).toBe('too_many_attempts');
});

/** Ways out of a folder, as they stand in an address. */
const WAYS_OUT = [
  '..',
  '../secret.txt',
  '%2e%2e',
  '%2e%2e%2fsecret.txt',
  '%2e%2e%5csecret.txt',
  '..%2f..%2f..%2f..%2fetc%2fpasswd',
  '..%252f..%252fsecret.txt',
  '%252e%252e%252fsecret.txt',
  '%c0%ae%c0%ae%c0%afsecret.txt',
  '..%c0%afsecret.txt',
  '....%2f%2fsecret.txt',
  '%2fetc%2fpasswd',
  'file:%2f%2f%2fetc%2fpasswd',
  'x%00.json',
  '%00',
  '.',
  '~',
  'state.db',
  'x%2f..%2f..%2fsecret.txt',
  'C:%5cwindows',
  '%EF%BC%8E%EF%BC%8E%EF%BC%8Fsecret.txt',
  `${'a'.repeat(129)}`,
  'a'.repeat(5_000),
  '..%2f'.repeat(800),
];

it('[SE1][LI4] no parameter of any route leads out of the home, however it is written', async () => {
  const around = await temporaryFolder();
  const home = path.join(around, 'home');
  await mkdir(home);
  await writeFile(path.join(around, 'secret.txt'), 'the canary');
  const server = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  await server.ask(id, 'hello');
  await uploaded(server, id, 'a.txt', 'text');
  const before = dataOf(server);
  for (const { method, address } of await documented(server)) {
    const names = [...address.matchAll(/\{\w+\}/g)].map(([name]) => name);
    for (const name of names) {
      // A session that is there in front of the other parameters, for what looks at it first.
      const others = name === '{id}' ? 'nobody' : id;
      for (const way of WAYS_OUT) {
        const where = filled(address.replace(name, way), others);
        const body = method === 'GET' || method === 'DELETE' ? '' : '{}';
        const answer = await rawRequest(server.url, { method, address: where, body });
        // A session is not changed by an empty change, and `.` and `..` may be the address of another route.
        expect([method, where.slice(0, 200), answer.status < 500, answer.body.includes('the canary')]).toEqual([
          method,
          where.slice(0, 200),
          true,
          false,
        ]);
        expect(answer.body).not.toMatch(/root:x?:0/);
      }
    }
  }
  expect(dataOf(server)).toEqual(before);
  expect((await readdir(around)).sort()).toEqual(['home', 'secret.txt']);
  expect(await readFile(path.join(around, 'secret.txt'), 'utf8')).toBe('the canary');
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
}, 120_000);

it('[SE1][AT3][LI4] no name that somebody gives something leads out of the home', async () => {
  const around = await temporaryFolder();
  const home = path.join(around, 'home');
  await mkdir(home);
  const server = await startTestServer({ home, overrides: { runner: createEchoRunner().runner } });
  const names = WAYS_OUT.map((way) => {
    try {
      return decodeURIComponent(way);
    } catch {
      return way;
    }
  });
  const id = await server.session();
  for (const name of names) {
    const answers = [
      await server.call('POST', '/api/sessions', { title: name.slice(0, 500) }),
      await server.call('POST', '/api/sessions', { project_id: name }),
      await server.call('POST', '/api/projects', { name: name.slice(0, 100) }),
      await upload(server, id, name, 'text'),
      await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'x', attachments: [name] }),
      await server.call('POST', '/api/sessions/import', {
        format: DOCUMENT_FORMAT,
        version: DOCUMENT_VERSION,
        session: { title: name.slice(0, 500) },
        messages: [
          {
            id: name.slice(0, 200),
            role: 'user',
            content: 'x',
            timestamp: 1,
            attachments: [name],
            run_id: name.slice(0, 200),
          },
        ],
      }),
    ];
    expect([name.slice(0, 50), answers.map(({ status }) => status < 500)]).toEqual([
      name.slice(0, 50),
      answers.map(() => true),
    ]);
  }
  for (const { name } of (await server.call('GET', attachmentsOf(id))).json.attachments) {
    expect(name).not.toMatch(/[/\\\0]|^\.{1,2}$/);
  }
  const files = await readdir(around, { recursive: true });
  expect(files.filter((file) => file !== 'home' && !file.startsWith(`home${path.sep}`))).toEqual([]);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
}, 60_000);

/** A picture that says it has 65,535 times 65,535 dots, and as much as fits of one. */
const hugePicture = (): Buffer => {
  const head = Buffer.from('89504e470d0a1a0a0000000d494844520000ffff0000ffff0802000000', 'hex');
  return Buffer.concat([head, Buffer.alloc(4), deflateRawSync(Buffer.alloc(8_000_000))]);
};

it('[LI4][AT1] files that unpack to much are kept as they are, and nobody unpacks them', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  // A thousand times larger than it is, inside of which is another one.
  const bomb = gzipSync(gzipSync(Buffer.alloc(64_000_000)));
  const before = process.memoryUsage().rss;
  const files: [name: string, bytes: Buffer, mime: string][] = [
    ['bomb.gz', bomb, 'application/gzip'],
    ['bomb.zip', Buffer.concat([Buffer.from('504b0304', 'hex'), bomb]), 'application/zip'],
    ['huge.png', hugePicture(), 'image/png'],
  ];
  for (const [name, bytes, mime] of files) {
    const { json } = await upload(server, id, name, bytes);
    expect(json.attachment).toMatchObject({ name, mime, size: bytes.length });
    await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, {
      text: 'look',
      attachments: [json.attachment.id],
    });
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
});

it('[LI4][HT2] packed, deep and endless documents are refused whole', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const before = process.memoryUsage().rss;
  const whole = { format: DOCUMENT_FORMAT, version: DOCUMENT_VERSION, session: {}, messages: [] };
  const deep = '['.repeat(200_000) + ']'.repeat(200_000);
  const message = JSON.stringify({ id: 'x', role: 'user', content: '', timestamp: 1 });
  const bodies: [what: string, body: string | Buffer, headers: Record<string, string>][] = [
    [
      'packed',
      gzipSync(JSON.stringify({ ...whole, session: { title: ' '.repeat(50_000_000) } })),
      { 'content-encoding': 'gzip' },
    ],
    ['deep', deep, {}],
    ['deep inside', JSON.stringify(whole).replace('"messages":[]', `"messages":${deep}`), {}],
    [
      'of too many messages',
      JSON.stringify(whole).replace('"messages":[]', `"messages":[${`${message},`.repeat(100_000)}${message}]`),
      {},
    ],
  ];
  for (const [what, body, headers] of bodies) {
    const answer = await rawRequest(server.url, { method: 'POST', address: '/api/sessions/import', headers, body });
    expect([what, [400, 413, 415, 422].includes(answer.status), answer.json?.code]).toEqual([
      what,
      true,
      expect.any(String),
    ]);
  }
  expect((await server.call('GET', '/api/sessions')).json.total).toBe(0);
  expect(process.memoryUsage().rss - before).toBeLessThan(500_000_000);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});

it('[HT12] no GET and no HEAD changes what is stored', async () => {
  const server = await guarded();
  const { session } = (await server.call('POST', '/api/sessions', { title: 'x' }, BEARER)).json;
  const id = session.session_id;
  await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'hello' }, BEARER);
  await server.call('PATCH', `/api/sessions/${id}`, { draft: 'unsent' }, BEARER);
  const reads = (await documented(server)).filter(({ method }) => method === 'GET').map(({ address }) => address);
  expect(reads.length).toBeGreaterThan(20);
  const before = dataOf(server);
  for (const address of [...reads, '/', '/docs/', '/api/openapi.json', '/api/nothing']) {
    for (const query of ['', `?stop=1&archived=1&title=y&_method=DELETE&text=x&cursor=0`]) {
      for (const method of ['GET', 'HEAD']) {
        const where = `${server.url}${filled(address, id)}${query}`;
        const leave = new AbortController();
        const answer = await fetch(where, { method, headers: BEARER, signal: leave.signal });
        expect([method, where, answer.status < 500]).toEqual([method, where, true]);
        if (answer.headers.get('content-type')?.startsWith('text/event-stream')) leave.abort();
        else await answer.arrayBuffer();
      }
    }
  }
  expect(dataOf(server)).toEqual(before);
});
