/** Agents that do what no agent should, and moments in which two things happen at once. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAgentSessionStore } from '../../db/agent-session-store.ts';
import { openStateDb } from '../../db/client.ts';
import type { Answer } from '../../server/runners/runner.ts';
import { type AcpBench, createAcpBench, SCRIPTED_AGENT } from '../support/acp-bench.ts';
import { startConversation } from '../support/acp-conversation.ts';
import { startChildServer } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { processesWith } from '../support/processes.ts';
import { stateDbOptions } from '../support/state-db.ts';
import { runTurn } from '../support/turns.ts';
import { until } from '../support/until.ts';

let bench: AcpBench;

beforeEach(async () => {
  bench = await createAcpBench();
});
afterEach(() => bench.close());

/** An agent of a few lines: `prompt` is what it does when it is prompted; `answered` with each answer that it gets. */
const agentThat = (prompt: string, answered = '', more = '') =>
  bench.command(
    process.execPath,
    '-e',
    `// ${bench.home}
    const put = (line) => process.stdout.write(line + '\\n');
    const send = (message) => put(JSON.stringify({ jsonrpc: '2.0', ...message }));
    const ask = (id, method, params) => send({ id, method, params });
    const say = (text) =>
      send({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } });
    const answers = [];
    let promptId = null;
    const end = () => send({ id: promptId, result: { stopReason: 'end_turn' } });
    const methods = {
      initialize: (id) => send({ id, result: { protocolVersion: 1 } }),
      'session/new': (id) => send({ id, result: { sessionId: 's' } }),
      'session/prompt': (id) => { promptId = id; ${prompt} },
    };
    ${more}
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const message = JSON.parse(line);
      if (message.method) return methods[message.method]?.(message.id, message.params);
      answers.push(message);
      ${answered}
    });`,
  );
const ask = (runner: ReturnType<typeof agentThat>, more: object = {}) =>
  runTurn(runner, { workspace: bench.workspace, ...more });
const COMPLETED = { kind: 'completed' };

describe('an agent that says too much', () => {
  it('[AC6] 100,000 updates in one turn are all told, in their order', async () => {
    const { text, end } = await ask(bench.agent(), { input: 'acp: pour 100000 0' });
    expect(end).toEqual(COMPLETED);
    expect(
      text
        .split(' ')
        .slice(0, -1)
        .every((each, at) => each === String(at + 1)),
    ).toBe(true);
    expect(text.endsWith(' 100000 ')).toBe(true);
  }, 30_000);

  it('[AC6] 100 MB on stderr hold nobody up', async () => {
    const ran = await ask(
      agentThat(`for (let n = 0; n < 100; n += 1) process.stderr.write('x'.repeat(1e6)); say('done'); end();`),
    );
    expect(ran).toMatchObject({ text: 'done', end: COMPLETED });
  }, 30_000);

  it('[AC6] a second answer to the same request is none', async () => {
    const twice = `methods['session/new'] = (id) => { for (const sessionId of ['s', 't']) send({ id, result: { sessionId } }); send({ id: 99, result: {} }); };`;
    const ran = await ask(agentThat(`say('done'); end(); end();`, '', twice));
    expect(ran).toMatchObject({ text: 'done', end: COMPLETED });
  });

  it('[AC20] of 1,000 questions at once 64 are open at a time; the others are refused, and the turn goes on', async () => {
    let open = 0;
    let most = 0;
    const options = `[{ optionId: 'yes', kind: 'allow_once', name: 'x' }, { optionId: 'no', kind: 'reject_once', name: 'x' }]`;
    const agent = agentThat(
      `for (let n = 0; n < 1000; n += 1) ask('p' + n, 'session/request_permission', { sessionId: 's', toolCall: { toolCallId: 'c' + n, title: 't' + n }, options: ${options} });`,
      `if (answers.length === 1000) { say(String(answers.filter((one) => one.result?.outcome.optionId === 'no').length)); end(); }`,
    );
    const ran = await ask(agent, {
      ask: async (): Promise<Answer> => {
        open += 1;
        most = Math.max(most, open);
        await until('all are there', () => most === 64);
        open -= 1;
        return { kind: 'choice', choice: 'once' };
      },
    });
    expect(most).toBe(64);
    expect(Number(ran.text)).toBeGreaterThan(0);
    expect(ran.end).toEqual(COMPLETED);
  }, 30_000);
});

