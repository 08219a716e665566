/**
 * The life of one session in a soak: prompts over REST, streams and the gateway at random, in between reads, stops, files
 * and changes, then everything that was accepted is looked for once, and the session is deleted.
 */
import { expect } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import type { FakeProvider } from './fake-provider.ts';
import { connectGateway } from './gateway.ts';
import { AskedForPatience, type Follower, follow, type Place, pause } from './soak-place.ts';
import { openSse, type SseEvent } from './sse.ts';
import { until } from './until.ts';
import { upload } from './uploads.ts';

export interface SoakParts {
  place: Place;
  provider: FakeProvider;
  /** In [0, 1). */
  random(): number;
  /** Names this session; no other one has it. */
  name: string;
}

const MOST_PROMPTS = 12;
const TURN_LIMIT_MS = 120_000;

/** Lives a session through. @returns how many prompts it had */
export async function liveThrough(parts: SoakParts): Promise<number> {
  const { place, random, name } = parts;
  const made = await place.ask('POST', '/api/sessions', { title: name });
  expect(made.status).toBe(201);
  const id: string = made.json.session.session_id;
  const reader = await follow(place, id);
  const texts: string[] = [];
  const count = 3 + Math.floor(random() * (MOST_PROMPTS - 3));
  for (let n = 0; n < count; n += 1) {
    const chunks = 2 + Math.floor(random() * 30);
    const text = `script:chunks=${chunks},delay=${Math.floor(random() * 15)},id=${name}n${n}`;
    const ways = [submitOverRest, submitAsStream, submitOverGateway];
    await ways[Math.floor(random() * ways.length)]!(place, id, text);
    texts.push(text);
    await besides(parts, id);
    if (random() < 0.5) await untilIdle(place, id);
    await pause(random() * 300);
  }
  await untilIdle(place, id);
  await verify(parts, id, texts, reader);
  await reader.stop();
  // Deleted already, where the answer was lost with its server.
  expect([204, 404]).toContain((await place.ask('DELETE', `/api/sessions/${id}?stop=1`)).status);
  return count;
}

/** Something else that people do meanwhile. */
async function besides({ place, random, name }: SoakParts, id: string): Promise<void> {
  const deeds = [
    () => place.ask('GET', '/api/sessions'),
    () => place.ask('GET', `/api/sessions/${id}/messages`),
    () => place.ask('GET', `/api/search?q=${name}`),
    () => place.ask('PATCH', `/api/sessions/${id}`, { draft: 'x'.repeat(Math.floor(random() * 5000)) }),
    () => place.ask('POST', `/api/sessions/${id}/interrupt`, {}),
    () => place.answer((server) => upload(server, id, 'a.txt', 'y'.repeat(Math.floor(random() * 50_000)))),
    () => place.ask('GET', `/api/sessions/${id}/export?format=html`),
    () => place.ask('GET', '/metrics'),
  ];
  const { status } = await deeds[Math.floor(random() * deeds.length)]!();
  expect([200, 201]).toContain(status);
}

async function submitOverRest(place: Place, id: string, text: string): Promise<void> {
  const { status } = await place.ask('POST', `/api/sessions/${id}/prompts`, { text, request_id: text });
  expect(status).toBe(202);
}

/** The stream of a POST; its reader often leaves in its middle. */
async function submitAsStream(place: Place, id: string, text: string): Promise<void> {
  await place.during(async ({ url }) => {
    const body = { text, request_id: text };
    const stream = await openSse(`${url}/api/sessions/${id}/prompts`, { method: 'POST', body });
    if (stream.status === 503) throw new AskedForPatience('stream refused');
    expect(stream.status).toBe(200);
    await Promise.race([stream.ended, pause(150)]);
    stream.drop();
    expectInOrder(stream.events, false);
  });
}

