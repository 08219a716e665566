/** An agent at work through a whole server: it writes, edits, plans and runs, before the strict provider. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { newMark } from '../support/commands.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import type { ScriptedCall } from '../support/fake-provider-steps.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { processesWith } from '../support/processes.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { PNG, uploaded } from '../support/uploads.ts';

const AUTO = 'approvals: {mode: auto}\n';

async function atWork(
  config = AUTO,
): Promise<{ provider: FakeProvider; server: TestServer; workspace: string; id: string }> {
  const provider = await startFakeProvider();
  onTestFinished(async () => {
    await provider.close();
    expect(provider.violations).toEqual([]);
  });
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, config);
  const server = await startTestServer({
    home,
    env: { PATH: process.env.PATH ?? '', OPENAI_API_KEY: 'hunter2-secret' },
  });
  const workspace = path.join(await temporaryFolder(), 'ws');
  await mkdir(workspace);
  return { provider, server, workspace, id: await server.session({ workspace }) };
}

const calls = (...tool_calls: ScriptedCall[]) => ({ tool_calls });
const terminal = (command: string, more: object = {}): ScriptedCall => ({
  name: 'terminal',
  args: { command, ...more },
});
/** Finds what a test started; none of that outlives it, whatever fails. */
function newWord(): string {
  const word = `w${newMark()}`;
  onTestFinished(() => {
    for (const pid of processesWith(word)) process.kill(pid, 'SIGKILL');
  });
  return word;
}
/** Ignores being asked to end, and is found by that word. */
const stubborn = (word: string) => `sh -c 'trap "" TERM HUP INT; while :; do sleep 0.1; done' ${word}`;

it('[TL2][TL5] it writes, edits and plans: the events tell what changed, the files hold it, the next prompt is valid', async () => {
  const { provider, server, workspace, id } = await atWork();
  const stream = await server.stream(`/api/sessions/${id}/events`);
  provider.next(
    calls(
      { name: 'todo', args: { todos: [{ content: 'write', status: 'in_progress' }] } },
      { name: 'write_file', args: { path: 'notes/a.txt', content: 'one\ntwo\n' } },
    ),
  );
  provider.next(
    calls(
      { name: 'edit_file', args: { path: 'notes/a.txt', old_text: 'two', new_text: 'zwei' } },
      { name: 'edit_file', args: { path: 'notes/a.txt', old_text: 'one', new_text: 'eins' } },
      { name: 'edit_file', args: { path: 'notes/a.txt', old_text: 'three', new_text: 'drei' } },
      { name: 'write_file', args: { path: '../escape.txt', content: 'x' } },
    ),
  );
  expect((await server.ask(id, 'work')).message.status).toBe('complete');
  expect(await readFile(path.join(workspace, 'notes/a.txt'), 'utf8')).toBe('eins\nzwei\n');
  await stream.next(({ type }) => type === 'message.complete');
  const payloads = (type: string) =>
    stream.events.filter((event) => event.type === type).map(({ json }) => json.payload);
  expect(payloads('todo.updated')).toEqual([{ todos: [{ content: 'write', status: 'in_progress' }] }]);
  const completes = payloads('tool.complete');
  expect(completes.find(({ name }) => name === 'write_file').diff).toBe(
    '--- /dev/null\n+++ b/notes/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n',
  );
  expect(completes.filter(({ diff }) => diff)).toHaveLength(3);
  expect(
    completes
      .filter(({ is_error }) => is_error)
      .map(({ result }) => result)
      .sort(),
  ).toEqual([
    expect.stringContaining('"../escape.txt" is outside the workspace'),
    expect.stringContaining('stands 0 times'),
  ]);
  expect((await server.ask(id, 'and now?')).message.status).toBe('complete');
});

it('[TL3] what a command puts out is shown while it runs, also to who comes in the middle, and is no part of its row', async () => {
  const { provider, server, workspace, id } = await atWork();
  const stream = await server.stream(`/api/sessions/${id}/events`);
  const command = 'echo early; until [ -e go ]; do sleep 0.02; done; echo late; env';
  provider.next(calls(terminal(command), { name: 'list_files' }));
  await server.prompt(id, 'run');
  const shown = await stream.next(({ type }) => type === 'tool.output');
  expect(shown.json.payload).toEqual({ tool_id: expect.any(String), text: 'early\n' });
  // The other tool of the same message has ended meanwhile: they run side by side.
  await stream.next(({ type, json }) => type === 'tool.complete' && json.payload.name === 'list_files');
  const late = await server.stream(`/api/sessions/${id}/events`);
  const snapshot = await late.next(({ type }) => type === 'session.snapshot');
  expect(snapshot.json.payload.run.tools[0]).toMatchObject({ name: 'terminal', output: 'early\n' });
  await writeFile(path.join(workspace, 'go'), '');
  await stream.next(({ type }) => type === 'message.complete');
  const types = stream.events
    .filter(({ json }) => json.payload?.tool_id === shown.json.payload.tool_id)
    .map(({ type }) => type);
  expect(types.at(0)).toBe('tool.start');
  expect(types.at(-1)).toBe('tool.complete');
  const row = (await server.messages(id)).find(({ name }) => name === 'terminal');
  expect(row.content).toMatch(/^early\nlate\n[\s\S]*\[exit code 0\]$/);
  expect(row.content).not.toContain('hunter2');
  expect(row).not.toHaveProperty('output');
});

