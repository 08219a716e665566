/** Agents that do not do their part: each is one clear error, and the session goes on with the next turn. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Answer, Runner } from '../../server/runners/runner.ts';
import { type AcpBench, type AcpBenchChange, createAcpBench } from '../support/acp-bench.ts';
import { startConversation } from '../support/acp-conversation.ts';
import { type Ran, RUN_ID, runTurn } from '../support/turns.ts';

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

const ask = (runner: Runner, input: string): Promise<Ran> => runTurn(runner, { workspace: bench.workspace, input });
const errorOf = ({ end }: Ran) => {
  if (end.kind !== 'failed') throw new Error(`the turn ended as ${end.kind}`);
  return end.error;
};

describe('a start that fails', () => {
  const START: [what: string, flags: string[], code: string, words: RegExp][] = [
    ['speaks another version', ['--protocol', '7'], 'agent_crashed', /version 7 .* version 1.*Install/],
    ['exits', ['--exit', 'initialize:3'], 'agent_crashed', /exit code 3 instead of answering.*Check that the command/],
    ['does not answer', ['--silent', 'initialize'], 'stalled', /within 1 seconds.*runner.start_timeout_s/],
    ['makes no session', ['--silent', 'session/new'], 'stalled', /within 1 seconds/],
    ['exits instead of making a session', ['--exit', 'session/new:0'], 'agent_crashed', /exit code 0/],
    ['wants a login', ['--auth'], 'auth', /needs to be logged in/],
    ['refuses', ['--refuse', 'session/new:-32603:no disk'], 'provider_error', /answered with an error: no disk/],
  ];
  it.each(START)(
    '[AC4] an agent that %s: one error that says what to do, and nothing of it stays',
    async (_, flags, code, words) => {
      if (code === 'stalled') await open({ limits: { start_timeout_s: 1 } });
      const error = errorOf(await ask(bench.agent(...flags), 'hello'));
      expect(error.code).toBe(code);
      expect(error.message).toMatch(words);
      if (code !== 'auth' && code !== 'provider_error') expect(bench.processes()).toEqual([]);
    },
  );

  it('[AC4] a program that is not there, or is none, is named with where to correct it', async () => {
    for (const program of ['/nowhere/turnkeep-no-such-agent', 'turnkeep-no-such-agent']) {
      const error = errorOf(await ask(bench.command(program, 'acp'), 'hello'));
      expect(error).toMatchObject({ code: 'agent_crashed', retryable: false });
      expect(error.message).toMatch(/no program "turnkeep-no-such-agent".*config\.yaml/);
      expect(error.message).not.toContain('/nowhere');
    }
    const error = errorOf(await ask(bench.command(bench.home), 'hello'));
    expect(error.message).toMatch(/no program that may be run/);
  });

  it('[AC4] a program that says anything but the protocol is told by that', async () => {
    await open({ limits: { start_timeout_s: 1 } });
    const chatty = bench.command(
      'sh',
      '-c',
      `echo Welcome; echo '{"level":"info"}'; echo '[1]'; exec sleep 60 # ${bench.home}`,
    );
    expect(errorOf(await ask(chatty, 'hello')).message).toMatch(/wrote 3 lines that are no message/);
  });

  it('[AC4] a workspace that is gone is not worked in', async () => {
    const error = errorOf(await runTurn(bench.agent(), { workspace: '/nowhere/at-all', input: 'hello' }));
    expect(error.message).toMatch(/workspace .* cannot be opened/);
    expect(bench.processes()).toEqual([]);
  });
});

describe('a turn that goes wrong', () => {
  const TURN: [what: string, steps: string, code: string, words: RegExp][] = [
    ['crashes', 'crash 3', 'agent_crashed', /ended with exit code 3 in the middle of the turn/],
    ['is killed', 'kill', 'agent_crashed', /ended by SIGKILL in the middle/],
    ['writes half a message and exits', 'halfline', 'agent_crashed', /in the middle of the turn/],
    ['writes a line without an end', 'endless 20', 'agent_crashed', /a line of more than 16 MB/],
    ['answers with an error', 'error -32603 the model is away', 'provider_error', /the model is away/],
    ['refuses', 'stop refusal', 'content_filter', /refused to go on/],
  ];
  it.each(TURN)(
    '[AC4] an agent that %s: what it said is kept, open calls end, and the next turn works',
    async (_, steps, code, words) => {
      const conversation = startConversation(bench.agent(), { workspace: bench.workspace });
      const ran = await conversation.say(`acp: say Half an answer.; open c1 read notes.txt; ${steps}`);
      expect(ran.text).toBe('Half an answer.');
      expect(errorOf(ran).code).toBe(code);
      expect(errorOf(ran).message).toMatch(words);
      expect(ran.events.at(-1)).toMatchObject({ type: 'tool.complete', payload: { is_error: true } });
      if (code === 'agent_crashed') expect(bench.processes()).toEqual([]);
      const next = await conversation.say('Are you there?');
      expect(next.end).toEqual({ kind: 'completed' });
      expect(next.text).toContain('Are you there?');
    },
  );

  it('[AC4][MC5] no secret is in what it says of its failure, nor in its last words in the log', async () => {
    const secret = 'an-mcp-key-0123';
    const key = 'the-key-of-its-provider';
    const env = { PATH: process.env.PATH ?? '', HOME: bench.home, PROVIDER_KEY: key };
    await open({ secrets: [secret], env });
    const { message } = errorOf(await ask(bench.agent(), `acp: error -32603 refused: ${secret} and ${key}`));
    expect(message).toMatch(/refused: \[key\] and \[key\]/);
    await ask(bench.agent(), `acp: stderr I have ${secret} and ${key}; sleep 50; crash`);
    expect(JSON.stringify(bench.logs)).toMatch(/I have \[key\] and \[key\]/);
  });

  it('[AC4] silence is given up', async () => {
    await open({ limits: { stall_timeout_s: 0.5, cancel_timeout_s: 1 } });
    const error = errorOf(await ask(bench.agent(), 'acp: say one; hang'));
    expect(error.code).toBe('stalled');
    expect(error.message).toMatch(/said nothing for 0.5 seconds/);
    expect(bench.processes()).toEqual([]);
  });

  it('[AC4] silence is none while a call, a question or a terminal is open', async () => {
    await open({ limits: { stall_timeout_s: 1 } });
    const terminal = 'request terminal/create {"command":"sleep","args":["1.3"]}';
    const scripts = [
      'open c1 read a; sleep 1300; done c1 x',
      'edit made.txt x',
      `${terminal}; request terminal/wait_for_exit {"terminalId":"${RUN_ID}.t1"}`,
    ];
    const answer = (): Promise<Answer> =>
      new Promise((resolve) => setTimeout(() => resolve({ kind: 'choice', choice: 'once' }), 1300));
    const ends = scripts.map(async (script, n) => {
      const turn = { sessionId: `20260303_130002_00000${n}`, workspace: bench.workspace, ask: answer };
      return (await runTurn(bench.agent(), { ...turn, input: `acp: ${script}; say over` })).end;
    });
    expect(await Promise.all(ends)).toEqual(scripts.map(() => ({ kind: 'completed' })));
  });

  it('[AC4] an end without an answer is no answer, also where the agent stops by itself', async () => {
    expect(errorOf(await ask(bench.agent(), 'acp: think hm')).code).toBe('empty_reply');
    expect(errorOf(await ask(bench.agent(), 'acp: stop cancelled')).message).toMatch(/stopped the turn by itself/);
    expect((await ask(bench.agent(), 'acp: say one; stop cancelled')).end).toEqual({ kind: 'completed' });
  });

  it('[AC4] an agent that ran out of tokens or steps has answered, and it is said', async () => {
    for (const [reason, kind] of [
      ['max_tokens', 'length'],
      ['max_turn_requests', 'max_steps'],
    ]) {
      const { end, events } = await ask(bench.agent(), `acp: say one; stop ${reason}`);
      expect(end).toEqual({ kind: 'completed' });
      expect(events).toContainEqual({ type: 'status', payload: { kind, text: expect.stringContaining('scripted') } });
    }
  });

  it('[AC6] lines that are no message are passed over, and long ones are read', async () => {
    const { end, text } = await ask(bench.agent('--banner'), 'acp: say one; garbage; longline 10; say two');
    expect(end).toEqual({ kind: 'completed' });
    expect(text.startsWith('one')).toBe(true);
    expect(text.endsWith('two')).toBe(true);
    expect(text).toContain('left out');
  });
});
