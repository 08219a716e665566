/** Behind real proxies with TLS, at the root and at a sub-path, configured as deploy/ says. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { startChildServer } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { type ProxyName, programAt, startProxy, through } from '../support/proxies.ts';
import { openSse } from '../support/sse.ts';
import { until } from '../support/until.ts';

const TOKEN = 'correct-horse-battery';
const BEARER = { authorization: `Bearer ${TOKEN}` };
/** Another address of this machine than the proxy's own. */
const CLIENT = '127.0.0.2';
const SILENCE_S = 90;

const json = { 'content-type': 'application/json' };

/** A server behind a proxy, and what talks with it through the proxy. */
async function behind(name: ProxyName, basePath: string) {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await mkdir(home, { recursive: true });
  await writeFile(
    path.join(home, 'config.yaml'),
    `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model}\nagent: {stall_timeout_s: 300}\n` +
      `server: {trusted_proxies: [127.0.0.1], public_url: "https://127.0.0.1/"${basePath ? `, base_path: ${basePath}` : ''}}\n`,
  );
  const server = await startChildServer({ home }, { TURNKEEP_TOKEN: TOKEN });
  const proxy = await startProxy(name, Number(new URL(server.url).port), basePath);
  const url = `${proxy.url}${basePath}`;
  const call = async (method: string, address: string, body?: object, headers: Record<string, string> = BEARER) => {
    const more = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await through(`${url}${address}`, {
      method,
      headers: { ...json, ...headers },
      from: CLIENT,
      ...more,
    });
    return { ...answer, json: answer.text ? JSON.parse(answer.text) : null };
  };
  const newSession = async (): Promise<string> => (await call('POST', '/api/sessions', {})).json.session.session_id;
  return { url, call, newSession, origin: proxy.url };
}

const isThere = (name: ProxyName): boolean => programAt(name) !== undefined && programAt('openssl') !== undefined;

const places = [
  ['nginx', ''],
  ['nginx', '/x'],
  ['caddy', ''],
  ['caddy', '/x'],
] as const;

/** A prompt whose run is streamed, by a client that would take any compression. */
const openRun = (url: string, id: string, text: string) =>
  openSse(`${url}/api/sessions/${id}/prompts`, {
    method: 'POST',
    body: { text },
    headers: { ...BEARER, 'accept-encoding': 'gzip, br, zstd' },
    from: CLIENT,
    limitMs: (SILENCE_S + 60) * 1000,
  });

it('[DP1] a stream outlives a silence that is longer than the patience of the proxy', {
  timeout: 240_000,
}, async (test) => {
  const there = places.filter(([name]) => isThere(name));
  test.skip(there.length === 0, 'neither nginx nor Caddy is installed');
  const all = await Promise.all(there.map(([name, basePath]) => behind(name, basePath)));
  await Promise.all(
    all.map(async ({ url, newSession }) => {
      const stream = await openRun(url, await newSession(), `script:chunks=1,delay=${SILENCE_S * 1000},id=slow`);
      const end = await stream.next((event) => event.type === 'message.complete');
      expect(end.json.payload).toMatchObject({ status: 'complete', text: expect.stringContaining('slow:0') });
      expect(stream.text()).toContain('heartbeat');
    }),
  );
});

describe.each(places)('behind %s at "%s/"', (name, basePath) => {
  it.runIf(isThere(name))('[DP1] the page, a login, its cookie and the address of whoever asks are right', async () => {
    const { url, call, origin } = await behind(name, basePath);
    const page = await through(`${url}/`, { from: CLIENT });
    expect([page.status, page.text.includes('<title>Turnkeep</title>')]).toEqual([200, true]);
    expect(page.headers['strict-transport-security']).toContain('max-age=');
    expect((await call('GET', '/api/sessions', undefined, {})).status).toBe(401);
    // What a client says of itself is nobody's word.
    const forged = {
      origin,
      'x-forwarded-for': '203.0.113.9',
      forwarded: 'for=203.0.113.9',
      'x-real-ip': '203.0.113.9',
      'x-forwarded-proto': 'http',
    };
    const login = await call('POST', '/api/auth/login', { token: TOKEN }, forged);
    expect([login.status, login.json]).toEqual([200, { ok: true }]);
    const [setCookie = ''] = login.headers['set-cookie'] as string[];
    expect(setCookie).toMatch(/^__Host-turnkeep_login[^=]*=[\w-]{43}; Path=\/; .*HttpOnly; SameSite=Strict; Secure$/);
    const cookie = { cookie: setCookie.split(';')[0]! };
    const { logins } = (await call('GET', '/api/auth/logins', undefined, cookie)).json;
    expect(logins).toMatchObject([{ address: CLIENT, current: true }]);
    expect((await call('POST', '/api/sessions', {}, { ...cookie, origin: 'https://evil.example' })).status).toBe(403);
    expect((await call('POST', '/api/sessions', {}, { ...cookie, origin })).status).toBe(201);
  });

  it.runIf(isThere(name))('[DP1][EV1] a stream passes as it comes, and is not compressed', async () => {
    const { url, newSession, call } = await behind(name, basePath);
    const id = await newSession();
    const stream = await openRun(url, id, 'script:chunks=20,delay=250,id=a');
    expect([stream.status, stream.headers['content-encoding']]).toEqual([200, undefined]);
    await stream.next((event) => event.type === 'message.delta');
    // The first words are here while the last are not yet spoken.
    expect((await call('GET', `/api/sessions/${id}`)).json.session.status).toBe('running');
    await stream.next((event) => event.type === 'message.complete');
    expect(stream.events.filter((event) => event.type === 'message.delta').length).toBeGreaterThanOrEqual(20);
  });

  it.runIf(isThere(name))('[DP1][GW1] the gateway is reached, and answers as it comes', async () => {
    const { url, newSession, origin } = await behind(name, basePath);
    const id = await newSession();
    const client = await connectGateway(`${url}/`, { token: TOKEN, headers: { origin } });
    await until('it is ready', () => client.events('', 'gateway.ready').length > 0);
    const { session_id: live } = await client.call('session.resume', { session_id: id });
    await client.call('prompt.submit', { session_id: live, text: 'script:chunks=10,delay=50,id=w' });
    await client.event(live, 'message.complete');
    await client.close();
    await expect(connectGateway(`${url}/`, { token: 'wrong', headers: { origin } })).rejects.toThrow('401');
    await expect(
      connectGateway(`${url}/`, { token: TOKEN, headers: { origin: 'https://evil.example' } }),
    ).rejects.toThrow('403');
  });

  it.runIf(isThere(name))(
    '[DP1][AT1] a file of fifteen megabytes passes, and one that is too large is refused in words',
    async () => {
      const { url, newSession } = await behind(name, basePath);
      const id = await newSession();
      const upload = (bytes: number) => {
        const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n';
        const body = Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 'x'), Buffer.from('\r\n--b--\r\n')]);
        const headers = { ...BEARER, 'content-type': 'multipart/form-data; boundary=b' };
        return through(`${url}/api/sessions/${id}/attachments`, { method: 'POST', body, headers, from: CLIENT });
      };
      expect((await upload(15 * 1024 * 1024)).status).toBe(201);
      const refused = await upload(21 * 1024 * 1024);
      expect([refused.status, JSON.parse(refused.text).code]).toEqual([413, 'too_large']);
    },
  );
});
