/**
 * Rounds of kill -9: some sessions stream from a provider, the server dies at a random moment, starts again, and what
 * it then shows is compared with what readers had been shown.
 */
import { expect } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, filesOf, startChildServer, writeProviderHome } from './child-server.ts';
import { startFakeProvider } from './fake-provider.ts';
import { temporaryFolder } from './home.ts';
import { seededRandom } from './random.ts';
import type { SseReader } from './sse.ts';
import { until } from './until.ts';

export const messagesOf = async (server: ChildServer, sessionId: string): Promise<Message[]> =>
  (await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`)).json.messages;

/** The text of a run that readers were shown. */
export const shownIn = (readers: SseReader[], runId: string): string =>
  readers
    .flatMap((reader) => reader.events)
    .filter((event) => event.type === 'message.delta' && event.json.run_id === runId)
    .map((event) => event.json.payload.text)
    .join('');

const CHUNKS = 40;

/** Runs the rounds and expects that nothing was lost, doubled or run twice, and that most were killed in mid-stream. */
export async function killRounds(options: { seed: number; rounds: number; sessionCount: number }): Promise<void> {
  const { seed, rounds, sessionCount } = options;
  const random = seededRandom(seed);
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  let server = await startChildServer({ home });
  const sessions: string[] = [];
  for (let index = 0; index < sessionCount; index += 1) {
    sessions.push((await server.call('POST', '/api/sessions')).json.session.session_id);
  }
  const accepted: { sessionId: string; runId: string; text: string; readers: SseReader[] }[] = [];
  let readers: SseReader[] = [];
  let inMidStream = 0;

  for (let round = 0; round < rounds; round += 1) {
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
      const text = `script:chunks=${CHUNKS},delay=4,id=r${round}s${index}`;
      const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text });
      expect(answer.status, `seed ${seed}`).toBe(202);
      accepted.push({ sessionId, runId: answer.json.run_id, text, readers: [] });
    });
    await Promise.all(sent);
    for (const one of accepted) {
      const reader = readers[sessions.indexOf(one.sessionId)]!;
      if (!one.readers.includes(reader)) one.readers.push(reader);
    }
    // A random number of deltas has come: somewhere in the middle of the turns of this round. What is replayed of
    // earlier ones does not count.
    const runs = new Set(accepted.slice(-sessionCount).map((one) => one.runId));
    const seen = (type: string) =>
      readers.flatMap((reader) => reader.events).filter((event) => event.type === type && runs.has(event.json.run_id));
    const wanted = Math.floor(random() * 0.75 * CHUNKS * sessionCount);
    await until(
      `${wanted} deltas have come (seed ${seed})`,
      () => seen('message.delta').length >= wanted || seen('message.complete').length === runs.size,
    );
    await server.kill();
    await Promise.all(readers.map((reader) => reader.ended));
    const ended = new Set(seen('message.complete').map((event) => event.json.run_id));
    if (seen('message.delta').some((event) => !ended.has(event.json.run_id))) inMidStream += 1;
    server = await startChildServer({ home });
    // The first read after the restart has every prompt that had started and every character that was shown.
    for (const [index, sessionId] of sessions.entries()) {
      const rows = await messagesOf(server, sessionId);
      for (const one of accepted.filter((other) => other.sessionId === sessionId)) {
        const shown = shownIn(one.readers, one.runId);
        const own = rows.filter((row) => row.run_id === one.runId);
        const said = own.filter((row) => row.role === 'assistant' && !row.id.endsWith('.m')).map((row) => row.content);
        expect(said.join('').startsWith(shown), `seed ${seed}, round ${round}, session ${index}`).toBe(true);
        if (shown) expect(own[0]).toMatchObject({ role: 'user', content: one.text });
      }
    }
  }

  console.info(`seed ${seed}: ${inMidStream} of ${rounds} rounds were killed in mid-stream`);
  expect(inMidStream, `seed ${seed}`).toBeGreaterThan(rounds / 2);
  await until(
    'everything has ended',
    async () => {
      const lists = await Promise.all(
        sessions.map(async (sessionId) => (await server.call('GET', `/api/sessions/${sessionId}`)).json.session.status),
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
      // Prompts in a row without an answer between them go as one message: the last of them is the one that is asked.
      const asked = provider.requests.filter((request) => {
        const last = request.body.messages?.at(-1)?.content;
        return typeof last === 'string' && last.split('\n\n').at(-1) === one.text;
      });
      expect(asked.length, `seed ${seed}: ${one.text}`).toBeLessThanOrEqual(1);
    }
    expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
  }
  // What was read once is healed: reading it again changes nothing on the disk.
  const files = await filesOf(home);
  for (const sessionId of sessions) await messagesOf(server, sessionId);
  expect(await filesOf(home), `seed ${seed}`).toEqual(files);
  expect(provider.violations).toEqual([]);
  await provider.close();
}
