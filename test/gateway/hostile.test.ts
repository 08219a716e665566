/** The gateway: parameters that nobody means well with. */
import { expect, it } from 'vitest';
import { connectGateway } from '../support/gateway.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** Every method, with parameters of which any one is replaced. */
const METHODS: Record<string, Record<string, unknown>> = {
  'session.create': {
    cols: 1,
    title: 't',
    model: 'm',
    cwd: '/',
    source: 's',
    messages: [],
    close_on_disconnect: false,
  },
  'session.resume': { session_id: 'LIVE', cols: 1, source: 's', omit_messages: true, close_on_disconnect: false },
  'session.activate': { session_id: 'LIVE', cols: 1, omit_messages: true },
  'session.branch': { session_id: 'LIVE', name: 'n', at_message: 'm' },
  'session.active_list': { current_session_id: 'LIVE' },
  'session.list': { title: 't', limit: 10 },
  'session.most_recent': {},
  'session.history': { session_id: 'LIVE' },
  'session.title': { session_id: 'LIVE', title: 't' },
  'session.archive': { session_id: 'LIVE', archived: true },
  'session.cwd.set': { session_id: 'LIVE', cwd: '/' },
  'session.undo': { session_id: 'LIVE' },
  'session.compress': { session_id: 'LIVE', focus_topic: 'f' },
  'session.usage': { session_id: 'LIVE' },
  'session.status': { session_id: 'LIVE' },
  'session.delete': { session_id: 'LIVE' },
  'session.steer': { session_id: 'LIVE', text: 't' },
  'session.redirect': { session_id: 'LIVE', text: 't' },
  'session.interrupt': { session_id: 'LIVE', generation: 1 },
  'session.events.since': { session_id: 'LIVE', last_seen: 1 },
  'session.events.stats': {},
  'prompt.submit': {
    session_id: 'LIVE',
    text: 'hi',
    attachments: [],
    mode: 'reject',
    queued: false,
    request_id: 'r',
    truncate_before_user_ordinal: 1,
    truncate_before_message_id: 'm',
    confirm_truncate: true,
  },
  'approval.pending': { session_id: 'LIVE' },
  'approval.received': { session_id: 'LIVE', request_id: 'r' },
  'approval.respond': { session_id: 'LIVE', choice: 'once', all: true, request_id: 'r' },
  'clarify.lock': { request_id: 'r', question_id: 'q', answer: 'a' },
  'request.answer': { id: 'r', result: { choice: 'once' } },
  'client.capabilities': { server_requests: false },
  'gateway.capabilities': {},
  'session.close': { session_id: 'gone' },
  ping: {},
};

const HOSTILE = [
  null,
  -1,
  1.5,
  1e308,
  '',
  '__proto__',
  'constructor',
  '\ud83d',
  '\u0000',
  'a'.repeat(5_000),
  [[['a']]],
  { a: { b: 1 } },
  '../../etc/passwd',
  "'; DROP TABLE sessions; --",
  '20261130_035345_77f87e',
];

it('[GW9] whatever a parameter holds, the answer is a result or a refusal of the catalogue, and the server is well', async () => {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const client = await connectGateway(server.url);
  const messages = ['a', 'b'].map((content) => ({ role: 'user', content }));
  const { session_id } = await client.call('session.create', { messages });
  let sent = 0;
  for (const [method, fields] of Object.entries(METHODS)) {
    for (const key of [...Object.keys(fields), '__proto__', 'toString']) {
      for (const [index, value] of HOSTILE.entries()) {
        const params = Object.entries(fields)
          .map(([name, field]) => [name, field === 'LIVE' ? session_id : field])
          .filter(([name]) => name !== key)
          .concat([[key, value]])
          .map(([name, field]) => `${JSON.stringify(name)}:${JSON.stringify(field)}`);
        client.send(`{"jsonrpc":"2.0","id":"${method} ${key} ${index}","method":"${method}","params":{${params}}}`);
        sent += 1;
      }
    }
  }
  const replies = () => client.frames.filter((frame) => frame.method === undefined && typeof frame.id === 'string');
  await until('all are answered', () => replies().length === sent);
  for (const { id, result, error } of replies()) {
    if (result === undefined) expect([id, error.code]).not.toEqual([id, -32603]);
    if (id.includes('__proto__ ') || id.includes('toString ')) expect([id, error?.code]).toEqual([id, 4000]);
    expect(JSON.stringify(result ?? error)).not.toMatch(/\\ud83d/);
  }
  expect(server.logs.filter(({ level }) => level >= 50)).toEqual([]);
  expect((await client.call('session.history', { session_id })).count).toBeGreaterThan(0);
});
