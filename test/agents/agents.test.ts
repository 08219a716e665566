/**
 * Real agents through the whole server, against the fake provider: the same promises as with our own. An agent that is not
 * installed is skipped, by name and reason.
 */
import { access, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { browserMissing, createBrowser } from '../support/browser.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { processesKnowing } from '../support/processes.ts';
import { until } from '../support/until.ts';
import { REAL_AGENTS, type RealAgent } from './real-agents.ts';

const installed = inject('agents');
const browser = createBrowser();

/** What an agent may take to start on a machine that has other things to do. */
const START_MS = 100_000;

/** A home whose sessions are an agent's, and a fake provider for it. */
async function homeOf(agent: RealAgent) {
  const home = await temporaryFolder();
  const own = path.join(home, 'of-the-agent');
  const workspace = path.join(home, 'workspace');
  for (const folder of [own, workspace]) await mkdir(folder);
  // Agents say things that the pickiest provider would not take; that is theirs to mend.
  const provider = await startFakeProvider({ strict: false });
  onTestFinished(async () => {
    await provider.close();
    // Of a test that has failed.
    for (const pid of processesKnowing(home)) process.kill(pid, 'SIGKILL');
  });
  const place = installed[agent.name];
  const command = [path.join(place && 'folder' in place ? place.folder : '', agent.program), ...agent.args];
  const env = {
    HOME: own,
    ...Object.fromEntries(
      ['CONFIG', 'DATA', 'CACHE', 'STATE'].map((kind) => [`XDG_${kind}_HOME`, path.join(own, kind)]),
    ),
    TMPDIR: own,
    NO_PROXY: '127.0.0.1',
    no_proxy: '127.0.0.1',
    ...(await agent.setUp(own, `http://127.0.0.1:${provider.port}`)),
  };
  const config = { runner: { kind: 'acp', name: agent.name, command, env, start_timeout_s: START_MS / 1000 } };
  await writeFile(path.join(home, 'config.yaml'), JSON.stringify(config));
  return { home, workspace, provider };
}

/** One session of a server. */
async function converse(server: ChildServer, workspace: string, existing?: string) {
  const id = existing ?? (await server.call('POST', '/api/sessions', { workspace })).json.session.session_id;
  const address = `/api/sessions/${id}`;
  const ask = async (text: string) => (await server.call('POST', `${address}/prompts?wait=1`, { text })).json;
  return {
    id,
    ask,
    /** What the agent said last. */
    async answer(text: string): Promise<string> {
      const { admission } = await ask(text);
      expect(admission.outcome, server.stderr()).toBe('completed');
      return lastText(await this.rows());
    },
    rows: async () => (await server.call('GET', `${address}/messages`)).json.messages,
    /** Answers the next question. */
    async reply(choice: 'once' | 'deny'): Promise<string> {
      const [request] = await until(
        'it asks',
        async () => {
          const { requests } = (await server.call('GET', `${address}/requests`)).json;
          return requests.length > 0 ? requests : null;
        },
        START_MS,
      );
      await server.call('POST', `${address}/requests/${request.id}`, { choice });
      return request.params.command;
    },
    stop: () => server.call('POST', `${address}/interrupt`, {}),
    /** Resolves when the running turn has said that. */
    async hears(word: string): Promise<void> {
      const stream = await server.stream(`${address}/events`);
      await until(`the agent says ${word}`, () => JSON.stringify(stream.events).includes(word), START_MS);
      stream.drop();
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: rows as the server tells them.
const lastText = (rows: any[]): string => rows.filter((row) => row.role === 'assistant').at(-1)?.content ?? '';

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** Stops a server as its user does; then nothing may be left that it, or an agent of it, has started. */
async function endWithNothingLeft(server: ChildServer, home: string): Promise<void> {
  server.process.kill('SIGTERM');
  expect(await server.exited).toBe(0);
  expect(processesKnowing(home)).toEqual([]);
}

const call = (agent: RealAgent, command: string): string => {
  const { tool, args } = agent.shell(command);
  return `script:tool=${tool},args=${JSON.stringify(args)}`;
};

for (const agent of REAL_AGENTS) {
  const place = installed[agent.name];
  const reason = place && 'folder' in place ? null : (place?.reason ?? 'not installed');
  describe.skipIf(reason !== null)(`${agent.name} ${agent.version}${reason ? `, skipped: ${reason}` : ''}`, () => {
    it('[AC12] it talks turn after turn, and its models are listed from then on', async () => {
      const { home, workspace } = await homeOf(agent);
      const server = await startChildServer({ home });
      const talk = await converse(server, workspace);
      expect(await talk.answer('hello there')).toContain('You said: hello there');
      expect(await talk.answer('and again')).toContain('You said: and again');
      const { models, default: chosen } = (await server.call('GET', '/api/models')).json;
      expect(chosen).toBe(`${agent.name}/default`);
      const own = models.filter((model: { provider: string }) => model.provider === agent.name);
      expect(own.length).toBeGreaterThan(1);
      if (browserMissing === '') {
        const page = await browser.open(`${server.url}/#/s/${talk.id}`);
        await page.getByRole('textbox', { name: 'Message' }).fill('and from the page');
        await page.keyboard.press('Enter');
        await page.getByText('You said: and from the page').waitFor({ timeout: START_MS });
        expect(page.problems).toEqual([]);
      }
      await endWithNothingLeft(server, home);
    });

    it('[AC12] its tool runs after a yes and not after a no, and a stop ends its turn with what it said', async () => {
      const { home, workspace } = await homeOf(agent);
      const server = await startChildServer({ home });
      const talk = await converse(server, workspace);
      const allowed = talk.ask(call(agent, 'echo yes > allowed.txt'));
      expect(await talk.reply('once')).toContain('echo yes > allowed.txt');
      expect((await allowed).admission.outcome).toBe('completed');
      expect(await isThere(path.join(workspace, 'allowed.txt'))).toBe(true);

      const denied = talk.ask(call(agent, 'touch denied.txt'));
      await talk.reply('deny');
      expect((await denied).admission.outcome).toBe('completed');
      expect(await isThere(path.join(workspace, 'denied.txt'))).toBe(false);
      const results = (await talk.rows()).filter((row: { role: string }) => row.role === 'tool');
      expect(results).toHaveLength(2);

      const stopped = talk.ask('script:chunks=2000,delay=10,id=long');
      await talk.hears('[long:5]');
      await talk.stop();
      expect((await stopped).admission.outcome).toBe('interrupted');
      expect(lastText(await talk.rows())).toContain('[long:0] [long:1] ');
      expect(await talk.answer('are you there')).toContain('are you there');
      await endWithNothingLeft(server, home);
    });

    it('[AC12] after kill -9 of the server what it said is there, and the conversation goes on', async () => {
      const { home, workspace, provider } = await homeOf(agent);
      const first = await startChildServer({ home });
      const before = await converse(first, workspace);
      await before.answer('the word is heron');
      void before.ask('script:chunks=2000,delay=10,id=cut').catch(() => {});
      await before.hears('[cut:5]');
      await first.kill();

      const second = await startChildServer({ home });
      const after = await converse(second, workspace, before.id);
      const rows = await after.rows();
      expect(JSON.stringify(rows)).toContain('[cut:0] [cut:1] ');
      expect(rows.at(-1)).toMatchObject({ error: { code: 'interrupted', cause: 'process_restart' } });
      expect(await after.answer('what was the word')).toContain('what was the word');
      // The agent knows what was said before, from its own memory or told again.
      expect(JSON.stringify(provider.requests.at(-1)?.raw)).toContain('the word is heron');
      await endWithNothingLeft(second, home);
    });
  });
}
