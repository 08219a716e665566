/** A stop against a real provider connection: what it reaches, what it keeps, and how soon the session is idle. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const ROUNDS = 50;

it('[CL6][RU7] fifty stops, each with a new prompt at once: the order stays, and the model is told everything', {
  timeout: 120_000,
}, async () => {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  const server = await startTestServer({ home });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}`;
  const reader = await server.stream(`${address}/events`);
  const shown = (runId: string) =>
    reader.events
      .filter((event) => event.type === 'message.delta' && event.json.run_id === runId)
      .map((event) => event.json.payload.text)
      .join('');
  const prompts: { text: string; runId: string }[] = [];
  const send = async (round: number) => {
    const text = `script:chunks=4000,delay=2,id=r${round}`;
    prompts.push({ text, runId: (await server.prompt(sessionId, text)).run_id });
  };
  await send(0);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { runId } = prompts[round]!;
    await reader.next((event: SseEvent) => event.type === 'message.delta' && event.json.run_id === runId);
    const stop = server.call('POST', `${address}/interrupt`);
    // By turns: the new prompt right behind the answer, and without waiting for it.
    if (round % 2 === 0) expect((await stop).json).toEqual({ status: 'interrupted', generation: round + 1 });
    await send(round + 1);
    expect((await stop).json.status).toBe('interrupted');
  }
  await reader.next((event) => event.type === 'message.delta' && event.json.run_id === prompts.at(-1)!.runId);
  await server.call('POST', `${address}/interrupt`);
  // CL6 promises this time.
  await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle', 2_000);

  const rows = await server.messages(sessionId);
  expect(rows.map((row) => [row.role, row.status])).toEqual(
    prompts.flatMap(() => [
      ['user', undefined],
      ['assistant', 'interrupted'],
    ]),
  );
  // What was shown is what is kept, each once.
  expect(rows.map((row) => row.content)).toEqual(prompts.flatMap(({ text, runId }) => [text, shown(runId)]));
  expect(provider.violations).toEqual([]);
  expect(provider.requests).toHaveLength(prompts.length);
  for (const [round, request] of provider.requests.entries()) {
    expect(await request.ended, `request ${round} was stopped`).toBe(true);
    const said = (request.body.messages ?? []).filter((message) => message.role !== 'system');
    expect(said).toHaveLength(2 * round + 1);
    for (const [index, message] of said.entries()) expect(message.content).toContain(rows[index]!.content.trim());
  }
  await provider.close();
});

it('[CL6] a stop before the agent exists reaches it, and not the agent of the next turn', async () => {
  const script = createScriptedRunner();
  let outside: Database.Database | null = null;
  let isFirst = true;
  const server = await startTestServer({
    overrides: {
      runner: script.runner,
      reached(point) {
        // From the claim on nothing can be written: the turn stands between its claim and its agent.
        if (point !== 'claimed' || !isFirst) return;
        isFirst = false;
        outside = new Database(path.join(server.home, 'state.db'));
        outside.exec('BEGIN IMMEDIATE');
      },
    },
  });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}`;
  await server.prompt(sessionId, 'first');
  await until('it is claimed', () => outside !== null);
  expect((await server.call('POST', `${address}/interrupt`, { generation: 2 })).json.code).toBe('stale_generation');
  const stopped = await server.call('POST', `${address}/interrupt`, { generation: 1 });
  expect(stopped.json).toEqual({ status: 'interrupted', generation: 1 });
  outside!.exec('COMMIT');
  outside!.close();
  await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
  // Its agent was never let loose; that of the next turn works as it should.
  expect(script.turns).toHaveLength(0);
  await server.prompt(sessionId, 'second');
  const second = await script.turn(0);
  expect([second.turn.input, second.signal.aborted]).toEqual(['second', false]);
  second.complete();
  await until('both have ended', async () => {
    const { admissions } = (await server.call('GET', `${address}/prompts`)).json;
    return admissions.map((one: { outcome: string }) => one.outcome).join() === 'interrupted,completed';
  });
});
