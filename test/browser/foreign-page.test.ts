/** What a page of a stranger can do in the browser of somebody who is logged in: nothing, and it learns nothing. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { browserMissing, createBrowser, type OpenPage } from '../support/browser.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const browser = createBrowser();
const PASSWORD = 'a long enough password';

/** A web server of a stranger, on a port of its own. @returns its port */
async function startStranger(): Promise<number> {
  const stranger = http.createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>A stranger</title><p>Look at my cats');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    stranger.closeAllConnections();
    stranger.close();
  });
  return (stranger.address() as AddressInfo).port;
}

/** A server with a conversation that holds a secret, and a browser that is logged in to it. */
async function loggedIn() {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const made = await server.call('POST', '/api/auth/password', { password: PASSWORD });
  const owner = { cookie: made.headers.get('set-cookie')!.split(';')[0]! };
  const { json } = await server.call('POST', '/api/sessions', { title: 'my secret plans' }, owner);
  const page = await browser.open(server.url);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.connection[data-state="live"]').waitFor();
  return { server, owner, page, sessionId: json.session.session_id as string };
}

/** Everything that a stranger may want to change. */
async function stateOf(server: TestServer, owner: Record<string, string>, sessionId: string) {
  const addresses = [
    'sessions',
    `sessions/${sessionId}/messages`,
    'settings',
    'projects',
    'auth/logins',
    'auth/tokens',
  ];
  return Promise.all(addresses.map(async (one) => (await server.call('GET', `/api/${one}`, undefined, owner)).text));
}

/** Ways of reading, each with what came of it, as a script of a page. It knows ids that it should not. */
const READS = `async (base, id) => {
  const fetched = (path, options) => fetch(base + path, { credentials: 'include', ...options })
    .then(async (answer) => answer.type + ' ' + (await answer.text()).slice(0, 60), () => 'failed');
  const element = (name, fields) => new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), fields);
    made.onload = () => resolve('loaded');
    made.onerror = () => resolve('failed');
    document.body.append(made);
  });
  const stream = () => new Promise((resolve) => {
    const source = new EventSource(base + '/api/events', { withCredentials: true });
    const end = (word) => { source.close(); resolve(word); };
    source.addEventListener('sessions.changed', () => end('read'));
    source.onmessage = () => end('read');
    source.onerror = () => end('failed');
  });
  const socket = () => new Promise((resolve) => {
    const made = new WebSocket(base.replace('http', 'ws') + '/api/ws');
    made.onopen = () => { made.close(); resolve('open'); };
    made.onerror = () => resolve('failed');
  });
  return {
    fetch: await fetched('/api/sessions', {}),
    opaque: await fetched('/api/sessions', { mode: 'no-cors' }),
    exported: await fetched('/api/sessions/' + id + '/export', {}),
    stream: await stream(),
    socket: await socket(),
    image: await element('img', { src: base + '/favicon.svg' }),
    script: await element('script', { src: base + '/api/sessions' }),
    style: await element('link', { rel: 'stylesheet', href: base + '/api/sessions' }),
  };
}`;

