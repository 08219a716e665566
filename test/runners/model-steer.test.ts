/** Speaking to a turn of a model at each of its moments, through a whole server, before the strict provider. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const WORDS = 'no, the other way';

/** A server over the strict provider, and a session that two clients can speak to. */
async function atWork() {
  const provider = await startFakeProvider();
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const server = await startTestServer({ home, env: { PATH: process.env.PATH ?? '' } });
  const workspace = path.join(await temporaryFolder(), 'ws');
  await mkdir(workspace);
  const id = await server.session({ workspace });
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.resume', { session_id: id });
  const requests = async (): Promise<{ id: string }[]> =>
    (await server.call('GET', `/api/sessions/${id}/requests`)).json.requests;
  return { provider, server, workspace, id, client, session_id, requests };
}
type AtWork = Awaited<ReturnType<typeof atWork>>;

/** Brings the turn to a moment. @returns what lets it go on */
type Moment = (at: AtWork) => Promise<() => Promise<unknown>>;

const MOMENTS: Record<string, Moment> = {
  'before its first word': async ({ provider }) => {
    const hold = provider.hold();
    provider.next({ hold }, { text: 'I go.' });
    await hold.reached;
    return async () => hold.release();
  },
  'in the text of its last step': async ({ provider }) => {
    const hold = provider.hold();
    provider.next({ text: 'I go ' }, { hold }, { text: 'left.' });
    await hold.reached;
    return async () => hold.release();
  },
  'while the person is asked': async ({ provider, server, id, requests }) => {
    provider.next({ tool_calls: [{ name: 'write_file', args: { path: 'a.txt', content: 'a' } }] });
    const [request] = await until('it asks', async () => ((await requests()).length > 0 ? requests() : null));
    return () => server.call('POST', `/api/sessions/${id}/requests/${request!.id}`, { choice: 'once' });
  },
  'while a command runs': async ({ provider, server, id, requests, workspace }) => {
    const command = 'echo up; until [ -e go ]; do sleep 0.02; done';
    provider.next({ tool_calls: [{ name: 'terminal', args: { command } }] });
    const [request] = await until('it asks', async () => ((await requests()).length > 0 ? requests() : null));
    const stream = await server.stream(`/api/sessions/${id}/events`);
    await server.call('POST', `/api/sessions/${id}/requests/${request!.id}`, { choice: 'once' });
    await stream.next(({ type }) => type === 'tool.output');
    return () => writeFile(path.join(workspace, 'go'), '');
  },
};

it.each(Object.keys(MOMENTS))(
  '[ST1] said by two clients %s, both are heard in the next step, once and in their order',
  async (moment) => {
    const at = await atWork();
    const { provider, server, id, client, session_id } = at;
    const moved = MOMENTS[moment]!(at);
    const first = await server.prompt(id, 'first');
    const goOn = await moved;
    const steered = await server.prompt(id, WORDS, { mode: 'steer' });
    await client.call('prompt.submit', { session_id, text: 'and faster', mode: 'steer' });
    const cancelled = await server.prompt(id, 'never mind', { mode: 'steer' });
    await server.call('DELETE', `/api/sessions/${id}/prompts/${cancelled.admission.admission_id}`);
    await goOn();
    await until(
      'all has ended',
      async () => (await server.call('GET', `/api/sessions/${id}`)).json.session.status === 'idle',
    );
    const rows = await server.messages(id);
    expect(rows.filter(({ role }) => role === 'user').map(({ content, run_id }) => [content, run_id])).toEqual(
      ['first', WORDS, 'and faster'].map((text) => [text, first.run_id]),
    );
    expect(rows.at(-1)).toMatchObject({ role: 'assistant', run_id: first.run_id });
    const told = JSON.stringify(provider.requests.at(-1)!.body.messages);
    expect([told.split(WORDS).length, told.split('and faster').length, told.includes('never mind')]).toEqual([
      2,
      2,
      false,
    ]);
    const { admissions } = (await server.call('GET', `/api/sessions/${id}/prompts`)).json;
    const its = admissions.find(({ run_id }: { run_id: string }) => run_id === steered.run_id);
    expect(its).toMatchObject({ status: 'terminal', outcome: 'completed' });
    expect((await server.ask(id, 'and now?')).message.status).toBe('complete');
  },
);

it('[ST2] said when the last step has ended, or to a turn that is stopped, it is a prompt of its own', async () => {
  const { provider, server, id } = await atWork();
  await server.ask(id, 'first');
  const late = await server.prompt(id, WORDS, { mode: 'steer' });
  await until('it has run', async () => (await server.messages(id)).length === 4);
  expect((await server.messages(id))[2]).toMatchObject({ content: WORDS, run_id: late.run_id });
  const hold = provider.hold();
  provider.next({ text: 'I go ' }, { hold });
  await server.prompt(id, 'second');
  await hold.reached;
  const stopped = await server.prompt(id, 'left', { mode: 'steer' });
  await server.call('POST', `/api/sessions/${id}/interrupt`, {});
  const ran = await until('it has run', async () =>
    (await server.messages(id)).find(({ role, run_id }) => role === 'assistant' && run_id === stopped.run_id),
  );
  expect(ran.content).toContain('left');
});
