/** Titles that a model writes: when, of what, and what they never do. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { cleanTitle } from '../../server/core/title.ts';
import { createTitles, type TitlesParts } from '../../server/sessions/titles.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { createMemoryStores } from '../support/memory-stores.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

async function start(more = ''): Promise<{ provider: FakeProvider; server: TestServer; id: string }> {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model}\n${more}`;
  const server = await startTestServer({ config });
  return { provider, server, id: await server.session() };
}

const titleOf = async (server: TestServer, id: string): Promise<string> =>
  (await server.call('GET', `/api/sessions/${id}`)).json.session.title;

const titled = (server: TestServer, id: string, title: string) =>
  until(`the title is "${title}"`, async () => (await titleOf(server, id)) === title);

const asked = (provider: FakeProvider, count: number) =>
  until(`${count} titles were asked for`, () => provider.titles.length === count);

describe('[RU13] a title by the model', () => {
  it('[RU13] comes after the first turn, from its own model, in one short request without tools', async () => {
    const { provider, server, id } = await start();
    const stream = await server.stream('/api/events');
    await server.ask(id, 'What is the capital of France?');
    await titled(server, id, 'A fitting title');
    await stream.next(({ json }) => json.payload?.session?.title === 'A fitting title');
    const { body } = provider.titles[0]!;
    expect(body).toMatchObject({ model: 'fake-model', stream: true, max_tokens: 200 });
    expect(body).not.toHaveProperty('tools');
    expect(body).not.toHaveProperty('tool_choice');
    expect(JSON.stringify(body.messages)).toContain('capital of France');
    expect(JSON.stringify(body.messages)).toContain('You said');
    const { usage } = (await server.call('GET', `/api/sessions/${id}`)).json.session;
    expect(usage.input_tokens).toBe(20);
    await server.ask(id, 'And of Spain?');
    await server.ask(id, 'And of Italy?');
    expect(provider.titles).toHaveLength(1);
    expect(provider.violations).toEqual([]);
  });

  it.each(['anthropic', 'openai'])('[RU13] is asked for in the words of its provider: %s', async (kind) => {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    const config = `model: {provider: ${kind}, base_url: "${provider.baseUrl}", default: m, api_key_env: KEY}`;
    const server = await startTestServer({ config, env: { KEY: 'key-0123456789' } });
    const id = await server.session();
    await server.ask(id, 'first words');
    await titled(server, id, 'A fitting title');
    expect(provider.titles[0]!.raw).toMatchObject(
      kind === 'openai' ? { max_completion_tokens: 200 } : { max_tokens: 200, system: [{ type: 'text' }] },
    );
    expect(provider.titles[0]!.raw).not.toHaveProperty(kind === 'openai' ? 'max_tokens' : 'tools');
    expect(provider.violations).toEqual([]);
  });

  it('[RU13] delays neither the end of its turn nor the next one, which it gives way to, nor the end of the server', async () => {
    const { provider, server, id } = await start();
    provider.nextTitle({ hang: true });
    provider.nextTitle({ hang: true });
    await server.ask(id, 'first words');
    expect(await titleOf(server, id)).toBe('first words');
    await asked(provider, 1);
    await server.ask(id, 'second');
    expect(await provider.titles[0]!.ended).toBe(true);
    await asked(provider, 2);
    let isClosed = false;
    void server.close().then(() => {
      isClosed = true;
    });
    // A title may take fifteen seconds.
    await until('the server has ended', () => isClosed, 10_000);
    expect(await provider.titles[1]!.ended).toBe(true);
  });

  it('[RU13] never replaces one that a person set, before or while it was being written', async () => {
    const { provider, server, id } = await start();
    const hold = provider.hold();
    provider.nextTitle({ text: 'By the' }, { hold }, { text: ' model' });
    await server.ask(id, 'first words');
    await hold.reached;
    await server.call('PATCH', `/api/sessions/${id}`, { title: 'Mine' });
    hold.release();
    await provider.titles[0]!.ended;
    await server.ask(id, 'second');
    expect(await titleOf(server, id)).toBe('Mine');

    const named = await server.session({ title: 'Also mine' });
    await server.ask(named, 'words');
    await server.ask(named, 'words');
    expect(await titleOf(server, named)).toBe('Also mine');
    expect(provider.titles).toHaveLength(1);
  });

  it.each([
    ['a failure', [{ status: 500 }]],
    ['a page', [{ html: '<p>no</p>' }]],
    ['nothing', []],
    ['only thoughts', [{ text: '<think>What could it be' }]],
    ['a cut answer', [{ text: 'Half a ti' }, { cut: 'mid-chunk' as const }]],
  ])('[RU13] %s leaves the first words, and the next turn asks again', async (_what, steps) => {
    const { provider, server, id } = await start();
    provider.nextTitle(...steps);
    await server.ask(id, 'first words');
    await asked(provider, 1);
    await provider.titles[0]!.ended;
    expect(await titleOf(server, id)).toBe('first words');
    await server.ask(id, 'second');
    await titled(server, id, 'A fitting title');
  });

  it('[RU13] the built-in agent and a turn that failed are asked for none', async () => {
    const { provider, server, id } = await start();
    provider.next({ status: 401 });
    await server.ask(id, 'first words');
    const builtin = await server.session({ model: 'builtin' });
    await server.ask(builtin, '/time');
    await server.close();
    expect(provider.titles).toEqual([]);
  });

  it('[RU13] a person who is quicker between the look and the write wins', async () => {
    const stores = createMemoryStores(() => true);
    const now = 1;
    const input = { title: null, model: null, workspace: null, project_id: null, source: 'turnkeep', now };
    await stores.sessions.create({ ...input, session_id: 's', create_key: null, create_digest: null });
    const sessions: TitlesParts['sessions'] = {
      get: stores.sessions.get,
      async patch(id, patch, options) {
        const mine = { title: 'Mine', title_source: 'user' as const };
        await stores.sessions.patch(id, mine, { now, revision: null });
        return stores.sessions.patch(id, patch, options);
      },
    };
    const changes: string[] = [];
    const titles = createTitles({
      sessions,
      ask: async () => 'By the model',
      onChange: (_id, reason) => changes.push(reason),
      now: () => now,
      log: { warn: () => {} },
    });
    titles.turnCompleted({ sessionId: 's', generation: 1, input: 'a', reply: 'b' });
    await until('it was decided', async () => (await stores.sessions.get('s'))?.title === 'Mine');
    await titles.close();
    expect((await stores.sessions.get('s'))?.title).toBe('Mine');
    expect(changes).toEqual([]);
  });
});

it('[RU13] what a model writes as a title becomes one clean line', () => {
  const cases: [string, string | null][] = [
    ['A plain title', 'A plain title'],
    ['"Quoted."', 'Quoted'],
    ['**Title: "Wrapped twice"**', 'Wrapped twice'],
    ['# Heading\nand an explanation', 'Heading'],
    ['\n\n  Spaced\t out  ', 'Spaced out'],
    ['<think>Hm, "what"?\nWell.</think>\n\nAfter thoughts', 'After thoughts'],
    ['<think>never ends', null],
    ['«Guillemets»', 'Guillemets'],
    ['„Deutsch“', 'Deutsch'],
    ["It's a plan", "It's a plan"],
    ['Half \ud83d gone\0', 'Half \ufffd gone\ufffd'],
    ['👋', null],
    ['...', null],
    ['', null],
    [`${'word '.repeat(40)}`, `${'word '.repeat(11)}word…`],
  ];
  for (const [answer, title] of cases) expect([answer, cleanTitle(answer)]).toEqual([answer, title]);
});
