/** The clock of a machine may be put to any time in the middle of a turn: order is by number, never by time. */
import { expect, it } from 'vitest';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

it.each([
  ['far ahead', 1e12],
  ['far back', -1e9],
])('[AD4][EV1][EV2] a clock that is put %s reorders nothing, and hides nothing', async (_where, jump) => {
  const script = createScriptedRunner();
  let offset = 0;
  const server = await startTestServer({
    overrides: { runner: script.runner, now: () => Date.now() / 1000 + offset },
  });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}`;
  const reader = await server.stream(`${address}/events`);
  await server.prompt(sessionId, 'one');
  const first = await script.turn(0);
  first.text('before');
  await reader.next((event) => event.type === 'message.delta');
  offset = jump;
  await server.prompt(sessionId, 'two', { request_id: 'two' });
  first.text(' after');
  first.complete();
  const second = await script.turn(1);
  offset = 0;
  second.text('again');
  second.complete();
  await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
  expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(['one', 'before after', 'two', 'again']);
  const { admissions } = (await server.call('GET', `${address}/prompts`)).json;
  expect(admissions.map((one: { text: string }) => one.text)).toEqual(['one', 'two']);
  const again = await server.prompt(sessionId, 'two', { request_id: 'two' });
  expect(again.admission.admission_id).toBe(admissions[1].admission_id);
  const events = (all: typeof reader.events) => all.filter((event) => event.json.seq).map((event) => event.data);
  const whole = await server.stream(`${address}/events?cursor=0`);
  await until('both ends are read', () => whole.events.filter((one) => one.type === 'message.complete').length === 2);
  await until('and live', () => events(reader.events).length === events(whole.events).length);
  expect(events(reader.events)).toEqual(events(whole.events));
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
});
