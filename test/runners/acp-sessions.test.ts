/** The agent's own session as a cache of what it was told: used while it is right, and made anew where it is not. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentOffer } from '../../server/runners/acp/agent-target.ts';
import type { Runner } from '../../server/runners/runner.ts';
import { type AcpBench, createAcpBench, SCRIPTED_AGENT } from '../support/acp-bench.ts';
import { type Conversation, startConversation } from '../support/acp-conversation.ts';
import { makeTurn } from '../support/turns.ts';

let bench: AcpBench;
const DONE = { kind: 'completed' };

beforeEach(async () => {
  bench = await createAcpBench();
});
afterEach(() => bench.close());

const inWorkspace = (runner: Runner): Conversation => startConversation(runner, { workspace: bench.workspace });
const sessionsDir = (): string[] => ['--sessions', path.join(bench.home, 'of-the-agent')];
/** The process goes, and what the agent keeps stays. */
const endProcess = (): Promise<void> => bench.acp.forget(makeTurn().sessionId);
/** All text of the last prompt that the agent got, and the session that it was for. */
const lastPrompt = async (): Promise<{ text: string; session: string }> => {
  const { params } = (await bench.sent('session/prompt')).at(-1);
  return {
    text: params.prompt.map((block: { text?: string }) => block.text ?? '').join('\n'),
    session: params.sessionId,
  };
};
const counts = async (...methods: string[]): Promise<number[]> =>
  Promise.all(methods.map(async (method) => (await bench.sent(method)).length));

it('[AC3] the turns of a session are one session of the agent, which is told each prompt once', async () => {
  const conversation = inWorkspace(bench.agent());
  await conversation.say('My name is Ada.');
  const { session } = await lastPrompt();
  expect((await conversation.say('acp: memory')).text).toBe('["My name is Ada.","acp: memory"]');
  expect(await lastPrompt()).toEqual({ session, text: 'acp: memory' });
  expect(await counts('initialize', 'session/new')).toEqual([1, 1]);
});

it.each([
  ['load', 'session/load'],
  ['resume', 'session/resume'],
  ['load,resume', 'session/load'],
])(
  '[AC3] a new process of an agent that can %s takes its session up again, and what it repeats reaches nobody',
  async (can, method) => {
    const conversation = inWorkspace(bench.agent('--capabilities', can, ...sessionsDir()));
    await conversation.say('My name is Ada.');
    const { session } = await lastPrompt();
    await endProcess();
    const { text, end } = await conversation.say('acp: memory');
    expect(end).toEqual(DONE);
    expect(text).toBe('["My name is Ada.","acp: memory"]');
    expect(await lastPrompt()).toEqual({ session, text: 'acp: memory' });
    expect(await counts('initialize', 'session/new', method)).toEqual([2, 1, 1]);
  },
);

it.each<[why: string, flags: string[]]>([
  ['has lost', ['--capabilities', 'load', '--lose']],
  ['takes for an empty one', ['--capabilities', 'load', '--blank']],
  ['cannot take up again', []],
])('[AC3] a session that the agent %s is replaced by one that is told the transcript', async (_, flags) => {
  const conversation = inWorkspace(bench.agent(...flags));
  await conversation.say('acp: say I shall remember that your name is Ada.');
  await endProcess();
  expect((await conversation.say('What is my name?')).end).toEqual(DONE);
  const { text } = await lastPrompt();
  expect(text).toContain('I shall remember that your name is Ada.');
  expect(text.endsWith('What is my name?')).toBe(true);
  // It is told once.
  await conversation.say('And now?');
  expect((await lastPrompt()).text).toBe('And now?');
});

it('[AC3] what was taken back is not known to the agent any more', async () => {
  const conversation = inWorkspace(bench.agent());
  await conversation.say('My name is Ada.');
  const kept = [...conversation.rows];
  await conversation.say('The secret is 42.');
  conversation.rows = kept;
  await conversation.say('acp: memory');
  const { text } = await lastPrompt();
  expect(text).toContain('My name is Ada.');
  expect(text).not.toContain('42');
  conversation.rows = [];
  expect((await conversation.say('acp: memory')).text).toBe('["acp: memory"]');
  expect(await counts('initialize', 'session/new')).toEqual([1, 3]);
});

it('[AC3] an agent is told what another one did between its turns', async () => {
  const conversation = inWorkspace(bench.agent());
  await conversation.say('My name is Ada.');
  const other: Runner = {
    kind: 'other',
    run: (turn, signal) => {
      const target = { name: 'other', command: [process.execPath, SCRIPTED_AGENT], env: {} };
      return bench.acp.run(turn, signal, target, null, null);
    },
  };
  await conversation.say('And I am forty.', { runner: other });
  await conversation.say('Who am I?');
  expect((await lastPrompt()).text).toMatch(/Ada[\s\S]*forty[\s\S]*Who am I\?$/);
});