describe('an agent that speaks badly', () => {
  it('[AC6] ids of any kind are answered as they came', async () => {
    const agent = agentThat(
      `const ids = ['a', '', 'x'.repeat(1e6), 1e300, -1, 0.5, 0, 0, null, '__proto__'];
      const sorted = (list) => list.map((id) => JSON.stringify(id)).sort().join();
      for (const id of ids) ask(id, 'fs/read_text_file', { sessionId: 's', path: 'none' });
      answered = () => {
        if (answers.length < ids.length) return;
        say(sorted(answers.map(({ id }) => id)) === sorted(ids) ? 'the same' : 'others');
        end();
      };`,
      'answered();',
      'let answered = () => {};',
    );
    expect(await ask(agent)).toMatchObject({ text: 'the same', end: COMPLETED });
  });

  it('[AC6] requests that nobody knows, and parameters that are none, are refused one by one', async () => {
    const asks: [string, unknown][] = [
      ['x/y', {}],
      ['initialize', {}],
      ['session/update', { sessionId: 's', update: {} }],
      ['session/request_permission', null],
      ['session/request_permission', { sessionId: 's' }],
      ['fs/read_text_file', 'x'],
      ['fs/write_text_file', { sessionId: 's', path: 7 }],
      ['terminal/create', { sessionId: 's', command: [] }],
      ['terminal/create', { sessionId: 'other', command: 'ls' }],
      ['terminal/output', { sessionId: 's', terminalId: 'none' }],
    ];
    const agent = agentThat(
      `put('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}'); send({ method: 'x' }); send({ method: 'session/update' });
      ${JSON.stringify(asks)}.forEach(([method, params], n) => ask(n, method, params));`,
      `if (answers.length === ${asks.length}) { say(JSON.stringify(answers.sort((a, b) => a.id - b.id).map(({ error }) => error?.code))); end(); }`,
    );
    const ran = await ask(agent);
    expect(JSON.parse(ran.text)).toEqual([
      -32601, -32601, -32601, -32600, -32602, -32600, -32602, -32602, -32600, -32002,
    ]);
    expect(ran.end).toEqual(COMPLETED);
  });

  it('[AC6] what is nested without end breaks nothing', async () => {
    const deep = `'['.repeat(50000) + ']'.repeat(50000)`;
    const agent = agentThat(
      `const deep = ${deep};
      put('{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"execute","rawInput":{"command":"ls","x":' + deep + '}}}}');
      put('{"jsonrpc":"2.0","id":' + deep + ',"method":"fs/read_text_file","params":' + deep + '}');
      put('{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","kind":"allow_once","name":"n"}]}}');
      put('{"jsonrpc":"2.0","id":2,"method":"x/y","params":' + deep + '}');`,
      `if (answers.length === 2) { say('done'); end(); }`,
    );
    expect(await ask(agent)).toMatchObject({ text: 'done', end: COMPLETED });
  });

  it('[AC4] an answer that is none ends the turn as an error, or as what was said', async () => {
    for (const error of ['null', '"x"', '{}', '{"code":"a","message":1}']) {
      const ran = await ask(agentThat(`put('{"jsonrpc":"2.0","id":' + promptId + ',"error":${error}}');`));
      expect(ran.end).toMatchObject({ kind: 'failed', error: { code: 'provider_error' } });
    }
    for (const result of ['null', '7', '{"stopReason":{}}', '{"stopReason":"what","usage":[]}']) {
      const ran = await ask(
        agentThat(`say('done'); put('{"jsonrpc":"2.0","id":' + promptId + ',"result":${result}}');`),
      );
      expect(ran).toMatchObject({ text: 'done', end: COMPLETED });
    }
  });

  it('[AC4] one that closes its output and lives is ended', async () => {
    const agent = agentThat(
      `say('half'); setTimeout(() => require('node:fs').closeSync(1), 20); setInterval(() => {}, 1000);`,
    );
    const ran = await ask(agent);
    expect(ran).toMatchObject({ text: 'half', end: { kind: 'failed', error: { code: 'agent_crashed' } } });
    expect(bench.processes()).toEqual([]);
  });

  it('[AC20] one that ends its turn while it asks has its answer from nobody', async () => {
    const options = `[{ optionId: 'y', kind: 'allow_once', name: 'n' }]`;
    const agent = agentThat(
      `if (answers.length) { say(JSON.stringify(answers)); end(); } else { ask('p', 'session/request_permission', { sessionId: 's', toolCall: { toolCallId: 'c', title: 't' }, options: ${options} }); setTimeout(end, 100); }`,
    );
    let withdraw = (_answer: Answer): void => {};
    const asked = new Promise<Answer>((resolve) => {
      withdraw = resolve;
    });
    const first = await ask(agent, { ask: () => asked });
    expect(first.events.map(({ type }) => type)).toEqual(['message.start', 'tool.start', 'tool.complete']);
    expect(bench.running()).toBe(0);
    withdraw({ kind: 'withdrawn' });
    expect((await ask(agent)).text).toContain('cancelled');
  });
});

