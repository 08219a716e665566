/**
 * A state DB that somebody else holds for a while, again and again, while a queue runs: it only takes longer. One
 * session's queue of quick turns, readers on it, requests meanwhile.
 */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { createEchoRunner } from './scripted-runner.ts';
import { startTestServer } from './test-server.ts';
import { until } from './until.ts';

/** Requests wait at most that long for a locked database, in milliseconds. */
const PATIENCE_MS = 5_000;

/** @param holdsMs for how long the database is held, one after the other */
export async function lockRounds(holdsMs: readonly number[]): Promise<void> {
  const { runner, turns } = createEchoRunner();
  const server = await startTestServer({ overrides: { runner } });
  const sessionId = await server.session();
  const address = `/api/sessions/${sessionId}`;
  const reader = await server.stream(`${address}/events`);
  const outside = new Database(path.join(server.home, 'state.db'), { timeout: 5_000 });
  const accepted: string[] = [];
  let refused = 0;
  /** Sends until it is accepted, always under the same key. */
  const send = async (text: string): Promise<void> => {
    for (;;) {
      const answer = await server.call('POST', `${address}/prompts`, { text, request_id: text });
      if (answer.status === 202) return;
      // What a client is told is never the driver's word for it.
      expect([answer.status, answer.json.code]).toEqual([503, 'storage_unavailable']);
      expect(answer.text).not.toContain('SQLITE');
      refused += 1;
    }
  };
  for (const [round, holdMs] of holdsMs.entries()) {
    for (let n = 0; n < 6; n += 1) {
      accepted.push(`r${round}.${n}`);
      await send(`r${round}.${n}`);
    }
    outside.exec('BEGIN IMMEDIATE');
    accepted.push(`r${round}.late`);
    const late = send(`r${round}.late`);
    // Held for its time: that is what is done here. Reads are answered all the while.
    const deadline = performance.now() + holdMs;
    while (performance.now() < deadline) {
      expect((await server.call('GET', `${address}/messages`)).status).toBe(200);
      await new Promise((resolve) => setTimeout(resolve, Math.min(100, holdMs)));
    }
    outside.exec('COMMIT');
    await late;
  }
  outside.close();
  const list = async () => (await server.call('GET', `${address}/prompts`)).json.admissions;
  await until('everything has ended', async () =>
    (await list()).every((one: { status: string }) => one.status === 'terminal'),
  );
  expect((await list()).map((one: { text: string; outcome: string }) => [one.text, one.outcome])).toEqual(
    accepted.map((text) => [text, 'completed']),
  );
  expect(turns.map((played) => played.turn.input)).toEqual(accepted);
  const ends = () => reader.events.filter((event) => event.type === 'message.complete');
  await until('every end is told', () => ends().length === accepted.length);
  expect(new Set(ends().map((event) => event.json.run_id)).size).toBe(accepted.length);
  expect((await server.messages(sessionId)).map((row) => row.content)).toEqual(
    accepted.flatMap((text) => [text, `echo: ${text}`]),
  );
  // Trouble was logged each time, and nothing became of it.
  const isLong = (ms: number): boolean => ms > PATIENCE_MS + 1_000;
  const troubles = server.logs.filter((line) => line.kind === 'busy' && line.level === 40);
  expect(troubles.length > 0).toBe(holdsMs.some(isLong));
  if (!holdsMs.some(isLong)) expect(refused).toBe(0);
  expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
}
