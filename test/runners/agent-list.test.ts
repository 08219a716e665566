/** Which agents of others a session can be given, where they are looked for, and what is remembered of them. */
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createAgentOfferStore } from '../../db/agent-offer-store.ts';
import { openStateDb } from '../../db/client.ts';
import { type AgentListParts, createAgentList } from '../../server/runners/acp/agent-list.ts';
import type { AgentTarget } from '../../server/runners/acp/agent-target.ts';
import { KNOWN_AGENTS } from '../../server/runners/acp/known-agents.ts';
import { createCatalog } from '../../server/runners/catalog.ts';
import { createRouterRunner } from '../../server/runners/router.ts';
import type { ModelInfo, Runner } from '../../server/runners/runner.ts';
import { temporaryFolder } from '../support/home.ts';
import { newStateFile, stateDbOptions } from '../support/state-db.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { drive, turnOf } from './model-bench.ts';

const OFFER = {
  models: [
    { id: 'default', label: 'Recommended' },
    { id: 'org/big', label: 'Big' },
  ],
  currentModel: 'org/big',
  modes: [
    { id: 'plan', label: 'Plan' },
    { id: 'https://modes.example/auto?x=1', label: 'Auto' },
  ],
  currentMode: 'plan',
};

async function listOf(parts: Partial<AgentListParts> = {}, file?: string) {
  const state = await openStateDb(stateDbOptions(file ?? (await newStateFile())));
  return createAgentList({
    configured: [],
    preferFirst: false,
    known: KNOWN_AGENTS,
    taken: [],
    path: '',
    store: createAgentOfferStore(state),
    now: () => 1000,
    onError: (error) => {
      throw error;
    },
    ...parts,
  });
}

const catalogOf = (agents: Awaited<ReturnType<typeof listOf>>) =>
  createCatalog({ providers: [], builtin: true, discovery: [], now: () => 1000, agents });

