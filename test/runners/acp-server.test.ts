/** Whole servers whose sessions are answered by an agent of others: what they promise holds as with one of our own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { SCRIPTED_AGENT } from '../support/acp-bench.ts';
import { startChildServer } from '../support/child-server.ts';
import { temporaryFolder } from '../support/home.ts';
import { isRunning } from '../support/processes.ts';
import { readStateDb } from '../support/state-db.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

/** A home whose sessions go to the scripted agent, and a workspace beside it. */
async function homeWith(...flags: string[]) {
  const folder = await temporaryFolder();
  const [home, workspace] = [path.join(folder, 'home'), path.join(folder, 'work')];
  const [pids, sent] = [path.join(folder, 'pids'), path.join(folder, 'sent')];
  for (const made of [home, workspace]) await mkdir(made);
  const command = [process.execPath, SCRIPTED_AGENT, '--pids', pids, '--log', sent, ...flags];
  const config = `runner: {kind: acp, name: scripted, command: ${JSON.stringify(command)}, cancel_timeout_s: 1}\n`;
  await writeFile(path.join(home, 'config.yaml'), config);
  return {
    home,
    workspace,
    /** Pids of the agents so far, and of what they started. */
    pids: (): number[] => (existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n').map(Number) : []),
    prompts: (): string[] =>
      readFileSync(sent, 'utf8')
        .split('\n')
        .filter((line) => line.includes('"session/prompt"'))
        .map((line) =>
          JSON.parse(line)
            .params.prompt.map((block: { text?: string }) => block.text ?? '')
            .join('\n'),
        ),
    reached: (name: string) => until(`${name} is reached`, () => existsSync(path.join(workspace, name))),
    go: (name: string) => writeFile(path.join(workspace, name), ''),
  };
}

const status = async (server: Pick<TestServer, 'call'>, id: string): Promise<string> =>
  (await server.call('GET', `/api/sessions/${id}`)).json.session.status;

it('[AC1] prompts are kept and run in their order; a stop keeps what was said, and what is queued goes on', async () => {
  const { home, workspace, reached, pids } = await homeWith();
  const server = await startTestServer({ home });
  const id = await server.session({ workspace });
  await server.prompt(id, 'acp: say Half an answer; touch begun; hang');
  await server.prompt(id, 'second');
  await server.prompt(id, 'third');
  await reached('begun');
  await until('it is shown', async () => JSON.stringify(await server.messages(id)).includes('Half an answer'));
  expect((await server.call('POST', `/api/sessions/${id}/interrupt`)).json.status).toBe('interrupted');
  await until('all is answered', async () => (await status(server, id)) === 'idle');
  const rows = (await server.messages(id)).filter(({ role }) => role === 'assistant');
  expect(rows.map(({ content, status: state }) => [content, state])).toEqual([
    ['Half an answer', 'interrupted'],
    ['You said: second', 'complete'],
    ['You said: third', 'complete'],
  ]);
  expect(pids()).toHaveLength(1);
});

it('[AC1] what is said to a running turn goes to the agent as a further prompt of it', async () => {
  const { home, workspace, reached, go, prompts } = await homeWith();
  const server = await startTestServer({ home });
  const id = await server.session({ workspace });
  const first = await server.prompt(id, 'acp: say one; touch begun; wait go');
  await reached('begun');
  const said = await server.call('POST', `/api/sessions/${id}/prompts`, { text: 'and two', mode: 'steer' });
  expect(said.status).toBe(202);
  await go('go');
  await until('it is over', async () => (await status(server, id)) === 'idle');
  expect(prompts()).toEqual(['acp: say one; touch begun; wait go', 'and two']);
  const rows = await server.messages(id);
  expect(rows.map(({ content }) => content)).toEqual([
    'acp: say one; touch begun; wait go',
    'one',
    'and two',
    'You said: and two',
  ]);
  expect(new Set(rows.map(({ run_id }) => run_id))).toEqual(new Set([first.admission.run_id]));
});

it('[AC5] a session that is deleted takes its agent with it, and the stop of the server the others', async () => {
  const { home, pids } = await homeWith('--grandchildren');
  const server = await startTestServer({ home });
  const [id, other] = [await server.session(), await server.session()];
  for (const one of [id, other]) await server.ask(one, 'hello');
  expect(readdirSync(path.join(home, 'agent-folders')).sort()).toEqual([id, other].sort());
  const [first, second] = [pids().slice(0, 3), pids().slice(3)];
  expect((await server.call('DELETE', `/api/sessions/${id}`)).status).toBe(204);
  expect(first.filter(isRunning)).toEqual([]);
  expect(second.filter(isRunning)).toHaveLength(3);
  expect(readdirSync(path.join(home, 'agent-folders'))).toEqual([other]);
  const told = readStateDb(home, (db) => db.prepare('SELECT session_id FROM agent_sessions').pluck().all());
  expect(told).toEqual([other]);
  await server.close();
  expect(second.filter(isRunning)).toEqual([]);
});

it('[AC1, AC5] after kill -9 of the server no process is left, what was shown is kept, and the agent goes on', async () => {
  const folder = await temporaryFolder();
  const agent = await homeWith('--grandchildren', '--ignore-term', '--capabilities', 'load', '--sessions', folder);
  const { home, workspace, pids, prompts } = agent;
  const first = await startChildServer({ home });
  const { session_id: id } = (await first.call('POST', '/api/sessions', { workspace })).json.session;
  const address = `/api/sessions/${id}/prompts`;
  await first.call('POST', `${address}?wait=1`, { text: 'My name is Ada.' });
  await first.call('POST', address, { text: 'acp: say I was about to; open c1 read a.txt; touch begun; freeze' });
  await first.call('POST', address, { text: 'Go on.' });
  await agent.reached('begun');
  const shown = async (): Promise<boolean> =>
    JSON.stringify((await first.call('GET', `/api/sessions/${id}/messages`)).json).includes('about to');
  await until('it is shown', shown);
  await first.kill();
  expect(pids().filter(isRunning)).toHaveLength(3);

  const second = await startChildServer({ home });
  await until('the orphans are ended', () => !pids().slice(0, 3).some(isRunning));
  const get = async (place: string) => (await second.call('GET', `/api/sessions/${id}${place}`)).json;
  await until('all is answered', async () => (await get('')).session.status === 'idle');
  const rows: { role: string; content: string }[] = (await get('/messages')).messages;
  const texts = rows.map(({ content }) => content);
  expect(texts.slice(0, 4)).toEqual([
    'My name is Ada.',
    'You said: My name is Ada.',
    expect.stringMatching(/^acp:/),
    'I was about to',
  ]);
  expect(texts.at(-1)).toBe('You said: Go on.');
  // It knows the first turn, and is told of the one that was cut off.
  expect(prompts().at(-1)).toMatch(/I was about to[\s\S]*Go on\.$/);
  expect(prompts().at(-1)).not.toContain('Ada');
  second.process.kill('SIGTERM');
  expect(await second.exited).toBe(0);
  expect(pids().filter(isRunning)).toEqual([]);
});
