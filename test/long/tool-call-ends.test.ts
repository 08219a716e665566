/**
 * Turns that end at three points within a tool call: while the person is asked, while a command runs beside a call that is
 * done, and when the results are there and the model has not answered to them. They end by kill -9, by kill -9 with the
 * journals lost, and by a stop; a strict provider of each kind takes the next prompt, and all that was seen is still there.
 */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { type Step, startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { until } from '../support/until.ts';

const QUESTION = { name: 'clarify', args: { questions: [{ question: 'Which one?' }] } };
const COMMAND = { name: 'terminal', args: { command: 'echo begun; exec sleep 60' } };
const LISTING = { name: 'list_files', args: {} };
/** What the model answers first, and to the results; the last answer stops at its end. */
const POINTS: Record<string, Step[][]> = {
  'the person is asked': [[{ text: 'One question.' }, { tool_calls: [QUESTION] }]],
  'a command runs': [[{ tool_calls: [LISTING, COMMAND] }]],
  'the results are there': [[{ tool_calls: [LISTING, { name: 'no such tool' }] }], [{ text: 'So' }]],
};
const WAYS = ['kill -9', 'kill -9 and lost journals', 'a stop'] as const;
const CASES = (['custom', 'anthropic'] as const).flatMap((kind) => WAYS.map((way) => [kind, way] as const));

const messagesOf = async (server: ChildServer, address: string): Promise<Message[]> =>
  (await server.call('GET', `${address}/messages?limit=1000`)).json.messages;

async function begin(kind: 'custom' | 'anthropic') {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, 'approvals: {mode: auto}\n', kind);
  const env = { ANTHROPIC_API_KEY: 'key-0123456789' };
  const start = () => startChildServer({ home }, env);
  const server = await start();
  const sessions = new Map<string, string>();
  for (const [point, answers] of Object.entries(POINTS)) {
    const hold = provider.hold();
    for (const [at, steps] of answers.entries()) {
      const isHeld = at > 0;
      const isIts = ({ content }: { content?: unknown }) => JSON.stringify(content ?? '').includes(point);
      provider.script(({ messages }) => messages.some(isIts), isHeld ? [...steps, { hold }] : steps);
    }
    const { json } = await server.call('POST', '/api/sessions', { workspace: home, title: point });
    const address = `/api/sessions/${json.session.session_id}`;
    sessions.set(point, address);
    const reader = await server.stream(`${address}/events`);
    await server.call('POST', `${address}/prompts`, { text: point });
    if (answers.length > 1) await hold.reached;
    else if (point.includes('asked')) {
      await until('it waits', async () => (await server.call('GET', address)).json.session.status === 'waiting');
    } else {
      await reader.next(({ type }) => type === 'tool.output');
      await until('the other call is done', () => reader.events.some(({ type }) => type === 'tool.complete'));
    }
    reader.drop();
  }
  return { provider, home, server, sessions, start };
}

it.each(CASES)('[RU7][CL6][RE1] %s: ended by %s, the next prompt is valid', { timeout: 60_000 }, async (kind, way) => {
  const { provider, home, server, sessions, start } = await begin(kind);
  let next = server;
  if (way === 'a stop') {
    for (const address of sessions.values()) {
      expect((await server.call('POST', `${address}/interrupt`, {})).status).toBe(200);
      await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
    }
  } else {
    await server.kill();
    if (way !== 'kill -9') {
      const files = await readdir(home, { recursive: true });
      const journals = files.filter((file) => file.endsWith('.jsonl'));
      expect(journals).toHaveLength(sessions.size);
      for (const file of journals) await rm(path.join(home, file));
    }
    next = await start();
  }
  for (const [point, address] of sessions) {
    const before = await messagesOf(next, address);
    expect(before[0]).toMatchObject({ role: 'user', content: point });
    const { json } = await next.call('POST', `${address}/prompts?wait=1`, { text: 'and now?' });
    expect([point, json.message]).toMatchObject([point, { status: 'complete', content: 'You said: and now?' }]);
    expect((await messagesOf(next, address)).slice(0, before.length)).toEqual(before);
    const sent = provider.requests.at(-1)!.body.messages;
    const calls = sent.flatMap(({ tool_calls }) => tool_calls ?? []);
    const results = sent.filter(({ role }) => role === 'tool');
    expect(results.map(({ tool_call_id }) => tool_call_id).sort()).toEqual(calls.map(({ id }) => id).sort());
    // Whatever was done before the end is told as done: a result that came is not asked for again.
    if (point === 'the results are there') expect(results).toHaveLength(2);
  }
  expect(provider.violations).toEqual([]);
});
