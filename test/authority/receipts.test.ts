/** Receipts: the same prompt is the same admission, in this process and in those after it. */
import { expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

it('[AD2] receipts of every state survive a restart: the list, the same key again, and a conflict', async () => {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}/prompts`;
  const keys = ['completed', 'failed', 'cancelled', 'running', 'waiting'];
  for (const key of keys) await server.prompt(sessionId, key, { request_id: key });
  (await script.turn(0)).complete();
  (await script.turn(1)).fail({ code: 'provider_error', message: 'It said no.', retryable: true });
  await script.turn(2);
  const list = async (from = server) => (await from.call('GET', address)).json.admissions;
  const cancelled = (await list()).find((one: { request_id: string }) => one.request_id === 'running');
  // The third in the queue runs meanwhile: its neighbour is the one that is cancelled.
  expect((await server.call('DELETE', `${address}/${cancelled.admission_id}`)).json.admission.outcome).toBe(
    'cancelled',
  );
  const before = await list();
  expect(before.map((one: { status: string }) => one.status)).toEqual([
    'terminal',
    'terminal',
    'started',
    'terminal',
    'queued',
  ]);
  await server.close();

  const later = await startTestServer({ home: server.home, overrides: { runner: createEchoRunner().runner } });
  const facts = (all: { request_id: string; admission_id: string; run_id: string; sequence: number }[]) =>
    all.map(({ request_id, admission_id, run_id, sequence }) => ({ request_id, admission_id, run_id, sequence }));
  expect(facts(await list(later))).toEqual(facts(before));
  await until('what waited has run', async () => (await list(later)).at(-1).outcome === 'completed');
  const after = await list(later);
  expect(after.map((one: { outcome: string }) => one.outcome)).toEqual([
    'completed',
    'failed',
    'interrupted',
    'cancelled',
    'completed',
  ]);
  for (const one of after) {
    const again = await Promise.all(
      Array.from({ length: 20 }, () => later.prompt(sessionId, one.request_id, { request_id: one.request_id })),
    );
    expect(again.map((answer) => answer.admission)).toEqual(Array(20).fill(one));
    const other = await later.call('POST', address, { text: 'something else', request_id: one.request_id });
    expect(other).toMatchObject({ status: 409, json: { code: 'admission_conflict' } });
  }
  expect(await list(later)).toEqual(after);
});

it('[AD2][HT9] while the server drains nothing new is accepted; what was accepted has its receipt', async () => {
  const script = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: script.runner } });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}/prompts`;
  const { admission } = await server.prompt(sessionId, 'runs', { request_id: 'k' });
  const turn = await script.turn(0);
  const closing = server.app.close();
  const send = (text: string, request_id: string) => server.call('POST', address, { text, request_id });
  expect(await send('new', 'n')).toMatchObject({ status: 503, json: { code: 'draining' } });
  expect(await send('runs', 'k')).toMatchObject({
    status: 202,
    json: { admission: { admission_id: admission.admission_id, status: 'started' } },
  });
  expect((await send('other', 'k')).json.code).toBe('admission_conflict');
  turn.complete();
  await closing;
});
