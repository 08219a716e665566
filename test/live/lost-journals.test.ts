/** Readers and prompts whose journal is not there, or cannot be: a reset or an end, never silence. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createJournalStore } from '../../db/files/journal.ts';
import { createPaths } from '../../db/files/paths.ts';
import { createAttach } from '../../server/live/attach.ts';
import type { LiveEvent } from '../../server/live/live-event.ts';
import { createLiveRegistry } from '../../server/live/registry.ts';
import { createSubscriber } from '../../server/live/subscriber.ts';
import { temporaryFolder } from '../support/home.ts';
import { createMemoryStores } from '../support/memory-stores.ts';
import { createEchoRunner, createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;

describe('a journal that is gone', () => {
  it('[SU2][EV2] a cursor into it gets a reset, and the prompt asked for again still has its one end', async () => {
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
    const sessionId = await server.session();
    const address = `/api/sessions/${sessionId}/prompts`;
    const body = { text: 'hello', request_id: 'r1' };
    const first = await server.stream(address, { method: 'POST', body });
    await first.ended;
    await rm(path.join(server.home, 'sessions/_run_journal'), { recursive: true });
    const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${first.events[0]!.id}`);
    await reader.next(type('session.snapshot'));
    expect(reader.events.map((event) => event.type)).toEqual(['session.reset', 'session.snapshot']);
    expect(reader.events[0]!.json.payload.reason).toBe('too_old');
    const again = await server.stream(address, { method: 'POST', body });
    await again.ended;
    expect(again.events.map((event) => event.type)).toEqual(['message.complete']);
    expect(again.events[0]!.json.payload).toMatchObject({
      text: 'echo: hello',
      outcome: 'completed',
      status: 'complete',
    });
  });

  it('[CL4][EV2] one that cannot be made leaves the turn unknown, visibly, and a person can go on', async () => {
    let isBroken = true;
    const reached = (point: string): void => {
      if (isBroken && point === 'pending-saved') throw new Error('no journal, for no reason that waiting could help');
    };
    const server = await startTestServer({ overrides: { runner: createEchoRunner().runner, reached } });
    const sessionId = await server.session();
    const address = `/api/sessions/${sessionId}/prompts`;
    const body = { text: 'hello', request_id: 'r1' };
    const waited = await server.call('POST', `${address}?wait=1`, body);
    expect(waited).toMatchObject({ status: 409, json: { code: 'unknown_execution' } });
    const stream = await server.call('POST', address, body, { accept: 'text/event-stream' });
    expect(stream).toMatchObject({ status: 409, json: { code: 'unknown_execution' } });
    const { admissions } = (await server.call('GET', address)).json;
    expect(admissions[0]).toMatchObject({ status: 'unknown', outcome: null });
    expect((await server.call('GET', '/health')).json.active_runs).toBe(0);
    isBroken = false;
    await server.call('POST', `${address}/${admissions[0].admission_id}/resolve`, { outcome: 'interrupted' });
    expect((await server.ask(sessionId, 'and now?')).message.content).toBe('echo: and now?');
  });

  it('[SU2] a reader of a session whose rows are gone is told so, and never looks for ever', async () => {
    const stores = createMemoryStores(() => true);
    const registry = createLiveRegistry({ newRuntimeId: () => '00000001', now: () => 0, heartbeatS: 10 });
    const sent: LiveEvent[] = [];
    const sink = {
      send: (events: readonly LiveEvent[]) => sent.push(...events) > 0,
      drained: async () => {},
      close: () => {},
    };
    const subscriber = createSubscriber(sink, { backlogEvents: 10, backlogBytes: 1000, sendDeadlineS: 10 });
    const attach = createAttach({
      admissions: stores.admissions,
      journals: createJournalStore(createPaths(await temporaryFolder())),
      registry,
      epoch: 1,
      describe: async () => ({ session: { revision: 1 }, queue: [] }),
      takenBack: async () => new Set(),
      whyStuck: async () => null,
    });
    // This process began runs of the session; then all its rows went.
    registry.open('20260101_000000_aaaaaa').lastGeneration = 3;
    await attach({ sessionId: '20260101_000000_aaaaaa', subscriber, cursor: '0' });
    expect(sent.map((event) => event.type)).toEqual(['session.deleted']);
    subscriber.close('finished');
  });
});

describe('what a turn leaves behind', () => {
  it('[CL6] a question that its turn did not wait for is taken back when the turn ends', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const sessionId = await server.session();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    await server.prompt(sessionId, 'go');
    const turn = await script.turn(0);
    const question = { tool_name: 'x', command: 'x', description: 'x', choices: ['once' as const, 'deny' as const] };
    const answer = turn.turn.ask({ kind: 'approval', ...question });
    const opened = await reader.next(type('request.open'));
    turn.complete();
    expect(await answer).toEqual({ kind: 'withdrawn' });
    expect((await reader.next(type('request.cancel'))).json.payload).toMatchObject({ id: opened.json.payload.id });
    expect((await server.call('GET', `/api/sessions/${sessionId}/requests`)).json.requests).toEqual([]);
  });

  it('[CL5] a stop that empties the queue ends each waiting prompt once', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ overrides: { runner: script.runner } });
    const sessionId = await server.session();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    await server.prompt(sessionId, 'runs');
    await script.turn(0);
    for (let index = 0; index < 5; index += 1) await server.prompt(sessionId, `waits ${index}`);
    await server.call('POST', `/api/sessions/${sessionId}/interrupt`, { clear_queue: true });
    const ends = () => reader.events.filter(type('message.complete')).map((event) => event.json.payload.outcome);
    await until('all six have ended', () => ends().length === 6);
    expect(ends().sort()).toEqual([...Array(5).fill('cancelled'), 'interrupted']);
    expect(script.turns).toHaveLength(1);
  });
});
