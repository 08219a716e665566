/** A stop at any moment of a turn: what it answers is what became of the turn, and no other turn hears of it. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../server/authority/crash-points.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import type { SseEvent } from '../support/sse.ts';
import { type Answer, startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const POINTS: CrashPoint[] = [
  'admitted',
  'claimed',
  'pending-saved',
  'journal-opened',
  'mid-stream',
  'row-committed',
  'journal-sealed',
  'settled',
  'sidecar-saved',
];
const STOPS = 20;
/** At these nobody can have settled the turn before the stop comes, for the state DB is locked until it has. */
const SURE = new Set<CrashPoint>(['admitted', 'claimed']);

describe('a stop that comes in when a turn is', () => {
  it.each(POINTS)(
    '[CL6][EV2] %s, twenty at once: all say what became of it, it ends once, and the next turn runs',
    async (point) => {
      const stops: Promise<Answer>[] = [];
      let lock: Database.Database | null = null;
      const { runner } = createScriptedRunner((turn) => {
        for (const text of ['echo: ', turn.turn.input]) {
          turn.say({ type: 'message.start', payload: {} });
          turn.text(text);
        }
        turn.complete();
      });
      const server = await startTestServer({
        overrides: {
          runner,
          reached(reached) {
            if (reached !== point || stops.length > 0) return;
            lock = new Database(path.join(server.home, 'state.db'));
            // Before its claim a stop waits for that, and the claim would wait for the lock.
            if (point !== 'admitted') lock.exec('BEGIN IMMEDIATE');
            for (let n = 0; n < STOPS; n += 1) stops.push(server.call('POST', `${address}/interrupt`));
          },
        },
      });
      const sessionId = await server.session();
      const address = `/api/sessions/${sessionId}`;
      const reader = await server.stream(`${address}/events`);
      const sent = server.prompt(sessionId, 'first');
      await until('it is there', () => stops.length > 0);
      const answers = await Promise.all(stops);
      lock!.close();
      await sent;
      const ends = () => reader.events.filter((event: SseEvent) => event.type === 'message.complete');
      await until('it has ended', () => ends().length > 0);
      expect(answers.map((answer) => answer.status)).toEqual(Array(STOPS).fill(200));
      const { admissions } = (await server.call('GET', `${address}/prompts`)).json;
      const isStopped = answers.some((answer) => answer.json.status === 'interrupted');
      expect(admissions[0].outcome).toBe(isStopped ? 'interrupted' : 'completed');
      if (SURE.has(point))
        expect(answers.map((answer) => answer.json.status)).toEqual(Array(STOPS).fill('interrupted'));
      expect((await server.ask(sessionId, 'second')).message.content).toBe('second');
      await until('both ends are told', () => ends().length === 2);
      const rows = await server.messages(sessionId);
      expect(rows.filter((row) => row.role === 'user').map((row) => row.content)).toEqual(['first', 'second']);
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
      expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
    },
  );
});

describe('twenty of each at once', () => {
  it('[AD2][AD3][AD5][CL5][CL6] prompts, cancels, stops and resolves of one session leave every prompt with one end', async () => {
    const script = createScriptedRunner((turn) => {
      turn.text('said');
      turn.complete();
    });
    const server = await startTestServer({ config: 'queue:\n  max: 8\n', overrides: { runner: script.runner } });
    const sessionId = await server.session();
    const address = `/api/sessions/${sessionId}`;
    const reader = await server.stream(`${address}/events`);
    await reader.next((event) => event.type === 'session.snapshot');
    for (let round = 0; round < 5; round += 1) {
      const sent = Array.from({ length: 20 }, (_, n) =>
        server.call('POST', `${address}/prompts`, { text: `${round}.${n % 10}`, request_id: `${round}.${n % 10}` }),
      );
      const stops = Array.from({ length: 20 }, (_, n) =>
        server.call('POST', `${address}/interrupt`, n % 5 === 0 ? { clear_queue: true } : {}),
      );
      const listed = (await server.call('GET', `${address}/prompts`)).json.admissions as { admission_id: string }[];
      const each = listed.flatMap(({ admission_id }) => [
        server.call('DELETE', `${address}/prompts/${admission_id}`),
        server.call('POST', `${address}/prompts/${admission_id}/resolve`, { outcome: 'interrupted' }),
      ]);
      const answers = await Promise.all([...sent, ...stops, ...each]);
      for (const answer of answers) expect([200, 202, 409, 429], answer.text).toContain(answer.status);
      const accepted = (await Promise.all(sent)).filter((answer) => answer.status === 202);
      const byKey = new Map<string, Set<string>>();
      for (const { json } of accepted) {
        const { request_id, admission_id } = json.admission;
        byKey.set(request_id, (byKey.get(request_id) ?? new Set()).add(admission_id));
      }
      for (const [key, ids] of byKey) expect(ids.size, key).toBe(1);
    }
    await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
    const { admissions } = (await server.call('GET', `${address}/prompts?limit=1000`)).json;
    const ends = () => reader.events.filter((event) => event.type === 'message.complete');
    await until('every end is told', () => ends().length >= admissions.length);
    const told = ends().map((event) => `${event.json.payload.admission_id} ${event.json.payload.outcome}`);
    expect([...told].sort()).toEqual(
      admissions.map((one: { admission_id: string; outcome: string }) => `${one.admission_id} ${one.outcome}`).sort(),
    );
    expect(server.logs.filter((line) => line.level >= 50)).toEqual([]);
  });
});