/** Ways of changing something. Resolves when all were tried; what came of them the server knows. */
const CHANGES = `async (base, id) => {
  const tries = [];
  const send = (method, path, body, type) => tries.push(...['no-cors', 'cors'].map((mode) =>
    fetch(base + path, { method, body, mode, credentials: 'include', ...(type && { headers: { 'content-type': type } }) }).catch(() => {})));
  const hello = JSON.stringify({ text: 'rm -rf' });
  for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded', null]) {
    send('POST', '/api/sessions', '{}', type);
    send('POST', '/api/sessions/' + id + '/prompts', hello, type);
    send('POST', '/api/auth/logout', '{}', type);
    send('POST', '/api/auth/tokens', '{"name":"mine","scope":"admin"}', type);
  }
  send('POST', '/api/sessions');
  send('POST', '/api/auth/logout');
  send('DELETE', '/api/sessions/' + id + '?stop=1');
  send('PATCH', '/api/settings', '{"busy_input_mode":"interrupt"}', 'application/json');
  const upload = new FormData();
  upload.append('file', new Blob(['x']), 'x.txt');
  send('POST', '/api/sessions/' + id + '/attachments', upload);
  tries.push(Promise.resolve(navigator.sendBeacon(base + '/api/sessions', '{}')));
  const submit = (path, name, value) => tries.push(new Promise((resolve) => {
    const frame = Object.assign(document.createElement('iframe'), { name: 'f' + Math.random() });
    const form = Object.assign(document.createElement('form'), { method: 'post', action: base + path, enctype: 'text/plain', target: frame.name });
    form.append(Object.assign(document.createElement('input'), { name, value }));
    document.body.append(frame, form);
    form.submit();
    frame.onload = resolve;
  }));
  submit('/api/sessions', '{"title":"', '"}');
  submit('/api/sessions/' + id + '/prompts', '{"text":"rm', '"}');
  submit('/api/auth/login', '{"password":"', '"}');
  submit('/api/auth/logout', '{"a":"', '"}');
  const image = (path) => tries.push(new Promise((resolve) => {
    const made = Object.assign(new Image(), { src: base + path });
    made.onload = made.onerror = resolve;
  }));
  for (const path of ['/api/auth/logout', '/api/sessions', '/api/sessions/' + id + '/interrupt', '/api/sessions/' + id + '/export']) image(path);
  // Of a frame without an origin: it says "null".
  tries.push(new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.sandbox = 'allow-scripts allow-forms';
    frame.srcdoc = '<script>fetch("' + base + '/api/sessions", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" }).finally(() => parent.postMessage("done", "*"))<' + '/script>';
    addEventListener('message', resolve, { once: true });
    document.body.append(frame);
  }));
  await Promise.race([Promise.all(tries), new Promise((resolve) => setTimeout(resolve, 8000))]);
  return tries.length;
}`;

const run = <T>(page: OpenPage, script: string, url: string, sessionId: string): Promise<T> =>
  page.evaluate(`(${script})(${JSON.stringify(url)}, ${JSON.stringify(sessionId)})`);

describe.skipIf(browserMissing !== '')(`a foreign page ${browserMissing}`, () => {
  // Of the same site the browser sends the cookie along, of another one it does not.
  test.each(['127.0.0.1', 'localhost'])(
    '[SE10] a page of another origin, on %s, reads nothing and changes nothing',
    async (host) => {
      const { server, owner, page, sessionId } = await loggedIn();
      const port = await startStranger();
      const before = await stateOf(server, owner, sessionId);
      const stranger = (await page.context().newPage()) as OpenPage;
      await stranger.goto(`http://${host}:${port}/`);

      expect(await run(stranger, READS, server.url, sessionId)).toEqual({
        fetch: 'failed',
        opaque: expect.stringMatching(/^(opaque $|failed$)/),
        exported: 'failed',
        stream: 'failed',
        socket: 'failed',
        image: 'failed',
        script: 'failed',
        style: 'failed',
      });
      await run(stranger, CHANGES, server.url, sessionId);
      const refused = () => server.logs.filter(({ method, status }) => method === 'POST' && status === 403).length;
      await until('what it sent has arrived', () => refused() >= 10);
      expect(await stateOf(server, owner, sessionId)).toEqual(before);

      // In a frame there is nothing to see or to click, and the person is still logged in.
      await stranger.setContent(`<iframe src="${server.url}/"></iframe>`);
      const frame = stranger.frames().at(-1)!;
      await until('the frame was refused', () => frame.url() === 'chrome-error://chromewebdata/');
      await page.reload();
      await page.getByText('my secret plans').first().waitFor();
    },
  );

  test('[SE10] the same is read and changed by our own page, so the tries are worth something', async () => {
    const { server, owner, page, sessionId } = await loggedIn();
    expect(await run(page, READS, server.url, sessionId)).toMatchObject({
      fetch: expect.stringContaining('basic {"sessions":'),
      exported: expect.stringContaining('basic {'),
      stream: 'read',
      socket: 'open',
      image: 'loaded',
    });
    const before = await stateOf(server, owner, sessionId);
    const answer = await page.evaluate(
      `fetch('/api/sessions', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }).then((one) => one.status)`,
    );
    expect(answer).toBe(201);
    expect(await stateOf(server, owner, sessionId)).not.toEqual(before);
  });
});
