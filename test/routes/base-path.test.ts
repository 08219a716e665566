/** A server under a sub-path: everything is there and nothing beside it. */
import { expect, it } from 'vitest';
import { rawRequest } from '../support/raw.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

const echo = () => createEchoRunner().runner;

it.each([
  ['/x', '/x'],
  ['/x/', '/x'],
  ['/deep/er_path.1', '/deep/er_path.1'],
])('[HT10] a conversation is held under the base path %s', async (given, path) => {
  const server = await startTestServer({
    config: `server: {base_path: ${given}}`,
    overrides: { runner: echo() },
  });
  expect(server.url.endsWith(path)).toBe(true);
  expect((await server.call('GET', '/health')).json.status).toBe('ok');
  const id = await server.session({ title: 'x' });
  const events = await server.stream(`/api/sessions/${id}/events`);
  const list = await server.stream(`/api/events?session=${id}`);
  const stream = await server.stream(`/api/sessions/${id}/prompts`, { method: 'POST', body: { text: 'hello' } });
  await stream.ended;
  expect(stream.events.at(-1)?.json.payload.text).toBe('echo: hello');
  await events.next((event) => event.type === 'message.complete');
  await list.next((event) => event.type === 'message.complete');
  expect(await server.messages(id)).toHaveLength(2);
  const wrong = await server.call('PUT', '/api/sessions');
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
});

it('[HT10] every documented route is under the path, and none beside it', async () => {
  const server = await startTestServer({ config: 'server: {base_path: /x}' });
  const root = new URL(server.url).origin;
  const document = (await server.call('GET', '/api/openapi.json')).json;
  const paths = Object.keys(document.paths);
  expect(paths.length).toBeGreaterThan(15);
  for (const path of paths) {
    expect(path).toMatch(/^\/x\//);
    for (const method of Object.keys(document.paths[path])) {
      const beside = path.slice('/x'.length).replaceAll(/\{\w+\}/g, 'a');
      const answer = await rawRequest(root, { method: method.toUpperCase(), address: beside });
      expect([method, beside, answer.status, answer.json?.code]).toEqual([method, beside, 404, 'not_found']);
    }
  }
  for (const address of ['/', '/health', '/xx/health', '/X/health', '/x/x/health', '/xhealth']) {
    expect([address, (await rawRequest(root, { address })).status]).toEqual([address, 404]);
  }
});

it('[HT10] the path without its slash leads to the page, whose URLs are relative', async () => {
  const server = await startTestServer({ config: 'server: {base_path: /x}', env: { TURNKEEP_TOKEN: 'long-enough' } });
  const bare = await fetch(server.url, { redirect: 'manual' });
  expect([bare.status, bare.headers.get('location')]).toEqual([302, '/x/']);
  const page = await fetch(`${server.url}/`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const html = await page.text();
  const urls = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1]!);
  for (const url of urls) {
    expect(url).not.toMatch(/^(\/|[a-z]+:)/);
    expect([url, (await fetch(new URL(url, `${server.url}/`))).status]).toEqual([url, 200]);
  }
});

it('[HT10] the cookie of a login belongs to the path', async () => {
  const server = await startTestServer({ config: 'server: {base_path: /x}', env: { TURNKEEP_TOKEN: 'long-enough' } });
  const login = await server.call('POST', '/api/auth/login', { token: 'long-enough' });
  const cookie = login.headers.get('set-cookie') ?? '';
  expect(cookie).toContain('; Path=/x/;');
  const answer = await server.call('GET', '/api/sessions', undefined, { cookie: cookie.split(';')[0]! });
  expect(answer.status).toBe(200);
  const logout = await server.call('POST', '/api/auth/logout');
  expect(logout.headers.get('set-cookie')).toContain('; Path=/x/; Max-Age=0;');
});

it('[HT10] /docs works under the path, and behind a proxy that strips one', async () => {
  const server = await startTestServer({ config: 'server: {base_path: /x}' });
  const redirect = await fetch(`${server.url}/docs`, { redirect: 'manual' });
  // Relative to the address that the browser shows, whatever a proxy made of it.
  expect(redirect.headers.get('location')).toBe('docs/');
  const page = await fetch(`${server.url}/docs`);
  expect([page.status, page.url]).toEqual([200, `${server.url}/docs/`]);
  for (const match of (await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)) {
    expect(match[1]).toMatch(/^\.\//);
    expect((await fetch(new URL(match[1]!, page.url))).status).toBe(200);
  }
  const document = await fetch(new URL('json', page.url));
  expect(Object.keys(((await document.json()) as { paths: object }).paths)).toContain('/x/api/sessions');
});
