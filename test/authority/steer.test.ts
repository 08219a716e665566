/** Speaking to an agent that works: words become a part of its turn, or a prompt of their own; and stopping it with a prompt. */
import { expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { connectGateway } from '../support/gateway.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

async function working(config?: string) {
  const scripted = createScriptedRunner();
  const server = await startTestServer({
    overrides: { runner: scripted.runner },
    ...(config === undefined ? {} : { config }),
  });
  const id = await server.session();
  const first = await server.prompt(id, 'first');
  const turn = await scripted.turn(0);
  const contents = async (): Promise<string[]> => (await server.messages(id)).map((row: Message) => row.content);
  const status = async () => (await server.call('GET', `/api/sessions/${id}`)).json.session.status;
  return { scripted, server, id, first, turn, contents, status };
}

it('[ST1] what is said to a running turn becomes a part of it, behind what it has shown, in every store', async () => {
  const { scripted, server, id, first, turn, contents } = await working();
  const reader = await server.stream(`/api/sessions/${id}/events`);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('I go left.');
  await reader.next((event) => event.type === 'message.delta');
  const steered = await server.prompt(id, 'no, right', { mode: 'steer' });
  expect(steered.admission.status).toBe('queued');
  expect(await turn.turn.steer()).toEqual([{ text: 'no, right', attachments: [] }]);
  expect(await turn.turn.steer()).toEqual([]);
  const told = await reader.next((event) => event.type === 'message.input');
  expect(told.json).toMatchObject({
    run_id: first.run_id,
    payload: { kind: 'steer', admission_id: steered.admission.admission_id, input: 'no, right' },
  });
  const end = await reader.next((event) => event.type === 'message.complete' && event.json.run_id === steered.run_id);
  expect(end.json.payload).toMatchObject({ status: 'complete', outcome: 'completed', text: '' });
  expect(end.id).toBeNull();
  turn.say({ type: 'message.start', payload: {} });
  turn.text('I go right.');
  turn.complete();
  await reader.next((event) => event.type === 'message.complete' && event.json.run_id === first.run_id);
  await until('the turn is put away', async () => (await contents()).length === 4);
  const rows: Message[] = await server.messages(id);
  expect(rows.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'first'],
    ['assistant', 'I go left.'],
    ['user', 'no, right'],
    ['assistant', 'I go right.'],
  ]);
  expect(rows.map((row) => row.id)).toEqual([0, 1, 2, 3].map((n) => `${first.run_id}.${n}`));
  expect((await server.call('GET', `/api/sessions/${id}`)).json.session.message_count).toBe(4);
  // It never runs by itself.
  await server.prompt(id, 'second');
  const second = await scripted.turn(1);
  expect(second.turn.input).toBe('second');
  expect(second.turn.history.map((row) => row.content)).toEqual(['first', 'I go left.', 'no, right', 'I go right.']);
});