/** A folder with an executable file for each name. */
async function programs(...names: string[]): Promise<string> {
  const folder = await temporaryFolder();
  for (const name of names) await writeFile(path.join(folder, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  return folder;
}

it('[AC10] agents on PATH are offered once it was looked, and are never the default by themselves', async () => {
  const folder = await programs('opencode', 'claude-code-acp', 'something-else');
  const catalog = catalogOf(await listOf({ path: folder }));
  expect(catalog.list().models.map(({ id }) => id)).toEqual(['builtin']);
  await catalog.refresh();
  expect(catalog.list()).toMatchObject({
    default: 'builtin',
    models: [
      { id: 'builtin' },
      { id: 'opencode/default', label: 'opencode', provider: 'opencode', source: 'path' },
      { id: 'claude/default', label: 'Claude Code', provider: 'claude', source: 'path' },
    ],
    providers: [
      { name: 'opencode', status: 'ok' },
      { name: 'claude', status: 'ok' },
    ],
  });
  expect(catalog.resolve('claude/default')).toEqual({
    kind: 'agent',
    agent: { name: 'claude', command: ['claude-code-acp'], env: {} },
    model: null,
    mode: null,
  });
});

it('[AC10] only executable regular files count, and no entry of PATH hides what is behind it', async () => {
  const folder = await programs('qwen', 'gemini', 'goose');
  await chmod(path.join(folder, 'gemini'), 0o644);
  const before = await programs();
  await mkdir(path.join(before, 'qwen'));
  await symlink('/nowhere', path.join(before, 'goose'));
  await writeFile(path.join(before, 'a-file'), '');
  const entries = ['', '.', 'relative', path.join(before, 'a-file'), path.join(before, 'missing'), before, folder];
  const list = await listOf({ path: entries.join(':') });
  await list.refresh();
  expect(list.models().map(({ provider }) => provider)).toEqual(['qwen', 'goose']);
});

it('[AC10] a relative entry of PATH is not looked into: it would be another folder in each workspace', async () => {
  const folder = await programs('opencode');
  const list = await listOf({ path: path.relative(process.cwd(), folder) });
  await list.refresh();
  expect(list.models()).toEqual([]);
});

it('[AC10] a configured agent is the default if it is the runner, and one that is not there says so', async () => {
  const folder = await programs('opencode');
  const configured: AgentTarget[] = [
    { name: 'mine', command: ['no-such-agent', '--stdio'], env: {} },
    { name: 'work', command: ['opencode', 'acp'], env: { PATH: folder } },
  ];
  const catalog = catalogOf(await listOf({ configured, preferFirst: true, path: folder }));
  expect(catalog.list().default).toBe('mine/default');
  expect(catalog.resolve(null)).toMatchObject({ kind: 'agent', agent: { name: 'mine' }, model: null, mode: null });
  await catalog.refresh();
  expect(catalog.list().providers).toEqual([
    { name: 'mine', status: 'unreachable', error: 'there is no program "no-such-agent"' },
    { name: 'work', status: 'ok' },
  ]);
  // The same command under another name is not found a second time.
  expect(catalog.list().models.map(({ id, source }) => [id, source])).toEqual([
    ['builtin', 'builtin'],
    ['mine/default', 'configured'],
    ['work/default', 'configured'],
  ]);
});

it('[AC10] a provider keeps its name though there is an agent of that name on PATH', async () => {
  const list = await listOf({ path: await programs('opencode'), taken: ['opencode'] });
  expect(list.find('opencode')).toBeNull();
  await list.refresh();
  expect([list.models(), list.find('opencode')]).toEqual([[], null]);
});

it('[AC10] before it was looked a known agent is taken to be there: a prompt of an earlier start may be first', async () => {
  const list = await listOf();
  expect(list.find('opencode')).toEqual({ name: 'opencode', command: ['opencode', 'acp'], env: {} });
  await list.refresh();
  expect(list.find('opencode')).toBeNull();
});

it('[AC11] models and modes are listed once an agent has told them, also after a restart', async () => {
  const file = await newStateFile();
  const configured = [{ name: 'mine', command: ['agent'], env: {} }];
  const list = await listOf({ configured }, file);
  expect(list.models()).toEqual([{ id: 'mine/default', label: 'mine', provider: 'mine', source: 'configured' }]);
  list.offered('mine', OFFER);
  const modes = OFFER.modes;
  const known = [
    { id: 'mine/default', label: 'mine (Big)', provider: 'mine', source: 'configured', modes },
    { id: 'mine/org/big', label: 'Big', provider: 'mine', source: 'configured', modes },
  ];
  expect(list.models()).toEqual(known);
  await expect.poll(async () => (await listOf({ configured }, file)).models()).toEqual(known);
});

it('[AC11] an id names a model, a mode, or both, in the words of the agent', async () => {
  const catalog = catalogOf(await listOf({ configured: [{ name: 'mine', command: ['agent'], env: {} }] }));
  const chosen = (id: string) => {
    const { model, mode } = catalog.resolve(id) as { model: string | null; mode: string | null };
    return [model, mode];
  };
  expect(chosen('mine/default')).toEqual([null, null]);
  expect(chosen('mine/org/big')).toEqual(['org/big', null]);
  expect(chosen('mine/default?mode=plan')).toEqual([null, 'plan']);
  expect(chosen('mine/org/big?mode=https://modes.example/auto?x=1')).toEqual([
    'org/big',
    'https://modes.example/auto?x=1',
  ]);
  expect(chosen('mine/not-listed')).toEqual(['not-listed', null]);
});

it('[AC10] a turn whose agent is no longer there fails with words that say so', async () => {
  const file = await newStateFile();
  const before = await listOf({ configured: [{ name: 'mine', command: ['agent'], env: {} }] }, file);
  before.offered('mine', OFFER);
  await expect.poll(async () => (await listOf({}, file)).lastOffer('mine')).not.toBeNull();

  const catalog = catalogOf(await listOf({}, file));
  await catalog.refresh();
  const runner: Runner = {
    kind: 'none',
    async *run() {
      yield { type: 'message.start', payload: {} };
      return { kind: 'completed' };
    },
  };
  const router = createRouterRunner({ builtin: runner, model: runner, agents: runner, catalog });
  const failure = async (model: string) => (await drive(router, turnOf('hi', { model }))).end;
  expect(await failure('mine/org/big')).toMatchObject({
    error: { code: 'model_not_found', message: expect.stringContaining('The agent "mine" is no longer configured') },
  });
  expect(await failure('opencode/default')).toMatchObject({
    error: { code: 'model_not_found', message: expect.stringContaining('neither configured nor found on PATH') },
  });
});

it('[AC10] a server lists its agents over HTTP and starts none of them', async () => {
  const folder = await temporaryFolder();
  const trace = path.join(folder, 'ran');
  const program = path.join(folder, 'agent');
  await writeFile(program, `#!/bin/sh\ntouch ${trace}\n`, { mode: 0o755 });
  const server = await startTestServer({ config: `runner: {kind: acp, name: mine, command: [${program}]}\n` });
  const models = async () => (await server.call('GET', '/api/models')).json;
  await expect.poll(async () => (await models()).providers).toEqual([{ name: 'mine', status: 'ok' }]);
  expect(await models()).toMatchObject({
    default: 'mine/default',
    models: [{ id: 'builtin' }, { id: 'mine/default', label: 'mine', provider: 'mine', source: 'configured' }],
  });
  await expect(chmod(trace, 0o644)).rejects.toThrow('ENOENT');
});

const SCRIPTED = path.join(import.meta.dirname, '../support/acp-agent.mjs');

it('[AC11] what an agent offered in its first turn is listed, chosen and told to it, also after a restart', async () => {
  const home = await temporaryFolder();
  const log = path.join(home, 'frames');
  const command = [process.execPath, SCRIPTED, '--models', 'small,big', '--modes', 'ask,code', '--log', log];
  const config = JSON.stringify({ runner: { kind: 'acp', name: 'mine', command } });
  const first = await startTestServer({ home, config });
  await first.ask(await first.session(), 'hello');
  const listed = async (server: TestServer) =>
    (await server.call('GET', '/api/models')).json.models.filter((model: ModelInfo) => model.provider === 'mine');
  const before = await listed(first);
  expect(before.map(({ id }: ModelInfo) => id)).toEqual(['mine/default', 'mine/small', 'mine/big']);
  expect(before[0].modes.map(({ id }: { id: string }) => id)).toEqual(['ask', 'code']);
  await first.close();

  const second = await startTestServer({ home, config });
  expect(await listed(second)).toEqual(before);
  const { admission } = await second.ask(await second.session({ model: 'mine/big?mode=code' }), 'hello');
  expect(admission.outcome).toBe('completed');
  const asked = await readFile(log, 'utf8');
  for (const told of ['"value":"big"', '"modeId":"code"']) expect(asked).toContain(told);
});

it('[AC10] a session whose agent was taken out of the configuration says so, and can be given another', async () => {
  const home = await temporaryFolder();
  const mine = { kind: 'acp', name: 'mine', command: [process.execPath, SCRIPTED, '--models', 'small'] };
  const first = await startTestServer({ home, config: JSON.stringify({ runner: mine }) });
  const session = await first.session({ model: 'mine/default' });
  await first.ask(session, 'hello');
  await first.close();

  const second = await startTestServer({ home, config: '{}' });
  expect((await second.ask(session, 'hello')).admission.outcome).toBe('failed');
  expect((await second.messages(session)).at(-1).error).toMatchObject({
    code: 'model_not_found',
    message: expect.stringContaining('The agent "mine" is no longer configured'),
  });
  await second.call('PATCH', `/api/sessions/${session}`, { model: 'builtin' });
  expect((await second.ask(session, 'hello')).admission.outcome).toBe('completed');
});
