/**
 * A real server process is killed with -9 after each step of an edit, and started again on the same home. Whatever the
 * step: the edit was made, what was taken back is in no answer any more, a second read changes no byte, and the session
 * goes on. So it is when the sidecar is lost, or one from before the edit comes back.
 */
import { copyFile, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../server/authority/crash-points.ts';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, filesOf, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { createForeignWriter } from '../support/foreign-writer.ts';
import { temporaryFolder } from '../support/home.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const POINTS: CrashPoint[] = ['edited', 'edit-saved'];
const PROMPTS = ['the oak', 'the ash', 'the elm'];

const messagesOf = async (server: ChildServer, id: string): Promise<Message[]> =>
  (await server.call('GET', `/api/sessions/${id}/messages?limit=100000`)).json.messages;
const contentsOf = async (server: ChildServer, id: string): Promise<string[]> =>
  (await messagesOf(server, id)).map((row) => row.content);
const sessionOf = async (server: ChildServer, id: string) => (await server.call('GET', `/api/sessions/${id}`)).json;

/** A conversation of three turns, and a server process that dies at a point of the edit to come. */
async function conversation(crashAt: CrashPoint) {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const server = await startChildServer({ home, crashAt });
  const created = await server.call('POST', '/api/sessions', { title: 'Trees', workspace: home });
  const id: string = created.json.session.session_id;
  for (const text of PROMPTS) await server.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text });
  const rows = await messagesOf(server, id);
  expect(rows.map((row) => row.content)).toEqual(PROMPTS.flatMap((text) => [text, `You said: ${text}`]));
  const { revision } = (await sessionOf(server, id)).session;

  /** Sends the edit, which kills the server. */
  const dies = async (what: string, body: object): Promise<void> => {
    const answer = server.call('POST', `/api/sessions/${id}/${what}`, body).then(
      () => 'answered',
      () => 'cut off',
    );
    expect(await server.exited).toBe('SIGKILL');
    expect(await answer).toBe('cut off');
  };

  /** The session is as expected at the first read after a start, and no later read or start changes a byte. */
  const staysAs = async (sessionId: string, expected: string[]): Promise<void> => {
    const next = await startChildServer({ home });
    expect(await contentsOf(next, sessionId)).toEqual(expected);
    const files = await filesOf(home);
    expect(await contentsOf(next, sessionId)).toEqual(expected);
    const { session } = await sessionOf(next, sessionId);
    expect([session.message_count, session.status]).toEqual([expected.length, 'idle']);
    await next.kill();
    expect(await filesOf(home)).toEqual(files);
    const again = await startChildServer({ home });
    expect(await contentsOf(again, sessionId)).toEqual(expected);
    expect(await filesOf(home)).toEqual(files);
    await again.kill();
  };

  /** The next prompt works, and the provider is told nothing of what was taken back. */
  const goesOn = async (sessionId: string, kept: string[]): Promise<void> => {
    const next = await startChildServer({ home });
    const answer = await next.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, { text: 'the yew' });
    expect(answer.json.message.content).toBe('You said: the yew');
    expect(await contentsOf(next, sessionId)).toEqual([...kept, 'the yew', 'You said: the yew']);
    const told = JSON.stringify(provider.requests.at(-1)!.body.messages);
    for (const text of PROMPTS) expect([text, told.includes(text)]).toEqual([text, kept.includes(text)]);
    expect(provider.violations).toEqual([]);
    await next.kill();
    await provider.close();
  };
  return { provider, home, id, rows, revision, dies, staysAs, goesOn };
}

describe('kill -9 in an edit, then a restart', () => {
  it.each(POINTS)('[ED1][ED2][RE1] rewind, at "%s"', { timeout: 60_000 }, async (crashAt) => {
    const { id, rows, revision, dies, staysAs, goesOn } = await conversation(crashAt);
    await dies('rewind', { to_message: rows[1]!.id, revision });
    const kept = ['the oak', 'You said: the oak'];
    await staysAs(id, kept);
    await goesOn(id, kept);
  });

  it.each(POINTS)('[ED1][ED2][RE1] clear, at "%s"', { timeout: 60_000 }, async (crashAt) => {
    const { id, revision, dies, staysAs, goesOn } = await conversation(crashAt);
    await dies('clear', { revision });
    await staysAs(id, []);
    await goesOn(id, []);
  });

  it.each(POINTS)('[ED1][ED3][AD2] retry, at "%s": it is asked again once', { timeout: 60_000 }, async (crashAt) => {
    const { provider, home, id, rows, dies, staysAs, goesOn } = await conversation(crashAt);
    await dies('retry', { request_id: 'again' });
    const next = await startChildServer({ home });
    // The first read already shows nothing of what was taken back.
    const first = await messagesOf(next, id);
    expect(first.slice(0, 4)).toEqual(rows.slice(0, 4));
    expect(first.filter((row) => row.run_id === rows[5]!.run_id)).toEqual([]);
    const receipt = await next.call('POST', `/api/sessions/${id}/retry?wait=1`, { request_id: 'again' });
    expect(receipt.json).toMatchObject({
      admission: { outcome: 'completed' },
      message: { content: 'You said: the elm' },
    });
    await until('it is idle', async () => (await sessionOf(next, id)).session.status === 'idle');
    await next.kill();
    expect(provider.requests.filter((request) => JSON.stringify(request.body).includes('the elm'))).toHaveLength(2);
    const whole = PROMPTS.flatMap((text) => [text, `You said: ${text}`]);
    await staysAs(id, whole);
    await goesOn(id, whole);
  });

  it.each(POINTS)('[ED4][RE1] fork, at "%s": it is there, with its sidecar', { timeout: 60_000 }, async (crashAt) => {
    const { home, id, rows, dies, staysAs, goesOn } = await conversation(crashAt);
    await dies('fork', { at_message: rows[3]!.id });
    const next = await startChildServer({ home });
    const { sessions } = (await next.call('GET', '/api/sessions')).json;
    const forked = sessions.find((session: { session_id: string }) => session.session_id !== id);
    expect(forked).toMatchObject({ title: 'Trees (fork)', message_count: 4 });
    expect(await messagesOf(next, forked.session_id)).toEqual(rows.slice(0, 4));
    expect(await messagesOf(next, id)).toEqual(rows);
    await next.kill();
    const kept = rows.slice(0, 4).map((row) => row.content);
    await staysAs(forked.session_id, kept);
    await goesOn(forked.session_id, kept);
  });
});