it('[TL4] grandchildren that ignore TERM are gone within 10 s of the interrupt, and the next prompt is valid', {
  timeout: 60_000,
}, async () => {
  const { provider, server, id } = await atWork();
  const word = newWord();
  const command = `(${stubborn(word)} & setsid ${stubborn(word)} & wait) & wait`;
  provider.next({ text: 'I will' }, calls(terminal(command), terminal(`yes ${word}`)));
  const stream = await server.stream(`/api/sessions/${id}/events`);
  await server.prompt(id, 'run');
  await until('all run', () => processesWith(word).length >= 4);
  const answer = await server.call('POST', `/api/sessions/${id}/interrupt`, {});
  expect(answer.status).toBeLessThan(300);
  await until('nothing of it is left', () => processesWith(word).length === 0, 10_000);
  const complete = await stream.next(({ type }) => type === 'message.complete');
  expect(complete.json.payload).toMatchObject({ outcome: 'interrupted' });
  expect((await server.ask(id, 'and now?')).message).toMatchObject({
    status: 'complete',
    content: 'You said: and now?',
  });
});

it('[TL2][TL3][TL5] a client of the gateway is told the same of tools as a reader of the stream', async () => {
  const { provider, server, id } = await atWork();
  const stream = await server.stream(`/api/sessions/${id}/events`);
  const client = await connectGateway(server.url);
  await client.call('session.resume', { session_id: id });
  provider.next(
    calls(
      { name: 'todo', args: { todos: [{ content: 'write', status: 'completed' }] } },
      { name: 'write_file', args: { path: 'a.txt', content: 'one\n' } },
      { name: 'read_file', args: { path: '../../etc/passwd' } },
      terminal('echo up; exit 3'),
    ),
  );
  await server.ask(id, 'work');
  await stream.next(({ type }) => type === 'message.complete');
  const isOfTools = (type: string): boolean => /^(tool|todo)\./.test(type);
  const streamed = stream.events.filter(({ type }) => isOfTools(type)).map(({ type, json }) => [type, json.payload]);
  const told = client.frames
    .map(({ params }) => params)
    .filter((params) => params && isOfTools(params.type))
    .map(({ type, payload }) => [type, payload]);
  expect(told).toEqual(streamed);
  expect(new Set(told.map(([type]) => type))).toEqual(
    new Set(['tool.start', 'todo.updated', 'tool.output', 'tool.complete']),
  );
});

it('[TL4][AT6] a session that is deleted while its command runs leaves no process, note or file', async () => {
  const { provider, server, id } = await atWork();
  const word = newWord();
  await uploaded(server, id, 'dot.png', PNG);
  provider.next(calls(terminal(`${stubborn(word)} & setsid ${stubborn(word)} & wait`)));
  await server.prompt(id, 'run');
  await until('both run', () => processesWith(word).length >= 2);
  expect((await server.call('DELETE', `/api/sessions/${id}?stop=1`)).status).toBe(204);
  await until('nothing of it is left', () => processesWith(word).length === 0, 10_000);
  await until('no note', async () => (await readdir(path.join(server.home, 'commands'))).length === 0);
  expect(await readdir(path.join(server.home, 'attachments'))).toEqual([]);
});

it('[TL4] a server that stops takes its commands with it', { timeout: 60_000 }, async () => {
  const { provider, server, id } = await atWork();
  const word = newWord();
  provider.next(calls(terminal(stubborn(word))));
  await server.prompt(id, 'run');
  await until('it runs', () => processesWith(word).length >= 1);
  await server.close();
  expect(processesWith(word)).toEqual([]);
});

it('[TL4] a server that is killed with -9 leaves commands only until the next start, and the next prompt is valid', {
  timeout: 60_000,
}, async () => {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, AUTO);
  const first = await startChildServer({ home });
  const { json } = await first.call('POST', '/api/sessions', { workspace: home });
  const prompts = `/api/sessions/${json.session.session_id}/prompts`;
  const word = newWord();
  provider.next(calls(terminal(`${stubborn(word)} & setsid ${stubborn(word)} & wait`)));
  await first.call('POST', prompts, { text: 'run' });
  await until('both run', () => processesWith(word).length >= 2);
  await first.kill();
  expect(processesWith(word).length).toBeGreaterThanOrEqual(2);

  const second = await startChildServer({ home });
  await until('nothing of it is left', () => processesWith(word).length === 0, 10_000);
  const answer = await second.call('POST', `${prompts}?wait=1`, { text: 'and now?' });
  expect(answer.json.message).toMatchObject({ status: 'complete', content: 'You said: and now?' });
  expect(provider.violations).toEqual([]);
  await provider.close();
});

it.each(['auto', 'manual'])(
  '[TL1][AP2] arguments that no tool can take are told to the model, never the end of a turn: %s',
  async (mode) => {
    const { provider, server, id } = await atWork(`approvals: {mode: ${mode}, timeout: 1}\n`);
    const deep = `{"path":"a.txt","content":"x","more":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const strange = { path: 'b.txt', content: 'x', valueOf: 'x', toString: { toString: 1 } };
    provider.next(calls({ name: 'write_file', args: deep }, { name: 'write_file', args: strange }));
    expect((await server.ask(id, 'work')).message.status).toBe('complete');
    const results = (await server.messages(id)).flatMap((row) => (row.role === 'tool' ? [row.content] : []));
    expect(results).toHaveLength(2);
    expect(results[0]).toContain('not a JSON object');
    expect(results[1]).toMatch(mode === 'auto' ? /Created "b\.txt"/ : /did not allow/);
    expect((await server.ask(id, 'and now?')).message.status).toBe('complete');
  },
);