describe('two things at once', () => {
  it.each([
    ['before it answers', ['--slow-start', '60000'], 'initialize'],
    ['and hangs', ['--silent', 'initialize'], 'initialize'],
    ['and opens no session', ['--silent', 'session/new'], 'session/new'],
  ])('[AC5] a stop while the agent starts %s ends it, and the next turn begins at once', async (_, flags, method) => {
    const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
    const stop = new AbortController();
    const first = conversation.say('one', { runner: bench.agent(...flags), signal: stop.signal });
    await until('it was asked', async () => (await bench.sent(method)).length > 0);
    stop.abort();
    await first;
    expect((await conversation.say('two')).text).toBe('You said: two');
    expect(bench.processes()).toHaveLength(1);
  });

  it('[AC3] an agent that dies between two turns is started again and told what there was', async () => {
    const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
    await conversation.say('one');
    for (const pid of bench.processes()) process.kill(pid, 'SIGKILL');
    await until('it is gone', () => bench.processes().length === 0);
    const { text, end } = await conversation.say('acp: blocks');
    expect(end).toEqual(COMPLETED);
    expect(text).toContain('You said: one');
  });

  it('[AC3] an agent that is warm here is not used as it is when another server went on with its session', async () => {
    const folder = await temporaryFolder();
    const state = await openStateDb(stateDbOptions(path.join(folder, 'state.db')));
    const store = createAgentSessionStore(state);
    const servers = [await createAcpBench({ store }), await createAcpBench({ store })] as const;
    const [one, two] = servers.map((each) => each.agent('--sessions', folder, '--capabilities', 'load'));
    const conversation = startConversation(one!, { workspace: bench.workspace });
    await conversation.say('first');
    await conversation.say('second', { runner: two! });
    const { text } = await conversation.say('acp: blocks');
    expect(text).toContain('first');
    expect(text).toContain('second');
    for (const server of servers) await server.close();
    state.close();
  });

  it('[AC5] a server that starts on the same home ends no agent of the one that runs, and goes on with its session', async () => {
    const home = await temporaryFolder();
    const command = [process.execPath, SCRIPTED_AGENT, '--pids', path.join(home, 'pids')];
    await mkdir(home, { recursive: true });
    await writeFile(path.join(home, 'config.yaml'), `runner: {kind: acp, command: ${JSON.stringify(command)}}\n`);
    const one = await startChildServer({ home });
    const address = `/api/sessions/${(await one.call('POST', '/api/sessions', {})).json.session.session_id}`;
    const said = async (server: typeof one, text: string) =>
      (await server.call('POST', `${address}/prompts?wait=1`, { text })).json.message.content;
    expect(await said(one, 'first')).toBe('You said: first');
    const [agent] = processesWith(path.join(home, 'pids'));
    const two = await startChildServer({ home });
    expect(await said(two, 'acp: blocks')).toContain('You said: first');
    expect(processesWith(path.join(home, 'pids'))).toContain(agent);
    expect(await said(one, 'acp: blocks')).toContain('acp: blocks');
    for (const server of [one, two]) {
      server.process.kill('SIGTERM');
      await server.exited;
    }
    expect(processesWith(path.join(home, 'pids'))).toEqual([]);
  }, 60_000);
});