describe('after an edit', () => {
  /** A session whose second turn was taken back, its server stopped; and its sidecar from before. */
  async function rewound(edit: 'rewind' | 'clear') {
    const overrides = { runner: createEchoRunner().runner };
    const server = await startTestServer({ overrides });
    const id = await server.session();
    for (const text of ['one', 'two']) await server.ask(id, text);
    const sidecar = path.join(server.home, 'sessions', `${id}.json`);
    const old = path.join(server.home, 'old.json');
    await copyFile(sidecar, old);
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    const body = edit === 'clear' ? { revision } : { turns: 1, revision };
    expect((await server.call('POST', `/api/sessions/${id}/${edit}`, body)).status).toBe(200);
    const rows: Message[] = await server.messages(id);
    expect(rows).toHaveLength(edit === 'clear' ? 0 : 2);
    await server.close();
    return { id, sidecar, old, rows, open: () => startTestServer({ home: server.home, overrides }) };
  }

  it.each(['rewind', 'clear'] as const)('[ED1] %s: a sidecar from before it is cut', async (edit) => {
    const { id, sidecar, old, rows, open } = await rewound(edit);
    await copyFile(old, sidecar);
    const server = await open();
    expect(await server.messages(id)).toEqual(rows);
    expect(JSON.parse(await readFile(sidecar, 'utf8')).messages).toEqual(rows);
    await server.ask(id, 'three');
    await server.close();
    // Also when more was said since: the edit stands between what was then and what is now.
    const said = await open();
    const now = await said.messages(id);
    await said.close();
    await copyFile(old, sidecar);
    expect(await (await open()).messages(id)).toEqual(now);
  });

  it.each(['rewind', 'clear'] as const)(
    '[ED1] %s: a lost sidecar is made without what was taken back',
    async (edit) => {
      const { id, sidecar, rows, open } = await rewound(edit);
      await rm(sidecar);
      const server = await open();
      expect(await server.messages(id)).toEqual(rows);
      await server.ask(id, 'three');
      expect((await server.messages(id)).slice(0, -2)).toEqual(rows);
    },
  );

  it('[ED1][ED4] rows of another program are taken back and copied like ours, and stay away with the sidecar lost', async () => {
    const overrides = { runner: createEchoRunner().runner };
    const server = await startTestServer({ overrides });
    const id = await server.session();
    const foreign = createForeignWriter(server.home, id);
    const said = ['oak', 'oak?', 'ash', 'ash?', 'elm', 'elm?'].map((content, at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content,
      timestamp: 1000 + at,
    }));
    await foreign.writeSidecar(said.slice(0, 4));
    foreign.appendRows(said);
    await server.ask(id, 'yew');
    const contents = async (on = server) => (await on.messages(id)).map((row) => row.content);
    expect(await contents()).toEqual([...said.map((row) => row.content), 'yew', 'echo: yew']);
    const fork = await server.call('POST', `/api/sessions/${id}/fork`, {});
    const { revision } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    const answer = await server.call('POST', `/api/sessions/${id}/rewind`, { turns: 3, revision });
    expect(answer.json).toMatchObject({ removed: 6, session: { message_count: 2 } });
    expect(await contents()).toEqual(['oak', 'oak?']);
    await server.close();
    await rm(path.join(server.home, 'sessions', `${id}.json`));
    const next = await startTestServer({ home: server.home, overrides });
    expect(await contents(next)).toEqual(['oak', 'oak?']);
    await next.ask(id, 'fir');
    expect(await contents(next)).toEqual(['oak', 'oak?', 'fir', 'echo: fir']);
    expect(await next.messages(fork.json.session.session_id)).toHaveLength(8);
  });

  it('[ED1] a reader that was away comes back to what is there now', async () => {
    const { id, rows, open } = await rewound('rewind');
    const server = await open();
    const reader = await server.stream(`/api/sessions/${id}/events`);
    await reader.next((event) => event.type === 'session.snapshot');
    expect((await server.call('GET', `/api/sessions/${id}?messages=all`)).json.messages).toEqual(rows);
  });
});
