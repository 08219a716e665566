/**
 * A server is killed with -9 while turns stand at every point of a tool call, and started again: a strict provider takes
 * the next prompt, whatever the turns left.
 */
import { expect, it } from 'vitest';
import { type ChildServer, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { type Step, startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { until } from '../support/until.ts';

const call = (args: unknown = {}): Step => ({ tool_calls: [{ name: 'list_files', args }] });
/** Answers one after the other, as far as they come; the last one stops at its end. */
const POINTS: Record<string, Step[][]> = {
  'before anything': [[]],
  'in its thoughts': [[{ reasoning: 'hm' }]],
  'in its text': [[{ text: 'I will' }]],
  'with a call that is not finished': [[{ text: 'I will' }, call()]],
  'after a result': [[call()], []],
  'after the result of a call with thoughts and text': [[{ reasoning: 'hm' }, { text: 'So.' }, call()], []],
  'in the answer to a result': [[call()], [{ text: 'I see' }]],
  'in a second call': [[call()], [{ text: 'I see' }, call()]],
  'after two calls side by side': [
    [{ tool_calls: [{ name: 'list_files' }, { name: 'read_file', args: { path: 'x' } }] }],
    [],
  ],
  'after a call with broken arguments': [[call('{"path": ')], [{ text: 'Oh' }]],
  'after a tool that there is not': [[{ tool_calls: [{ name: 'rm -rf /' }] }], []],
};

async function newSession(server: ChildServer, workspace: string): Promise<string> {
  const { json } = await server.call('POST', '/api/sessions', { workspace });
  return `/api/sessions/${json.session.session_id}/prompts`;
}

async function expectAnswer(server: ChildServer, prompts: string): Promise<void> {
  const { json } = await server.call('POST', `${prompts}?wait=1`, { text: 'and now?' });
  expect(json.message).toMatchObject({ status: 'complete', content: 'You said: and now?' });
}

it('[RU7] killed while turns stand at every point, the next prompts are valid', { timeout: 120_000 }, async () => {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const first = await startChildServer({ home });
  const sessions: string[] = [];
  for (const [title, answers] of Object.entries(POINTS)) {
    const hold = provider.hold();
    for (const [at, steps] of answers.entries()) {
      const script = at === answers.length - 1 ? [...steps, { hold }] : steps;
      provider.script(({ messages }) => hasSaid(messages, title), script);
    }
    const prompts = await newSession(first, home);
    sessions.push(prompts);
    await first.call('POST', prompts, { text: title });
    await hold.reached;
  }
  await first.kill();

  const second = await startChildServer({ home });
  await Promise.all(sessions.map((prompts) => expectAnswer(second, prompts)));
  await until('nothing is answered any more', () => provider.running() === 0);
  expect(provider.violations).toEqual([]);
  await provider.close();
});

/** Whether a conversation began with that prompt. */
const hasSaid = (messages: { role: string; content?: unknown }[], prompt: string): boolean =>
  messages.some(({ role, content }) => role === 'user' && content === prompt);

it.each([3, 5])('[RU7] killed at batch %i of its events, the same', { timeout: 120_000 }, async (times) => {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const first = await startChildServer({ home, crashAt: 'mid-stream', times });
  const prompts = await newSession(first, home);
  const text =
    'script:chunks=1,delay=12,tool=list_files script:chunks=2,delay=12,tool=list_files script:chunks=9,delay=12';
  await first.call('POST', prompts, { text }).catch(() => {}); // The kill may come before the answer.
  expect(await first.exited).toBe('SIGKILL');
  const second = await startChildServer({ home });
  await expectAnswer(second, prompts);
  expect(provider.violations).toEqual([]);
  await provider.close();
});
