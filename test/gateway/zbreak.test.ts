import { expect, it } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const METHODS: Record<string, Record<string, unknown>> = {
  'session.create': {
    cols: 1,
    title: 't',
    model: 'builtin/demo',
    cwd: '/tmp',
    source: 's',
    messages: [],
    close_on_disconnect: false,
    idempotency_key: 'k',
  },
  'session.resume': { session_id: 'x', cols: 1, source: 's', omit_messages: true, close_on_disconnect: false },
  'session.activate': { session_id: 'x', cols: 1, omit_messages: true },
  'session.branch': { session_id: 'x', name: 'n', at_message: 'm' },
  'session.active_list': { current_session_id: 'x' },
  'session.list': { title: 't', limit: 10 },
  'session.most_recent': {},
  'session.history': { session_id: 'x' },
  'session.title': { session_id: 'x', title: 't' },
  'session.archive': { session_id: 'x', archived: true },
  'session.cwd.set': { session_id: 'x', cwd: '/tmp' },
  'session.undo': { session_id: 'x' },
  'session.compress': { session_id: 'x', focus_topic: 'f' },
  'session.usage': { session_id: 'x' },
  'session.status': { session_id: 'x' },
  'session.close': { session_id: 'x' },
  'session.delete': { session_id: 'x' },
  'prompt.submit': {
    session_id: 'x',
    text: 'hi',
    attachments: [],
    mode: 'queue',
    queued: true,
    request_id: 'r',
    truncate_before_message_id: 'm',
    truncate_before_user_ordinal: 1,
    confirm_truncate: true,
  },
  'session.interrupt': { session_id: 'x', generation: 1 },
  'session.steer': { session_id: 'x', text: 't' },
  'session.redirect': { session_id: 'x', text: 't' },
  'session.events.since': { session_id: 'x', last_seen: 1 },
  'session.events.stats': {},
  'approval.pending': { session_id: 'x' },
  'approval.received': { session_id: 'x', request_id: 'r' },
  'approval.respond': { session_id: 'x', choice: 'once', all: true, request_id: 'r' },
  'clarify.lock': { request_id: 'r', question_id: 'q', answer: 'a' },
  'request.answer': { id: 'r', result: { choice: 'once' } },
  'client.capabilities': { server_requests: false },
  'gateway.ping': {},
  ping: {},
  'gateway.capabilities': {},
};
const BAD = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  '',
  ' ',
  'x',
  '__proto__',
  'constructor',
  '\ud83d',
  '\u0000',
  'a'.repeat(600),
  'a'.repeat(1_100_000),
  [],
  [1],
  {},
  { __proto__: 1, a: 1 },
  [[['a']]],
  '../../etc/passwd',
  "'; DROP TABLE sessions; --",
  '20261130_035345_77f87e',
  '%',
  '_',
];

it('hostile params', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const client = await connectGateway(server.url);
  const seen: Record<string, number> = {};
  const total: Record<string, number> = {};
  for (const live of [false, true]) {
    for (const [method, params] of Object.entries(METHODS)) {
      let session = 'x';
      if (live) session = (await client.call('session.create')).session_id;
      const from = client.frames.length;
      let count = 0;
      for (const key of [...Object.keys(params), '__proto__', 'constructor', '']) {
        for (const bad of BAD) {
          const all = { ...params, ...('session_id' in params ? { session_id: session } : {}) };
          const text = JSON.stringify(all).replace(
            /\}$/,
            `${Object.keys(all).length ? ',' : ''}${JSON.stringify(key)}:${JSON.stringify(bad)}}`,
          );
          const id = `${live} ${method}|${key}|${JSON.stringify(bad).slice(0, 30)}`;
          client.send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":${text}}`);
          count += 1;
        }
      }
      await until(
        `${method} ${live}`,
        () => client.frames.slice(from).filter((f) => f.method === undefined).length >= count,
      );
      for (const frame of client.frames.slice(from).filter((f) => f.method === undefined)) {
        const id = frame.id as string;
        if (frame.error?.code === -32603)
          console.log('BUG', id, JSON.stringify(server.logs.findLast((l) => l.level >= 50)).slice(0, 900));
        const k = `${live} ${method}|${id.split('|')[1]}`;
        if (frame.result !== undefined) seen[k] = (seen[k] ?? 0) + 1;
        if (JSON.stringify(frame).length > 5000) console.log('LONG', id, JSON.stringify(frame).length);
        if (/\\ud8/.test(JSON.stringify(frame.result ?? frame.error)))
          console.log('SURROGATE', id, JSON.stringify(frame).slice(0, 300));
      }
      client.frames.length = 0;
      if (live) await client.request('session.close', { session_id: session });
    }
  }
  console.log(JSON.stringify(seen));
  console.log(
    'errors in log',
    server.logs.filter((l) => l.level >= 50).length,
    JSON.stringify(server.logs.filter((l) => l.level >= 40).slice(0, 5)),
  );
}, 120_000);

it('10000 requests at once, same ids', async () => {
  const server = await startTestServer({});
  const client = await connectGateway(server.url);
  const other = await connectGateway(server.url);
  for (let n = 0; n < 10_000; n += 1)
    client.send(`{"jsonrpc":"2.0","id":"same","method":"${n % 2 ? 'ping' : 'session.active_list'}"}`);
  const t = Date.now();
  await other.call('ping');
  console.log('other ping ms', Date.now() - t);
  await until('all', () => client.frames.filter((f) => f.id === 'same').length === 10_000);
  console.log('all ms', Date.now() - t);
  const odd: string[] = [
    '{"jsonrpc":"2.0","id":"srq-1","result":{}}',
    '{"jsonrpc":"2.0","id":"srq-1","error":null}',
    '{"jsonrpc":"2.0","id":7,"result":{}}',
    '{"id":"__proto__","result":{"choice":"once"}}',
    '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":-1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":true,"method":"ping"}',
    `{"jsonrpc":"2.0","id":"${'x'.repeat(100000)}","method":"ping"}`,
    `{"jsonrpc":"2.0","id":3,"method":"${'x'.repeat(100000)}"}`,
    `${'['.repeat(50000)}`,
    `{"jsonrpc":"2.0","id":4,"method":"ping","params":{"${'x'.repeat(100000)}":1}}`,
    '{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}',
    '\ufeff{"jsonrpc":"2.0","id":5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":6,"method":"ping"}{"jsonrpc":"2.0","id":7,"method":"ping"}',
    '{"jsonrpc":"2.0","id":8,"method":"ping"}\n{"jsonrpc":"2.0","id":9,"method":"ping"}',
  ];
  for (const text of odd) {
    const from = client.frames.length;
    client.send(text);
    await client.call('ping');
    const got = client.frames
      .slice(from)
      .filter((f) => f.method === undefined)
      .slice(0, -1);
    console.log(text.slice(0, 70), '=>', JSON.stringify(got).slice(0, 250), JSON.stringify(got).length);
  }
});
