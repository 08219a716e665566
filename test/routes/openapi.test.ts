/** The published document: valid, complete, true; and the page to try it at. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as it is.
type Document = any;

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace'];

const documentOf = async (server: TestServer): Promise<Document> =>
  (await server.call('GET', '/api/openapi.json')).json;

/** All operations as `[name, path, operation]`. */
const operationsOf = (document: Document): [name: string, path: string, operation: Document][] =>
  Object.entries<Document>(document.paths).flatMap(([path, item]) =>
    Object.entries<Document>(item).map(([method, operation]): [string, string, Document] => [
      `${method.toUpperCase()} ${path}`,
      path,
      operation,
    ]),
  );

it('[HT8] the document is OpenAPI 3.1: every path, parameter, body and answer has its shape', async () => {
  const server = await startTestServer();
  const document = await documentOf(server);
  expect(document.openapi).toBe('3.1.0');
  expect(document.info).toMatchObject({ title: 'Turnkeep', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  const ajv = new Ajv2020({ strict: false });
  for (const [path, item] of Object.entries<Document>(document.paths)) {
    expect(path).toMatch(/^\//);
    expect(Object.keys(item).filter((key) => !METHODS.includes(key))).toEqual([]);
  }
  for (const [name, path, operation] of operationsOf(document)) {
    expect([name, operation.summary]).toEqual([name, expect.stringMatching(/\S/)]);
    const parameters: Document[] = operation.parameters ?? [];
    const inPath = parameters.filter((parameter) => parameter.in === 'path');
    expect([name, inPath.map((parameter) => parameter.name).sort()]).toEqual([
      name,
      [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort(),
    ]);
    for (const parameter of parameters) {
      expect(['path', 'query', 'header']).toContain(parameter.in);
      expect(parameter.in !== 'path' || parameter.required === true).toBe(true);
      // What has a default may be left out.
      expect([name, parameter.name, parameter.required && 'default' in parameter.schema]).toEqual([
        name,
        parameter.name,
        false,
      ]);
      ajv.compile(parameter.schema);
    }
    expect(new Set(parameters.map((parameter) => `${parameter.in} ${parameter.name}`)).size).toBe(parameters.length);
    for (const media of Object.values<Document>(operation.requestBody?.content ?? {})) ajv.compile(media.schema);
    expect(Object.keys(operation.responses).length).toBeGreaterThan(0);
    for (const [status, answer] of Object.entries<Document>(operation.responses)) {
      expect([name, status, answer.description]).toEqual([name, status, expect.any(String)]);
      expect(status).toMatch(/^[2-5]\d\d$/);
      for (const [type, media] of Object.entries<Document>(answer.content ?? {})) {
        ajv.compile(media.schema);
        if (Number(status) >= 400) {
          expect([name, status, type]).toEqual([name, status, 'application/json']);
          expect(media.schema.required).toEqual(['error', 'code']);
        }
      }
    }
    for (const scheme of (operation.security ?? document.security) as object[]) {
      for (const named of Object.keys(scheme)) expect(document.components.securitySchemes).toHaveProperty(named);
    }
  }
  expect(JSON.stringify(document)).not.toContain('"$ref":"#/definitions');
});

/** The interface as it is promised. */
const PROMISED = [
  'DELETE /api/projects/{id}',
  'DELETE /api/sessions/{id}',
  'DELETE /api/sessions/{id}/prompts/{admission_id}',
  'GET /api/auth/status',
  'GET /api/events',
  'GET /api/models',
  'GET /api/projects',
  'GET /api/search',
  'GET /api/sessions',
  'GET /api/sessions/{id}',
  'GET /api/sessions/{id}/events',
  'GET /api/sessions/{id}/export',
  'GET /api/sessions/{id}/messages',
  'GET /api/sessions/{id}/prompts',
  'GET /api/sessions/{id}/requests',
  'GET /health',
  'GET /ready',
  'PATCH /api/projects/{id}',
  'PATCH /api/sessions/{id}',
  'POST /api/auth/login',
  'POST /api/auth/logout',
  'POST /api/projects',
  'POST /api/sessions',
  'POST /api/sessions/import',
  'POST /api/sessions/{id}/clear',
  'POST /api/sessions/{id}/fork',
  'POST /api/sessions/{id}/interrupt',
  'POST /api/sessions/{id}/prompts',
  'POST /api/sessions/{id}/prompts/{admission_id}/resolve',
  'POST /api/sessions/{id}/requests/{request_id}',
  'POST /api/sessions/{id}/retry',
  'POST /api/sessions/{id}/rewind',
];

it('[HT8] the document has the whole interface', async () => {
  const names = operationsOf(await documentOf(await startTestServer())).map(([name]) => name);
  expect(PROMISED.filter((name) => !names.includes(name))).toEqual([]);
});

it('[HT8] every route that answers under /api is in the document', async () => {
  const server = await startTestServer();
  const names = operationsOf(await documentOf(server)).map(([name]) => name);
  // One line for each node of the router's tree: depth by its drawing, text, methods.
  const tree = server.app.server.printRoutes({ includeHooks: false, commonPrefix: false });
  const parents: string[] = [];
  const missing: string[] = [];
  for (const line of tree.split('\n')) {
    const match = /^([│ ├└─]*)(\S+)(?: \(([A-Z, ]+)\))?$/.exec(line);
    if (!match) continue;
    const depth = match[1]!.length / 4;
    parents.length = depth;
    parents[depth] = match[2]!;
    const address = parents
      .join('')
      .replaceAll(/:(\w+)/g, '{$1}')
      .replace(/(.)\/$/, '$1');
    for (const method of match[3]?.split(', ') ?? []) {
      if (!address.startsWith('/api/') || names.includes(`${method} ${address}`)) continue;
      if (await routeIsOurs(server, method, address)) missing.push(`${method} ${address}`);
    }
  }
  // The document itself is not in the document.
  expect(missing).toEqual(['GET /api/openapi.json']);
});

/** Whether a route does something, other than saying 405; HEAD goes with its GET. */
async function routeIsOurs(server: TestServer, method: string, address: string): Promise<boolean> {
  if (method === 'HEAD' || method === 'TRACE') return false;
  const filled = address.replaceAll('{id}', 'nobody').replaceAll(/\{\w+\}/g, '0'.repeat(32));
  const leave = new AbortController();
  const answer = await fetch(`${server.url}${filled}`, { method, signal: leave.signal });
  leave.abort();
  return answer.status !== 405;
}

it('[HT8] answers have the shape that the document states', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const document = await documentOf(server);
  const ajv = new Ajv2020({ strict: false });
  const calls: [string, string, string, unknown?][] = [];
  const project = (await server.call('POST', '/api/projects', { name: 'x' })).json.project;
  const id = await server.session({ title: 'x', project_id: project.project_id });
  const { admission } = await server.ask(id, 'hello');
  calls.push(
    ['POST', '/api/sessions', '/api/sessions', {}],
    ['GET', '/api/sessions', '/api/sessions'],
    ['GET', '/api/sessions/{id}', `/api/sessions/${id}?messages=all`],
    ['PATCH', '/api/sessions/{id}', `/api/sessions/${id}`, { pinned: true }],
    ['GET', '/api/sessions/{id}/messages', `/api/sessions/${id}/messages`],
    ['POST', '/api/sessions/{id}/prompts', `/api/sessions/${id}/prompts`, { text: 'x' }],
    ['POST', '/api/sessions/{id}/prompts', `/api/sessions/${id}/prompts?wait=1`, { text: 'x' }],
    ['GET', '/api/sessions/{id}/prompts', `/api/sessions/${id}/prompts`],
    ['DELETE', '/api/sessions/{id}/prompts/{admission_id}', `/api/sessions/${id}/prompts/${admission.admission_id}`],
    ['POST', '/api/sessions/{id}/interrupt', `/api/sessions/${id}/interrupt`, {}],
    ['GET', '/api/sessions/{id}/requests', `/api/sessions/${id}/requests`],
    ['GET', '/api/search', '/api/search?q=hello'],
    ['GET', '/api/projects', '/api/projects'],
    ['GET', '/api/models', '/api/models'],
    ['GET', '/api/folders', '/api/folders'],
    ['GET', '/api/folders', '/api/folders?path=nowhere'],
    ['GET', '/api/auth/status', '/api/auth/status'],
    ['GET', '/health', '/health'],
    ['GET', '/ready', '/ready'],
    ['GET', '/api/sessions/{id}', '/api/sessions/nobody'],
    ['POST', '/api/sessions', '/api/sessions', { model: 'no/such' }],
  );
  for (const [method, path, address, body] of calls) {
    const answer = await server.call(method, address, body);
    const stated = document.paths[path][method.toLowerCase()].responses[answer.status];
    expect([method, address, answer.status, stated !== undefined]).toEqual([method, address, answer.status, true]);
    const fits = ajv.compile(stated.content['application/json'].schema);
    fits(answer.json);
    expect([method, address, fits.errors]).toEqual([method, address, null]);
  }
});

it('[HT8] /docs is a page that needs nothing from elsewhere', async () => {
  const server = await startTestServer();
  for (const page of ['/docs', '/docs/']) {
    const answer = await fetch(`${server.url}${page}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'self'");
    expect(policy).not.toMatch(/https?:|unsafe-eval|script-src[^;]*unsafe-inline/);
    const html = await answer.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      expect(asset).toMatch(/^\.\//);
      const url = new URL(asset, answer.url);
      const loaded = await fetch(url);
      expect([asset, loaded.status]).toEqual([asset, 200]);
      expect((await loaded.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
    const initializer = await (await fetch(new URL('static/swagger-initializer.js', `${server.url}/docs/`))).text();
    const json = /resolveUrl\('([^']+)'\)/.exec(initializer)?.[1] ?? './json';
    expect((await fetch(new URL(json, `${server.url}/docs/`))).status).toBe(200);
  }
});
