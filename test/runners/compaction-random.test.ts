/**
 * Conversations with compactions, failed summaries, edits, stops and restarts in any order. Whatever happened: each prompt
 * that stands in the transcript is told to the model, as it was or by a summary, and none that was taken back is.
 */
import { expect, it, onTestFinished } from 'vitest';
import { type ChatBody, startFakeProvider } from '../support/fake-provider.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const WINDOW = 12_000;
const OPERATIONS = 60;

/** The marks of prompts that a request speaks of, each once. */
const marksIn = (body: ChatBody): string[] => [...new Set(JSON.stringify(body.messages).match(/mark\d+/g) ?? [])];

it('[CX3][CX4][CX5] nothing that stands is lost to the model, and nothing comes back', {
  timeout: 60_000,
}, async () => {
  const seed = testSeed();
  console.info(`compaction-random: seed ${seed}`);
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  let isMute = false;
  // A summary that keeps exactly what it was given, or nothing at all.
  provider.summarise = (body) => (isMute ? '' : `Of: ${marksIn(body).join(' ')}.`);
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model, context_length: ${WINDOW}}\n`;
  let server = await startTestServer({ config });
  let id = await server.session({ title: 'Random' });
  let standing: string[] = [];
  let asked = 0;
  let failing = false;

  const sessionOf = async () => (await server.call('GET', `/api/sessions/${id}`)).json.session;
  const newPrompt = (): string => {
    asked += 1;
    standing.push(`mark${asked}`);
    return `mark${asked} ${'word '.repeat(200 + below(1000))}`;
  };
  const operations = {
    async ask() {
      const text = newPrompt();
      provider.next({ text: `answer ${'so '.repeat(below(300))}` });
      await server.ask(id, text);
      // While no summary comes the oldest turns may be left out; what is told is never what was taken back.
      const told = marksIn(provider.requests.at(-1)!.body);
      if (failing) expect(standing).toEqual(expect.arrayContaining(told));
      else expect(told.toSorted()).toEqual(standing.toSorted());
    },
    async stop() {
      const hold = provider.hold();
      provider.next({ text: 'half' }, { hold });
      await server.prompt(id, newPrompt());
      await hold.reached;
      await server.call('POST', `/api/sessions/${id}/interrupt`, {});
      await until('it is idle', async () => (await sessionOf()).status === 'idle');
    },
    async compact() {
      isMute = below(3) === 0;
      const before = await server.messages(id);
      const { json } = await server.call('POST', `/api/sessions/${id}/compact`);
      if (isMute || before.length === 0) expect(json.status).toBe('aborted');
      failing = isMute ? before.length > 0 || failing : failing && json.status !== 'compressed';
      isMute = false;
      expect(await server.messages(id)).toEqual(before);
    },
    async rewind() {
      const turns = Math.min(standing.length, 1 + below(3));
      if (turns === 0) return;
      const { revision } = await sessionOf();
      expect((await server.call('POST', `/api/sessions/${id}/rewind`, { turns, revision })).status).toBe(200);
      standing = standing.slice(0, -turns);
    },
    async clear() {
      const { revision } = await sessionOf();
      await server.call('POST', `/api/sessions/${id}/clear`, { revision });
      standing = [];
    },
    async fork() {
      const rows = await server.messages(id);
      if (rows.length === 0) return;
      const at = below(standing.length);
      const prompts = rows.filter(({ role }) => role === 'user');
      const last = rows.findLast(({ run_id }) => run_id === prompts[at].run_id);
      id = (await server.call('POST', `/api/sessions/${id}/fork`, { at_message: last.id })).json.session.session_id;
      standing = standing.slice(0, at + 1);
    },
    async restart() {
      await server.close();
      server = await startTestServer({ home: server.home });
      failing = false;
    },
  };
  const often = [
    'ask',
    'ask',
    'ask',
    'ask',
    'ask',
    'ask',
    'stop',
    'compact',
    'compact',
    'rewind',
    'fork',
    'restart',
  ] as const;
  for (let step = 0; step < OPERATIONS; step += 1) {
    const name = below(40) === 0 ? 'clear' : often[below(often.length)]!;
    await operations[name]().catch((error) => {
      throw new Error(`seed ${seed}, step ${step}, ${name}`, { cause: error });
    });
  }
  expect(provider.summaries.length).toBeGreaterThan(0);
  expect(provider.violations).toEqual([]);
});