it('[ST1] who waits for words that became a part of a turn is told so, in each form', async () => {
  const { server, id, turn } = await working();
  const address = `/api/sessions/${id}/prompts`;
  const body = { text: 'faster', mode: 'steer', request_id: 'k' };
  const waiting = server.call('POST', `${address}?wait=1`, body);
  await until(
    'it is accepted',
    async () => (await server.call('GET', `${address}?pending=1`)).json.admissions.length === 2,
  );
  const streaming = fetch(`${server.url}${address}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify(body),
  });
  const stream = await streaming;
  expect(await turn.turn.steer()).toHaveLength(1);
  const waited = await waiting;
  expect(waited.json.admission).toMatchObject({ status: 'terminal', outcome: 'completed' });
  const text = await stream.text();
  expect(text).toContain('event: message.complete');
  expect(text).not.toContain('event: run.start');
  // Said again under its key it is the same.
  expect((await server.call('POST', address, body)).json.admission.outcome).toBe('completed');
  expect(await turn.turn.steer()).toEqual([]);
});

it('[ST2] what comes too late for the turn runs as a prompt of its own; what was cancelled is not said', async () => {
  const { scripted, server, id, turn } = await working();
  const gone = await server.prompt(id, 'never', { mode: 'steer' });
  await server.call('DELETE', `/api/sessions/${id}/prompts/${gone.admission.admission_id}`);
  expect(await turn.turn.steer()).toEqual([]);
  await server.prompt(id, 'late', { mode: 'steer' });
  turn.complete();
  const next = await scripted.turn(1);
  expect(next.turn.input).toBe('late');
});

it('[ST2] to a session in which nothing runs it is a prompt like any other', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  await server.prompt(id, 'hello', { mode: 'steer' });
  expect((await scripted.turn(0)).turn.input).toBe('hello');
});

it('[ST1][AD4] words overtake prompts that wait, and these stay in their order', async () => {
  const { scripted, server, id, turn } = await working();
  for (const text of ['second', 'third']) await server.prompt(id, text);
  await server.prompt(id, 'one', { mode: 'steer' });
  await server.prompt(id, 'two', { mode: 'steer' });
  expect((await turn.turn.steer()).map(({ text }) => text)).toEqual(['one', 'two']);
  for (const index of [0, 1, 2]) (await scripted.turn(index)).complete();
  await until('all have ended', () => scripted.turns.length === 3);
  expect(scripted.turns.map((one) => one.turn.input)).toEqual(['first', 'second', 'third']);
});

it('[ST3] a prompt that interrupts stops the running turn, keeps what was said, and runs behind what waits', async () => {
  const { scripted, server, id, turn, contents } = await working();
  const reader = await server.stream(`/api/sessions/${id}/events`);
  turn.say({ type: 'message.start', payload: {} });
  turn.text('half');
  await reader.next((event) => event.type === 'message.delta');
  await server.prompt(id, 'second');
  await server.prompt(id, 'stop, do this', { mode: 'interrupt', request_id: 'k' });
  const second = await scripted.turn(1);
  // The same again is the same prompt: it stops nothing any more.
  await server.prompt(id, 'stop, do this', { mode: 'interrupt', request_id: 'k' });
  expect(second.signal.aborted).toBe(false);
  second.complete();
  const third = await scripted.turn(2);
  expect([second.turn.input, third.turn.input]).toEqual(['second', 'stop, do this']);
  third.complete();
  await until('all is put away', async () => (await contents()).length === 4);
  expect(await contents()).toEqual(['first', 'half', 'second', 'stop, do this']);
});

it('[ST3] a prompt that is refused stops nothing', async () => {
  const { server, id, turn } = await working('queue: {max: 1}');
  await server.prompt(id, 'second');
  const full = await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'now', mode: 'interrupt' });
  expect(full.json.code).toBe('queue_full');
  const empty = await server.call('POST', `/api/sessions/${id}/prompts`, { text: ' ', mode: 'interrupt' });
  expect(empty.json.code).toBe('empty_prompt');
  expect(turn.signal.aborted).toBe(false);
});

it.each([
  ['steer', 1],
  ['interrupt', 0],
] as const)(
  '[CF1][ST1][ST3] display.busy_input_mode: %s is what a prompt does that does not say',
  async (mode, said) => {
    const { server, id, turn } = await working(`display: {busy_input_mode: ${mode}}`);
    await server.prompt(id, 'hey');
    expect(turn.signal.aborted).toBe(mode === 'interrupt');
    expect(await turn.turn.steer()).toHaveLength(said);
  },
);

it('[ST1] the gateway says the same: steered, redirected, or rejected where nothing runs', async () => {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const client = await connectGateway(server.url);
  const { session_id } = await client.call('session.create');
  expect(await client.call('session.steer', { session_id, text: 'left' })).toEqual({
    status: 'rejected',
    text: 'left',
  });
  await client.call('prompt.submit', { session_id, text: 'first' });
  const turn = await scripted.turn(0);
  expect(await client.call('session.steer', { session_id, text: 'left' })).toMatchObject({ status: 'queued' });
  expect(await client.call('prompt.submit', { session_id, text: 'right', mode: 'steer' })).toMatchObject({
    status: 'steered',
  });
  expect((await turn.turn.steer()).map(({ text }) => text)).toEqual(['left', 'right']);
  expect(await client.call('session.redirect', { session_id, text: 'other' })).toMatchObject({ status: 'redirected' });
  expect((await scripted.turn(1)).turn.input).toBe('other');
});
