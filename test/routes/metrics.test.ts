/** What an operator watches. */
import { expect, it } from 'vitest';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const TOKEN = 'correct-horse-battery';

/** The values of a measure, by their labels. */
async function measure(server: TestServer, name: string): Promise<Record<string, number>> {
  const { status, text } = await server.call('GET', '/metrics');
  expect(status).toBe(200);
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(name.length, at), Number(line.slice(at + 1))];
    }),
  );
}

it('[OP1] turns, deliveries, requests and refusals are counted, by what happened', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  await server.ask(id, 'hello');
  await server.ask(id, 'again');
  await server.call('GET', '/api/nothing');
  await server.call('GET', '/api/sessions/nobody');
  expect(await measure(server, 'turnkeep_run_seconds_count')).toEqual({ '{outcome="completed"}': 2 });
  expect((await measure(server, 'turnkeep_delivery_seconds_count'))['']).toBeGreaterThan(0);
  expect(await measure(server, 'turnkeep_refusals_total')).toEqual({
    '{code="not_found"}': 1,
    '{code="session_not_found"}': 1,
  });
  const requests = await measure(server, 'turnkeep_http_request_seconds_count');
  expect(requests['{method="POST",route="/api/sessions",status="201"}']).toBe(1);
  expect(requests['{method="GET",route="none",status="404"}']).toBe(1);
  expect(Object.keys(await measure(server, 'nodejs_eventloop_lag_p99_seconds'))).toEqual(['']);
});

it('[OP1] what runs and waits now is told as it is', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  await server.prompt(id, 'first');
  await server.prompt(id, 'second');
  await scripted.turn(0);
  const stream = await server.stream('/api/events');
  expect(await measure(server, 'turnkeep_open_prompts')).toEqual({
    '{status="queued"}': 1,
    '{status="started"}': 1,
    '{status="unknown"}': 0,
  });
  expect((await measure(server, 'turnkeep_active_runs'))['']).toBe(1);
  expect((await measure(server, 'turnkeep_subscribers'))['']).toBe(1);
  expect((await measure(server, 'turnkeep_draining'))['']).toBe(0);
  stream.drop();
});

it('[OP1] measures want a credential, and hold nothing of a person', async () => {
  const server = await startTestServer({
    env: { TURNKEEP_TOKEN: TOKEN },
    overrides: { runner: createEchoRunner().runner },
  });
  expect((await server.call('GET', '/metrics')).status).toBe(401);
  const bearer = { authorization: `Bearer ${TOKEN}` };
  const id = (await server.call('POST', '/api/sessions', { title: 'a secret title' }, bearer)).json.session.session_id;
  await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text: 'a secret text' }, bearer);
  await server.call('GET', '/a-secret-address?with=a-secret-query', undefined, bearer);
  const { text } = await server.call('GET', '/metrics', undefined, bearer);
  for (const secret of ['secret', id, TOKEN]) expect(text).not.toContain(secret);
});

it('[OP2] a line about a request has its id, and one about a turn its session and run', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const id = await server.session();
  const { run_id } = await server.prompt(id, 'hello');
  await server.ask(id, 'and once more');
  const requests = server.logs.filter((line) => line.msg === 'request');
  expect(requests.length).toBeGreaterThan(0);
  for (const line of requests) expect(line.reqId).toMatch(/\S/);
  const turn = server.logs.find((line) => line.msg === 'a turn ended' && line.run_id === run_id);
  expect(turn).toMatchObject({ session_id: id, outcome: 'completed', ms: expect.any(Number) });
});
