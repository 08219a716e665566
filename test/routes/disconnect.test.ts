/** Clients that leave: a disconnect and nothing else. What they began goes on without them. */
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

async function scriptedServer() {
  const scripted = createScriptedRunner();
  const server = await startTestServer({ overrides: { runner: scripted.runner } });
  const id = await server.session();
  return { server, scripted, id, address: `/api/sessions/${id}` };
}

/** Sends bytes, and resolves when the system has taken them. */
function begin(server: TestServer, bytes: string, allowHalfOpen = false): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen }, () =>
      socket.write(bytes, () => resolve(socket)),
    );
    socket.on('error', () => {});
  });
}

const request = (
  server: TestServer,
  address: string,
  body: string,
  more = '',
  length = Buffer.byteLength(body),
): string =>
  `POST ${address} HTTP/1.1\r\nhost: ${new URL(server.url).host}\r\ncontent-type: application/json\r\n${more}` +
  `content-length: ${length}\r\n\r\n${body}`;

const connections = (server: TestServer): Promise<number> =>
  new Promise((resolve) => server.app.server.server.getConnections((_error, count) => resolve(count)));

/** Waits until only the keep-alive connections of the test itself are left. */
const gone = (server: TestServer, before: number) =>
  until('the server has seen the client go', async () => (await connections(server)) <= before);

/** No failure was logged and none was answered. */
function expectCalm(server: TestServer): void {
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  expect(server.logs.filter((line) => Number(line.status) >= 500)).toEqual([]);
}

async function expectAnswered(server: TestServer, id: string, prompts: number): Promise<void> {
  const rows = await until('the turn has ended', async () => {
    const { session } = (await server.call('GET', `/api/sessions/${id}`)).json;
    return session.status === 'idle' ? server.messages(id) : null;
  });
  expect(rows).toHaveLength(prompts * 2);
  expect(rows.at(-1)).toMatchObject({ role: 'assistant', content: 'the answer', status: 'complete' });
}

it.each([
  ['waits for the end', '?wait=1', ''],
  ['reads the events of its prompt', '', 'accept: text/event-stream\r\n'],
])('[HT4] a client that %s and leaves does not stop the turn', async (_what, form, accept) => {
  const { server, scripted, id, address } = await scriptedServer();
  const before = await connections(server);
  const ask = (text: string) =>
    begin(server, request(server, `${address}/prompts${form}`, `{"text":"${text}"}`, accept));
  const socket = await ask('hello');
  const turn = await scripted.turn(0);
  socket.destroy();
  await gone(server, before);
  expect(turn.signal.aborted).toBe(false);
  turn.text('the answer');
  turn.complete();
  await expectAnswered(server, id, 1);
  // The one behind it too: it left while it was waiting.
  const running = await server.prompt(id, 'runs');
  const next = await scripted.turn(1);
  const waiting = await ask('waits');
  await until('it waits', async () => (await server.call('GET', address)).json.session.queue_length === 1);
  waiting.destroy();
  await gone(server, before + 1);
  expect(running.admission.session_id).toBe(id);
  next.text('the answer');
  next.complete();
  const last = await scripted.turn(2);
  last.text('the answer');
  last.complete();
  await expectAnswered(server, id, 3);
  expectCalm(server);
});

it('[HT4] a client that leaves its event stream does not stop the turn, and another goes on reading', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const own = await server.stream(`${address}/prompts`, { method: 'POST', body: { text: 'hello' } });
  const turn = await scripted.turn(0);
  const readers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => server.stream(n % 2 ? `${address}/events` : `/api/events?session=${id}`)),
  );
  const stays = await server.stream(`${address}/events`);
  turn.text('the ');
  await own.next((event) => event.type === 'message.delta');
  own.drop();
  for (const reader of readers) reader.drop();
  await gone(server, 3);
  expect(turn.signal.aborted).toBe(false);
  turn.text('answer');
  turn.complete();
  const complete = await stays.next((event) => event.type === 'message.complete');
  expect(complete.json.payload.text).toBe('the answer');
  stays.drop();
  await expectAnswered(server, id, 1);
  // Nobody is left: nothing is kept for them.
  await until('the session is forgotten', async () => (await server.call('GET', '/health')).json.live_sessions === 0);
  expectCalm(server);
});

it('[HT4] a client that leaves in the middle of its body has sent nothing', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const before = await connections(server);
  const whole = '{"text":"never finished"}';
  const cuts = [0, 1, 10, whole.length - 1];
  for (const cut of cuts) {
    const bytes = request(server, `${address}/prompts`, whole.slice(0, cut), '', whole.length);
    const socket = await begin(server, bytes);
    await until('the server has it', async () => (await connections(server)) > before);
    socket.destroy();
    await gone(server, before);
  }
  const chunked = await begin(
    server,
    `POST ${address}/prompts HTTP/1.1\r\nhost: ${new URL(server.url).host}\r\ncontent-type: application/json\r\n` +
      'transfer-encoding: chunked\r\n\r\n5\r\n{"tex\r\n',
  );
  chunked.end();
  await gone(server, before);
  expect((await server.call('GET', `${address}/prompts`)).json.admissions).toEqual([]);
  await server.prompt(id, 'hello');
  const turn = await scripted.turn(0);
  turn.text('the answer');
  turn.complete();
  await expectAnswered(server, id, 1);
  expectCalm(server);
});

it('[HT4][AD1] a client that leaves without reading the receipt has sent its prompt all the same', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const forms = [
    ['', ''],
    ['?wait=1', ''],
    ['', 'accept: text/event-stream\r\n'],
  ] as const;
  for (const [n, [form, accept]] of forms.entries()) {
    const socket = await begin(server, request(server, `${address}/prompts${form}`, `{"text":"p${n}"}`, accept));
    const turn = await scripted.turn(n);
    socket.destroy();
    turn.text('the answer');
    turn.complete();
    await expectAnswered(server, id, n + 1);
  }
  expectCalm(server);
});

it('[HT1] a client that was refused by the parser gets its answer, and cannot keep its connection open', async () => {
  const { server } = await scriptedServer();
  const before = await connections(server);
  const socket = await begin(server, 'what is this\r\n\r\n', true);
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk;
  });
  await until('the answer has come', () => received.endsWith('}'));
  expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"code":"bad_request"\}$/);
  // It says more, and never that it has ended.
  socket.write('and this?\r\n\r\n');
  await gone(server, before);
  expectCalm(server);
  socket.destroy();
});

it('[HT4] clients that leave in crowds and at any moment cost nothing', async () => {
  const { server, scripted, id, address } = await scriptedServer();
  const before = await connections(server);
  await server.prompt(id, 'hello');
  const turn = await scripted.turn(0);
  for (let round = 0; round < 5; round += 1) {
    const sockets = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const bytes = [
          `GET ${address}/events HTTP/1.1\r\nhost: localhost\r\n\r\n`,
          `GET ${address}/messages HTTP/1.1\r\nhost: localhost\r\n\r\n`,
          'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n',
          request(server, `${address}/interrupt`, '{"generation":99}'),
          'GET /docs/static/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n',
        ][n % 5]!;
        return begin(server, bytes);
      }),
    );
    turn.text('');
    for (const socket of sockets) socket.resetAndDestroy();
    await gone(server, before + 1);
  }
  turn.text('the answer');
  turn.complete();
  await expectAnswered(server, id, 1);
  await until('the session is forgotten', async () => (await server.call('GET', '/health')).json.live_sessions === 0);
  expectCalm(server);
});
