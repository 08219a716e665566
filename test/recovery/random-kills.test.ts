/**
 * Twenty sessions stream from an OpenAI-compatible provider in a server of its own, which is killed with -9 at random
 * moments. The seed is printed with every failure; set TURNKEEP_TEST_SEED to run one again.
 */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import type { SseReader } from '../support/sse.ts';
import { until } from '../support/until.ts';

const chunksOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, index) => `[${id}:${index}] `)
    .join('')
    .trim();

const messagesOf = async (server: ChildServer, sessionId: string): Promise<Message[]> =>
  (await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`)).json.messages;

const shownIn = (readers: SseReader[], runId: string): string =>
  readers
    .flatMap((reader) => reader.events)
    .filter((event) => event.type === 'message.delta' && event.json.run_id === runId)
    .map((event) => event.json.payload.text)
    .join('');

describe('many sessions and a real provider', () => {
  it('[LE2][EV1] twenty sessions stream at once, and every transcript is exact', { timeout: 60_000 }, async () => {
    const provider = await startFakeProvider();
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    const server = await startChildServer({ home });
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { json } = await server.call('POST', '/api/sessions');
        const sessionId = json.session.session_id;
        const body = { text: `script:chunks=60,delay=3,id=s${index}` };
        const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body });
        await reader.ended;
        const text = chunksOf(`s${index}`, 60);
        const seqs = reader.events.map((event) => event.json.seq);
        expect(seqs).toEqual(seqs.map((_, at) => at + 1));
        expect(shownIn([reader], reader.events[0]!.json.run_id).trim()).toBe(text);
        const rows = await messagesOf(server, sessionId);
        expect(rows.map((row) => [row.role, row.content.trim()])).toEqual([
          ['user', body.text],
          ['assistant', text],
        ]);
      }),
    );
    await provider.close();
  });

  it('[AD1][RE1][RE2][EV1] kill -9 at ten random moments loses no accepted prompt and no shown text', {
    timeout: 240_000,
  }, async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const provider = await startFakeProvider();
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    let server = await startChildServer({ home });
    const sessions: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      sessions.push((await server.call('POST', '/api/sessions')).json.session.session_id);
    }
    const accepted: { sessionId: string; runId: string; text: string; readers: SseReader[] }[] = [];
    let readers: SseReader[] = [];

    for (let round = 0; round < 10; round += 1) {
      readers = await Promise.all(
        sessions.map((sessionId) => {
          const last = accepted
            .filter((one) => one.sessionId === sessionId)
            .flatMap((one) => one.readers)
            .flatMap((reader) => reader.events)
            .findLast((event) => event.id !== null && event.json.session_id === sessionId)?.id;
          return server.stream(`/api/sessions/${sessionId}/events`, last ? { headers: { 'last-event-id': last } } : {});
        }),
      );
      const sent = sessions.map(async (sessionId, index) => {
        const text = `script:chunks=40,delay=4,id=r${round}s${index}`;
        const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text });
        expect(answer.status, `seed ${seed}`).toBe(202);
        accepted.push({ sessionId, runId: answer.json.run_id, text, readers: [] });
      });
      await Promise.all(sent);
      for (const one of accepted) {
        const reader = readers[sessions.indexOf(one.sessionId)]!;
        if (!one.readers.includes(reader)) one.readers.push(reader);
      }
      // A random number of deltas has come: somewhere in the middle of five turns.
      const wanted = Math.floor(random() * 150);
      await until(`${wanted} deltas have come (seed ${seed})`, () => {
        const deltas = readers.flatMap((reader) => reader.events).filter((event) => event.type === 'message.delta');
        const ended = readers.every((reader) =>
          reader.events.some((event) => event.type === 'message.complete' && event.json.payload.admission_id),
        );
        return deltas.length >= wanted || ended;
      });
      await server.kill();
      await Promise.all(readers.map((reader) => reader.ended));
      server = await startChildServer({ home });
      // The first read after the restart has every prompt that had started and every character that was shown.
      for (const [index, sessionId] of sessions.entries()) {
        const rows = await messagesOf(server, sessionId);
        for (const one of accepted.filter((other) => other.sessionId === sessionId)) {
          const shown = shownIn(one.readers, one.runId);
          const own = rows.filter((row) => row.run_id === one.runId);
          const said = own
            .filter((row) => row.role === 'assistant' && !row.id.endsWith('.m'))
            .map((row) => row.content);
          expect(said.join('').startsWith(shown), `seed ${seed}, round ${round}, session ${index}`).toBe(true);
          if (shown) expect(own[0]).toMatchObject({ role: 'user', content: one.text });
        }
      }
    }

    await until(
      'everything has ended',
      async () => {
        const lists = await Promise.all(
          sessions.map(
            async (sessionId) => (await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status,
          ),
        );
        return lists.every((status) => status === 'idle');
      },
      60_000,
    );
    for (const sessionId of sessions) {
      const rows = await messagesOf(server, sessionId);
      const own = accepted.filter((one) => one.sessionId === sessionId);
      // Every accepted prompt once, in order, and each ran at most once.
      expect(
        rows.filter((row) => row.role === 'user').map((row) => row.content),
        `seed ${seed}`,
      ).toEqual(own.map((one) => one.text));
      for (const one of own) {
        const asked = provider.requests.filter((request) =>
          JSON.stringify(request.body.messages?.at(-1)).includes(one.text),
        );
        expect(asked.length, `seed ${seed}: ${one.text}`).toBeLessThanOrEqual(1);
      }
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
    }
    expect(provider.violations).toEqual([]);
    await provider.close();
  });
});
