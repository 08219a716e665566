/** Readers and edits: what was taken back is shown to nobody again, and whoever saw it is told where things stand. */
import { describe, expect, it } from 'vitest';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

/** A session of two turns, and the ids of their runs. */
async function twoTurns() {
  const server = await startTestServer({ overrides: { runner: createEchoRunner().runner } });
  const sessionId = await server.session();
  await server.ask(sessionId, 'kept');
  await server.ask(sessionId, 'taken back');
  const rows = await server.messages(sessionId);
  const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
  const rewind = () => server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns: 1, revision });
  return { server, sessionId, first: rows[0].run_id, second: rows[2].run_id, rewind };
}

describe('an edit', () => {
  it('[ED1][SU2] readers that are there get a reset and a snapshot of what is left', async () => {
    const { server, sessionId, rewind } = await twoTurns();
    const reader = await server.stream(`/api/sessions/${sessionId}/events`);
    const before = await reader.next((event) => event.type === 'session.snapshot');
    await rewind();
    const reset = await reader.next((event) => event.type === 'session.reset');
    expect(reset.json.payload).toEqual({ reason: 'edited' });
    const snapshot = await reader.next((event) => event.type === 'session.snapshot' && event !== before);
    expect(snapshot.json.payload.revision).toBeGreaterThan(before.json.payload.revision);
    expect(snapshot.json.payload.session.message_count).toBe(2);
    await server.ask(sessionId, 'goes on');
    const complete = await reader.next((event) => event.type === 'message.complete');
    expect(complete.json.payload.text).toBe('echo: goes on');
  });

  it('[ED1][SU2] a reader that comes back from the middle of what was taken back gets a reset and a snapshot', async () => {
    const { server, sessionId, second, rewind } = await twoTurns();
    await rewind();
    const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${second}:2`);
    expect((await reader.next((event) => event.type === 'session.reset')).json.payload.reason).toBe('edited');
    await reader.next((event) => event.type === 'session.snapshot');
    expect(reader.events.some((event) => event.type === 'message.delta')).toBe(false);
  });

  it('[ED1][EV1] a reader that comes back from before gets what is left of it, and nothing that was taken back', async () => {
    const { server, sessionId, first, second, rewind } = await twoTurns();
    await rewind();
    await server.ask(sessionId, 'goes on');
    for (const cursor of ['0', `${first}:1`]) {
      const reader = await server.stream(`/api/sessions/${sessionId}/events?cursor=${cursor}`);
      await reader.next((event) => event.type === 'message.complete' && event.json.payload.text === 'echo: goes on');
      expect(reader.events.some((event) => event.json.run_id === second)).toBe(false);
      expect(reader.events.some((event) => event.json.run_id === first)).toBe(true);
      expect(reader.events.some((event) => event.type === 'session.reset')).toBe(false);
    }
  });
});
