/** The gateway over homes: another server on the same one, another program's, and one whose server was killed. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { openHermesHome, turn } from '../foreign/hermes-home.ts';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { startTwoServers } from '../support/two-servers.ts';
import { until } from '../support/until.ts';

it('[GW6][LE1] what clients of one server hold, another server shows and does not run, until it is given back', async () => {
  const { one, two } = await startTwoServers('live: {orphan_reap_grace_s: 0.2}\n');
  const [a, b] = [await connectGateway(`${one.url}/`), await connectGateway(`${two.url}/`)];
  const { session_id, stored_session_id } = await a.call('session.create');
  const unknown = await b.request('session.resume', { session_id: stored_session_id });
  expect(unknown.error.code).toBe(4007); // A draft is in the memory of its server.
  await a.call('prompt.submit', { session_id, text: 'script:chunks=2,delay=1,id=a' });
  await a.event(session_id, 'message.complete');

  const seen = await b.call('session.resume', { session_id: stored_session_id });
  expect(seen.message_count).toBe(2);
  const submit = (text: string) => b.request('prompt.submit', { session_id: seen.session_id, text });
  const refused = { code: 4090, data: { code: 'session_not_owned', reason: 'SESSION_NOT_OWNED', retryable: true } };
  expect((await submit('mine')).error).toMatchObject(refused);
  expect((await b.request('session.undo', { session_id: seen.session_id })).error).toMatchObject(refused);
  await a.drop();
  await until('the other server may run it', async () => !(await submit('script:chunks=2,delay=1,id=b')).error);
  await b.event(seen.session_id, 'message.complete');
  two.process.kill('SIGTERM');
  expect(await two.exited).toBe(0);
  expect(b.closed()).toBe(1001);
});

it('[GW2] a kill behind the first prompt of a draft leaves session and prompt, and it runs', async () => {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const killed = await startChildServer({ home, crashAt: 'admitted' });
  const client = await connectGateway(`${killed.url}/`);
  const { session_id, stored_session_id } = await client.call('session.create', { title: 'Kept' });
  const sent = await client.request('prompt.submit', { session_id, text: 'script:chunks=2,delay=1,id=a' });
  expect(sent.error.code).toBe(-1); // No answer came.
  await killed.exited;
  const next = await startChildServer({ home });
  await until('it has run', async () => {
    const { status, json } = await next.call('GET', `/api/sessions/${stored_session_id}`);
    return status === 200 && json.session.title === 'Kept' && json.session.message_count === 2;
  });
});

it('[FH3] a session of another program is shown and never changed', async () => {
  const hermes = openHermesHome(path.join(await temporaryFolder(), 'hermes'));
  hermes.session('20260101_010101_abcdef', { title: 'theirs' }, turn('q', 'a'));
  hermes.close();
  const server = await startTestServer({ config: `foreign: {state_db: ${hermes.file}}` });
  const client = await connectGateway(server.url);
  const { session_id, session_key, messages } = await client.call('session.resume', { session_id: 'theirs' });
  expect(messages).toMatchObject([{ text: 'q' }, { text: 'a' }]);
  const changes: [string, object][] = [
    ['prompt.submit', { text: 'x' }],
    ['session.title', { title: 'x' }],
    ['session.archive', {}],
    ['session.undo', {}],
    ['session.compress', {}],
    ['session.cwd.set', { cwd: server.home }],
    ['session.interrupt', {}],
  ];
  for (const [method, params] of changes) {
    const { error } = await client.request(method, { session_id, ...params });
    expect([method, error.code, error.data.code]).toEqual([method, 4024, 'foreign_home']);
  }
  const copy = await client.call('session.branch', { session_id });
  expect((await client.call('session.history', { session_id: copy.session_id })).count).toBe(2);
  await client.call('session.close', { session_id });
  expect((await client.request('session.delete', { session_id: session_key })).error.code).toBe(4024);
});