/** A client of the gateway: what it is told after its prompt has numbers without a gap. */
async function submitOverGateway(place: Place, id: string, text: string): Promise<void> {
  await place.during(async ({ url }, isKilled) => {
    const client = await connectGateway(`${url}/`);
    try {
      const { session_id } = await client.call('session.resume', { session_id: id });
      const { run_id } = await client.call('prompt.submit', { session_id, text, request_id: text });
      const isTold = () =>
        client.events(session_id, 'message.complete').some((event) => event.run_id === run_id) ||
        client.closed() !== null;
      await Promise.race([until('the gateway tells of the end', isTold, TURN_LIMIT_MS), pause(400)]);
      const numbers = client.events(session_id).flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
      expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
    } finally {
      if (isKilled()) await client.drop();
      else await client.close();
    }
  });
}

const untilIdle = (place: Place, id: string): Promise<unknown> =>
  until(
    'the session is idle',
    async () => (await place.ask('GET', `/api/sessions/${id}`)).json.session.status === 'idle',
    TURN_LIMIT_MS,
  );

/** @param fromFirst whether the first event of each run must be there */
function expectInOrder(events: readonly SseEvent[], fromFirst: boolean): void {
  const runs = new Map<string, number[]>();
  for (const { json } of events) {
    if (json.seq !== undefined) runs.set(json.run_id, [...(runs.get(json.run_id) ?? []), json.seq]);
  }
  for (const [runId, numbers] of runs) {
    const first = fromFirst ? 1 : numbers[0]!;
    expect([runId, numbers]).toEqual([runId, numbers.map((_, at) => first + at)]);
  }
}

/** Everything that was accepted is there once, was asked once, and its reader was told everything once. */
async function verify({ place, provider, name }: SoakParts, id: string, texts: string[], reader: Follower) {
  const { admissions } = (await place.ask('GET', `/api/sessions/${id}/prompts`)).json;
  const accepted: { text: string; admission_id: string; run_id: string; status: string }[] = admissions;
  expect(accepted.map(({ text }) => text)).toEqual(texts);
  expect(accepted.filter(({ status }) => status !== 'terminal')).toEqual([]);
  const rows: Message[] = (await place.ask('GET', `/api/sessions/${id}/messages?limit=100000`)).json.messages;
  expect(rows.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(texts);
  expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);

  const completed = () =>
    reader.events().flatMap(({ type, json }) => (type === 'message.complete' ? [json.payload.admission_id] : []));
  const missing = () => accepted.filter(({ admission_id }) => !completed().includes(admission_id));
  const told = ({ run_id }: { run_id: string }) =>
    reader.events().filter(({ type, json }) => json.run_id === run_id && type !== 'message.delta');
  await until('the reader has heard of every end', () => missing().length === 0).catch((error) => {
    const what = missing().map((one) => [one, told(one).map(({ data }) => data.slice(0, 300))]);
    throw new Error(`of ${name}: ${JSON.stringify(what)}`, { cause: error });
  });
  expect(completed()).toEqual(accepted.map(({ admission_id }) => admission_id));
  expect(reader.events().filter(({ type }) => type === 'session.reset')).toEqual([]);
  expectInOrder(reader.events(), true);
  for (const { run_id } of accepted) {
    const shown = reader
      .events()
      .filter(({ type, json }) => type === 'message.delta' && json.run_id === run_id)
      .map(({ json }) => json.payload.text)
      .join('');
    const said = rows
      .filter((row) => row.run_id === run_id && row.role === 'assistant' && !row.id.endsWith('.m'))
      .map(({ content }) => content)
      .join('');
    expect([run_id, said]).toEqual([run_id, shown]);
  }
  // Prompts in a row without an answer between them go as one message: the last of them is the one that is asked.
  const asked = provider.requests.map(({ body }) => String(body.messages?.at(-1)?.content).split('\n\n').at(-1));
  for (const text of texts) expect([text, asked.filter((one) => one === text).length <= 1]).toEqual([text, true]);
  const others = provider.requests.filter((_, at) => !asked[at]!.includes(`id=${name}n`));
  provider.requests.splice(0, provider.requests.length, ...others);
  provider.titles.length = 0;
}
