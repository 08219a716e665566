/** Two server processes on one home, and rounds in which both want one session. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, startChildServer, writeProviderHome } from './child-server.ts';
import { startFakeProvider } from './fake-provider.ts';
import { temporaryFolder } from './home.ts';
import { seededRandom } from './random.ts';
import type { Answer } from './test-server.ts';
import { until } from './until.ts';

export async function startTwoServers(more = '') {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, more);
  const [one, two] = await Promise.all([startChildServer({ home }), startChildServer({ home })]);
  return { provider, home, one, two };
}

export async function newSession(server: ChildServer): Promise<string> {
  return (await server.call('POST', '/api/sessions')).json.session.session_id;
}

export const promptsOf = (sessionId: string): string => `/api/sessions/${sessionId}/prompts`;

export async function messagesAt(server: ChildServer, sessionId: string): Promise<Message[]> {
  const answer = await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`);
  if (answer.status !== 200) throw new Error(`no messages: ${answer.text}\n${complaintsOf(server)}`);
  return answer.json.messages;
}

/** What a server complained of last, for the failure of a test. */
const complaintsOf = (server: ChildServer): string =>
  server
    .stderr()
    .split('\n')
    .filter((line) => /"level":[4-6]0/.test(line))
    .slice(-8)
    .join('\n');

/** The two lists, which must be the same at any moment in which nothing moves. */
export async function listsOf(servers: readonly ChildServer[]): Promise<unknown[]> {
  return Promise.all(servers.map(async (server) => (await server.call('GET', '/api/sessions?limit=1000')).json));
}

/** Holds the write lock of the state DB as another program may, for a time that a request can wait. */
async function lockFor(home: string, ms: number): Promise<void> {
  const db = new Database(path.join(home, 'state.db'), { timeout: 5000 });
  db.exec('BEGIN IMMEDIATE');
  await delay(ms);
  db.exec('COMMIT');
  db.close();
}

/**
 * Rounds in which two servers are sent prompts of one session at once. Each prompt is accepted by one owner or refused
 * with who holds it; what is accepted runs once, in the order of its acceptance; nothing else is stored; both servers
 * then show the same.
 * @param options.kills in some rounds one server is killed in the middle, and the other one is asked at once
 * @param options.locks in each round the state DB is locked from outside for a while: nobody is ever told of it
 */
export async function ownerRaces(options: {
  seed: number;
  rounds: number;
  kills: boolean;
  locks: boolean;
}): Promise<void> {
  const { seed, rounds, kills, locks } = options;
  const random = seededRandom(seed);
  const { provider, home, one, two } = await startTwoServers();
  const servers = [one, two];
  let refusals = 0;
  for (let round = 0; round < rounds; round += 1) {
    const where = `seed ${seed}, round ${round}`;
    const sessionId = await newSession(servers[round % 2]!);
    const send = async (index: number): Promise<{ text: string; answer: Answer | null }> => {
      const text = `script:chunks=${1 + Math.floor(random() * 6)},delay=2,id=${round}.${index}`;
      const server = servers[Math.floor(random() * 2)]!;
      const answer = await server
        .call('POST', promptsOf(sessionId), { text, request_id: `${round}.${index}` })
        .catch(() => null);
      return { text, answer };
    };
    const locked = locks ? lockFor(home, random() * 600) : null;
    const sent = Array.from({ length: 6 }, (_, index) => send(index));
    if (kills && random() < 0.3) {
      const victim = Math.floor(random() * 2);
      await Promise.race(sent);
      await servers[victim]!.kill();
      // Free at the next request, whatever the dead one was doing.
      const text = `script:chunks=1,delay=0,id=${round}.after`;
      const after = await servers[1 - victim]!.call('POST', promptsOf(sessionId), { text });
      expect(after.status, where).toBe(202);
      sent.push(Promise.resolve({ text, answer: after }));
      servers[victim] = await startChildServer({ home });
    }
    const outcomes = await Promise.all(sent);
    await locked;
    const pids = servers.map((server) => server.process.pid);
    for (const { answer } of outcomes) {
      if (answer === null || answer.status === 202) continue;
      expect(answer, where).toMatchObject({ status: 423, json: { code: 'session_not_owned' } });
      expect(answer.json.error).toContain(sessionId);
      if (!kills) expect(pids).toContain(answer.json.holder.pid);
      refusals += 1;
    }
    await until(
      `both are idle (${where})`,
      async () => {
        const found = await Promise.all(servers.map((server) => server.call('GET', `/api/sessions/${sessionId}`)));
        return found.every((answer) => answer.json.session?.status === 'idle');
      },
      60_000,
    ).catch((error) => {
      throw new Error(`${servers.map(complaintsOf).join('\n')}`, { cause: error });
    });
    const { admissions } = (await servers[0]!.call('GET', promptsOf(sessionId))).json;
    const accepted: string[] = admissions.map((admission: { text: string }) => admission.text);
    const rows = await messagesAt(servers[0]!, sessionId);
    expect(
      rows.filter((row) => row.role === 'user').map((row) => row.content),
      where,
    ).toEqual(accepted);
    expect(await messagesAt(servers[1]!, sessionId), where).toEqual(rows);
    for (const { text, answer } of outcomes) {
      // Of one whose answer was lost with its server nobody can say; of all others everybody.
      if (answer !== null) expect(accepted.includes(text), `${where}: ${text}`).toBe(answer.status === 202);
      const asked = provider.requests.filter((request) => {
        const last = request.body.messages?.at(-1)?.content;
        return typeof last === 'string' && last.split('\n\n').at(-1) === text;
      });
      expect(asked.length, `${where}: ${text}`).toBeLessThanOrEqual(1);
      if (!kills) expect(asked.length, `${where}: ${text}`).toBe(accepted.includes(text) ? 1 : 0);
    }
    const [first, second] = await listsOf(servers);
    expect(second, where).toEqual(first);
  }
  console.info(`seed ${seed}: ${refusals} refusals in ${rounds} rounds`);
  expect(refusals, `seed ${seed}`).toBeGreaterThan(0);
  await provider.close();
}