it('[AC3] of a turn that it did not answer the agent is told again, and of no other', async () => {
  const conversation = inWorkspace(bench.agent('--capabilities', 'load', ...sessionsDir()));
  await conversation.say('My name is Ada.');
  await conversation.say('acp: say I was about to; crash');
  expect((await conversation.say('Go on.')).end).toEqual(DONE);
  const { text } = await lastPrompt();
  expect(text).toContain('I was about to');
  expect(text).not.toContain('Ada');
  expect(await counts('session/new', 'session/load')).toEqual([1, 1]);
});

it('[AC3] an interrupted turn that the agent ended by itself is known to it', async () => {
  const conversation = inWorkspace(bench.agent());
  const stop = new AbortController();
  const ran = conversation.say('acp: touch begun; hang', { signal: stop.signal });
  await expect.poll(() => bench.sent('session/prompt')).toHaveLength(1);
  stop.abort();
  await ran;
  await conversation.say('Go on.');
  expect((await lastPrompt()).text).toBe('Go on.');
  expect(await counts('initialize', 'session/new', 'session/cancel')).toEqual([1, 1, 1]);
});

it('[AC3] a session that the agent loses while it is open is made anew, once', async () => {
  const conversation = inWorkspace(bench.agent());
  await conversation.say('My name is Ada.');
  const { end } = await conversation.say('acp: error -32002 no such session');
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'agent_crashed' } });
  expect(await counts('session/new', 'session/prompt')).toEqual([2, 3]);
  expect((await lastPrompt()).text).toContain('Ada');
});

it('[AC3] a prompt for which something was asked is not given a second time, whatever the agent says', async () => {
  const conversation = inWorkspace(bench.agent());
  await conversation.say('hello');
  let asked = 0;
  const { end } = await conversation.say(
    'acp: late 0 request fs/write_text_file {"path":"a.txt","content":"x"}; wait asked; error -32002 no such session',
    {
      async ask() {
        asked += 1;
        await writeFile(path.join(bench.workspace, 'asked'), '');
        return new Promise(() => {});
      },
    },
  );
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'provider_error' } });
  expect(await counts('session/prompt')).toEqual([2]);
  expect(asked).toBe(1);
});

it('[AC1] a session that was taken up again has what the agent takes by itself, not what was chosen before', async () => {
  let offer: AgentOffer | null = null;
  await bench.close();
  bench = await createAcpBench({
    lastOffer: () => offer,
    offered: (_agent, told) => {
      offer = told;
    },
  });
  const flags = ['--models', 'small,large', '--modes', 'ask,code', '--capabilities', 'resume', ...sessionsDir()];
  const agent = (model: string | null, mode: string | null): Runner => ({
    kind: 'acp',
    run: (turn, signal) => {
      const command = [process.execPath, SCRIPTED_AGENT, '--log', bench.log, ...flags];
      return bench.acp.run(turn, signal, { name: 'scripted', command, env: {} }, model, mode);
    },
  });
  const conversation = inWorkspace(agent(null, null));
  const about = async (runner: Runner): Promise<unknown[]> => {
    const { model, mode } = JSON.parse((await conversation.say('acp: about', { runner })).text);
    return [model, mode];
  };
  expect(await about(agent('large', 'code'))).toEqual(['large', 'code']);
  await endProcess();
  expect(await about(agent(null, null))).toEqual(['small', 'ask']);
  await endProcess();
  expect(await about(agent('large', null))).toEqual(['large', 'ask']);
  expect(await counts('session/resume')).toEqual([2]);
});

it.each(['--models', '--old-models'])(
  '[AC1] the model and mode of the session hold for its turn, and no longer (%s)',
  async (form) => {
    const offers: unknown[] = [];
    await bench.close();
    bench = await createAcpBench({ offered: (_agent, offer) => offers.push(offer) });
    const command = [process.execPath, SCRIPTED_AGENT, form, 'small,large', '--modes', 'ask,code'];
    const refuse = ['--refuse', 'session/set_model:-32602', '--refuse', 'session/set_config_option:-32602'];
    const agent = (model: string | null, mode: string | null, flags: string[] = []): Runner => ({
      kind: 'acp',
      run: (turn, signal) =>
        bench.acp.run(turn, signal, { name: 'scripted', command: [...command, ...flags], env: {} }, model, mode),
    });
    const conversation = inWorkspace(agent(null, null));
    const about = async (runner: Runner): Promise<unknown[]> => {
      const { model, mode, session } = JSON.parse((await conversation.say('acp: about', { runner })).text);
      return [model, mode, session];
    };
    const [, , session] = await about(agent('large', 'code'));
    expect(await about(agent('large', 'code'))).toEqual(['large', 'code', session]);
    expect(await about(agent(null, null))).toEqual(['small', 'ask', session]);
    expect(offers).toEqual([
      {
        models: [expect.objectContaining({ id: 'small' }), expect.objectContaining({ id: 'large' })],
        currentModel: 'small',
        modes: [expect.objectContaining({ id: 'ask' }), expect.objectContaining({ id: 'code' })],
        currentMode: 'ask',
      },
    ]);
    const { end } = await conversation.say('hello', { runner: agent('huge', null, refuse) });
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'model_not_found' } });
  },
);
