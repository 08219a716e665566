import { mkdir, rm, mkdtemp } from 'node:fs/promises';
import path from 'node:path';
import os from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AcpBench, type AcpBenchChange, createAcpBench } from '../support/acp-bench.ts';
import { startConversation } from '../support/acp-conversation.ts';
import { runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';

let bench: AcpBench;
const open = async (change?: AcpBenchChange): Promise<AcpBench> => {
  await bench?.close();
  bench = await createAcpBench(change);
  return bench;
};
beforeEach(async () => {
  bench = await createAcpBench();
});
afterEach(() => bench.close());
const scripted = (body: string) =>
  bench.command(
    process.execPath,
    '-e',
    `// ${bench.home}
    const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    const say = (text) => send({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } });
    const answers = {
      initialize: (id) => send({ id, result: { protocolVersion: 1 } }),
      'session/new': (id) => send({ id, result: { sessionId: 's' } }),
      'session/prompt': (id) => { say('hello'); send({ id, result: { stopReason: 'end_turn' } }); },
    };
    const got = [];
    ${body}
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const m = JSON.parse(line);
      got.push(m);
      if (m.method && answers[m.method]) answers[m.method](m.id, m.params);
      else if (!m.method && answers.answered) answers.answered(m);
    });`,
  );
const clock = () => { const t = performance.now(); return () => Math.round(performance.now() - t); };


import { createAgentSessionStore } from '../../db/agent-session-store.ts';
import { openStateDb } from '../../db/client.ts';
import { stateDbOptions } from '../support/state-db.ts';

it('two servers: a stale live session', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-two-'));
  const state = await openStateDb(stateDbOptions(path.join(folder, 'state.db')));
  const store = createAgentSessionStore(state);
  await open({ store });
  const second = await createAcpBench({ store });
  const flags = ['--sessions', path.join(folder, 's'), '--capabilities', 'load'];
  const c = startConversation(bench.agent(...flags), { workspace: bench.workspace });
  await c.say('one');
  await c.say('two', { runner: second.agent(...flags) });
  const r = await c.say('acp: memory');
  console.log('STALE?', r.text, r.end);
  await second.close();
  state.close();
  await rm(folder, { recursive: true });
}, 40_000);

it('model changes between turns', async () => {
  const c = startConversation(bench.agent(), { workspace: bench.workspace });
  const flags = ['--models', 'big,small', '--modes', 'ask,code'];
  const { SCRIPTED_AGENT } = await import('../support/acp-bench.ts');
  const target = { name: 'scripted', command: [process.execPath, SCRIPTED_AGENT, '--pids', path.join(bench.home, 'pids'), ...flags], env: {} };
  const of = (model: string | null, mode: string | null) => ({ kind: 'acp', run: (turn: never, signal: never) => bench.acp.run(turn, signal, target, model, mode) });
  for (const [model, mode] of [[null, null], ['small', null], ['small', 'code'], [null, null], ['none', null], ['big', 'code'], ['big', 'nowhere'], [null, null]] as const) {
    const r = await c.say('acp: about; memory', { runner: of(model, mode) as never });
    const text = r.text.replace(/"env":.*?\]/, '');
    console.log(model, mode, text, r.end);
  }
}, 40_000);
it.each([['--slow-start', '6000'], ['--silent', 'initialize'], ['--silent', 'session/new']])('stop in a start %s', async (...flags) => {
  const c = startConversation(bench.agent(...flags), { workspace: bench.workspace });
  const stop = new AbortController();
  const first = c.say('hello', { signal: stop.signal });
  await until('started', () => bench.processes().length > 0);
  if (flags[1] === 'session/new') await until('asked', async () => (await bench.sent('session/new')).length > 0);
  stop.abort();
  await first;
  const t = clock();
  const second = await c.say('again', { runner: bench.agent() });
  console.log('second', t(), second.text, second.end);
}, 40_000);
