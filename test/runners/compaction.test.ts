/** A conversation that outgrows its window, on a whole server with a provider on a real socket: when older turns are summarised, what the model is given from then on, and what people see. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { connectGateway } from '../support/gateway.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const WINDOW = 10_000;
/** About a tenth of the window. */
const LONG = 'word '.repeat(800);

interface Scene {
  provider: FakeProvider;
  server: TestServer;
  id: string;
  address: string;
  usage(): Promise<Record<string, unknown>>;
  /** What the model was sent last, as one text. */
  told(): string;
  /** Turns that fill about a tenth of the window each. */
  fill(turns: number, from?: number): Promise<void>;
}

async function scene(more = '', window: number | null = WINDOW): Promise<Scene> {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const length = window === null ? '' : `, context_length: ${window}`;
  const config = `model: {provider: custom, base_url: "${provider.baseUrl}", default: fake-model${length}}\n${more}`;
  const server = await startTestServer({ config });
  const id = await server.session({ title: 'Long' });
  const address = `/api/sessions/${id}`;
  return {
    provider,
    server,
    id,
    address,
    usage: async () => (await server.call('GET', address)).json.session.usage,
    told: () => JSON.stringify(provider.requests.at(-1)!.body.messages),
    async fill(turns, from = 0) {
      for (let turn = from; turn < from + turns; turn += 1) {
        provider.next({ text: `answer ${turn}` });
        await server.ask(id, `question ${turn}: ${LONG}`);
      }
    },
  };
}

/** Statuses that a reader of the session was told. */
async function statusesDuring(server: TestServer, id: string, work: () => Promise<unknown>, turns = 1) {
  const stream = await server.stream(`/api/sessions/${id}/events`);
  await stream.next(({ type }) => type === 'session.snapshot');
  await work();
  const ends = () => stream.events.filter(({ type }) => type === 'message.complete').length;
  await until('all turns have ended', () => ends() === turns);
  const kinds = stream.events.filter(({ type }) => type === 'status').map(({ json }) => json.payload.kind as string);
  stream.drop();
  return kinds;
}

describe('how full the window is', () => {
  it('[CX1] is told at every step as the provider counted it, and by the session', async () => {
    const { provider, server, id, usage } = await scene();
    const stream = await server.stream(`/api/sessions/${id}/events`);
    provider.next(
      { tool_calls: [{ name: 'todo', args: { todos: [] } }] },
      { usage: { prompt_tokens: 900, completion_tokens: 30, total_tokens: 930 } },
    );
    provider.next({ text: 'done' }, { usage: { prompt_tokens: 950, completion_tokens: 20, total_tokens: 970 } });
    await server.ask(id, 'go');
    await stream.next(({ type }) => type === 'message.complete');
    const told = stream.events.filter(({ type }) => type === 'usage').map(({ json }) => json.payload);
    expect(told).toMatchObject([
      { context_used: 930, context_length: WINDOW },
      { context_used: 970, context_length: WINDOW },
    ]);
    expect(await usage()).toMatchObject({ input_tokens: 1850, context_used: 970, context_length: WINDOW });
    expect(await usage()).not.toHaveProperty('context_estimated');
  });

  it('[CX1] is estimated where the provider counts nothing, and said to be', async () => {
    const { provider, server, id, usage } = await scene();
    provider.next({ text: 'short' }, { end: 'done-only' });
    await server.ask(id, LONG);
    const { context_used, ...rest } = (await usage()) as { context_used: number };
    expect(rest).toMatchObject({ context_estimated: true, context_length: WINDOW, input_tokens: 0, output_tokens: 0 });
    expect(context_used).toBeGreaterThan(400);
    provider.next({ text: 'counted' }, { usage: { prompt_tokens: 500, completion_tokens: 5, total_tokens: 505 } });
    await server.ask(id, 'again');
    expect(await usage()).toEqual({ input_tokens: 500, output_tokens: 5, context_used: 505, context_length: WINDOW });
  });
});

describe('at the threshold', () => {
  it('[CX2][CX3] what is older is summarised, the last turns stay word by word, and people see all of it', async () => {
    const { provider, server, id, fill, told, usage } = await scene();
    await fill(6);
    expect(provider.summaries).toHaveLength(0);
    const before = await server.messages(id);
    const kinds = await statusesDuring(server, id, () => fill(1, 6));
    expect(kinds).toEqual(['compacting', 'compacted']);
    expect(JSON.stringify(provider.summaries[0]!.body.messages)).toContain('question 0');
    expect(provider.summaries[0]!.body).not.toHaveProperty('tools');
    expect(told()).toContain('Summary number 1.');
    expect(told()).not.toContain('question 0');
    expect(told()).toContain('question 5');
    expect(told()).toContain('question 6');
    const after = await server.messages(id);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.map(({ role }) => role)).toEqual(Array(7).fill(['user', 'assistant']).flat());
    expect((await usage()).context_length).toBe(WINDOW);
    // The next turn goes on from it and asks for no other.
    await fill(1, 7);
    expect(provider.summaries).toHaveLength(1);
    expect(told()).toContain('Summary number 1.');
    expect(provider.violations).toEqual([]);
  });

  it('[CX2][CX3] twice in one conversation: the second summary is made of the first and what came since', async () => {
    const { provider, fill, told, server, id } = await scene();
    await fill(14);
    expect(provider.summaries.length).toBeGreaterThanOrEqual(2);
    const second = JSON.stringify(provider.summaries[1]!.body.messages);
    expect(second).toContain('Summary number 1.');
    expect(second).not.toContain('question 0');
    expect(told()).toContain(`Summary number ${provider.summaries.length}.`);
    expect(told()).not.toContain('Summary number 1.');
    expect(await server.messages(id)).toHaveLength(28);
    expect(provider.violations).toEqual([]);
  });

  it('[CX3] the context is the same after a restart', async () => {
    const { provider, server, id, fill, told } = await scene();
    await fill(7);
    const summaries = provider.summaries.length;
    expect(summaries).toBe(1);
    provider.next({ text: 'first' });
    await server.ask(id, 'short');
    const before = provider.requests.at(-1)!.body.messages;
    await server.close();
    const next = await startTestServer({ home: server.home });
    provider.next({ text: 'second' });
    await next.ask(id, 'short');
    expect(provider.requests.at(-1)!.body.messages.slice(0, before.length)).toEqual(before);
    expect(told()).toContain('Summary number 1.');
    expect(provider.summaries).toHaveLength(summaries);
  });

  it('[CX2] the threshold is `agent.compact_at`, and what a tool said within a turn counts', async () => {
    const { provider, fill, server, id, told } = await scene('agent: {compact_at: 0.5}');
    await fill(2);
    expect(provider.summaries).toHaveLength(0);
    provider.next(
      { tool_calls: [{ name: 'todo', args: { todos: [] } }] },
      { usage: { prompt_tokens: 6000, completion_tokens: 5, total_tokens: 6005 } },
    );
    provider.next({ text: 'done' });
    await server.ask(id, 'now');
    expect(provider.summaries).toHaveLength(1);
    expect(told()).toContain('Summary number 1.');
    expect(provider.requests.at(-1)!.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
    ]);
    expect(provider.violations).toEqual([]);
  });

  it.each([
    ['fails', [{ status: 500 }]],
    ['is empty', [{ text: '<think>hm' }]],
    ['is cut', [{ text: 'Half' }, { cut: 'mid-chunk' as const }]],
  ])(
    '[CX5] a summary that %s fails no turn: it goes on with all, and what does not fit is left out',
    async (_how, steps) => {
      const { provider, server, id, fill, told } = await scene();
      await fill(6);
      provider.nextSummary(...steps);
      const kinds = await statusesDuring(server, id, () => fill(1, 6));
      expect(kinds).toEqual(['compacting', 'compaction_failed']);
      expect(told()).toContain('question 0');
      // No turn waits for another one soon; until the oldest turns do not fit any more.
      const later = await statusesDuring(server, id, () => fill(4, 7), 4);
      expect(provider.summaries).toHaveLength(1);
      expect(new Set(later)).toEqual(new Set(['context_cut']));
      expect(told()).not.toContain('question 0');
      expect(told()).toContain('question 10');
      expect(await server.messages(id)).toHaveLength(22);
      expect(provider.violations).toEqual([]);
    },
  );

  it('[CX5] a stop ends the wait for a summary, and the next turn makes it', async () => {
    const { provider, server, id, address, fill, told } = await scene();
    await fill(6);
    provider.nextSummary({ hang: true });
    await server.prompt(id, LONG);
    await until('a summary is asked for', () => provider.summaries.length === 1);
    expect((await server.call('POST', `${address}/interrupt`, {})).status).toBe(200);
    await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
    expect(await provider.summaries[0]!.ended).toBe(true);
    expect((await server.call('POST', `${address}/compact`)).json).toMatchObject({ status: 'compressed' });
    await fill(1, 6);
    expect(told()).toContain(`Summary number ${provider.summaries.length}.`);
    expect(provider.violations).toEqual([]);
  });
});

describe('a provider that refuses a conversation for its length', () => {
  const TOO_LONG = {
    status: 400,
    body: { error: { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' } },
  };

  it('[CX6] it is compacted once and the step asked again', async () => {
    const { provider, server, id, fill, told } = await scene('', null);
    await fill(3);
    provider.next(TOO_LONG);
    provider.next({ text: 'answer 3' });
    const kinds = await statusesDuring(server, id, () => server.ask(id, 'question 3'));
    expect(kinds).toEqual(['compacting', 'compacted']);
    // In two pieces: where nobody knows the window, neither is longer than half of what was refused.
    expect(provider.summaries).toHaveLength(2);
    expect(told()).toContain('Summary number 2.');
    expect(told()).not.toContain('question 0');
    expect((await server.messages(id)).at(-1)).toMatchObject({ status: 'complete' });
    expect(provider.violations).toEqual([]);
  });

  it('[CX6] still too long: the turn fails with that code, and no request is made in vain', async () => {
    const { provider, server, id, fill } = await scene('', null);
    await fill(3);
    provider.next(TOO_LONG);
    provider.next(TOO_LONG);
    const requests = provider.requests.length;
    const { admission, message } = await server.ask(id, 'on');
    expect(admission.outcome).toBe('failed');
    expect(message.error.code).toBe('context_too_long');
    expect(provider.requests).toHaveLength(requests + 2);
    expect(provider.summaries).toHaveLength(2);
  });

  it('[CX6] without a summary the oldest turns are left out of the second try', async () => {
    const { provider, server, id, fill, told } = await scene('', null);
    await fill(4);
    provider.next(TOO_LONG);
    provider.nextSummary({ status: 500 });
    const kinds = await statusesDuring(server, id, () => server.ask(id, 'on'));
    expect(kinds).toEqual(['compacting', 'context_cut']);
    expect(told()).not.toContain('question 0');
    expect(told()).toContain('question 3');
  });

  it('[CX6] in the middle of a turn what it has done already stays, well paired', async () => {
    const { provider, server, id, fill } = await scene('', null);
    await fill(3);
    provider.next({ tool_calls: [{ id: 'x', name: 'todo', args: { todos: [] } }] });
    provider.next(TOO_LONG);
    provider.next({ text: 'done' });
    const { message } = await server.ask(id, 'on');
    expect(message).toMatchObject({ status: 'complete', content: 'done' });
    const sent = provider.requests.at(-1)!.body.messages;
    expect(sent.slice(-2)).toMatchObject([{ role: 'assistant', tool_calls: [{ id: 'x' }] }, { role: 'tool' }]);
    expect(JSON.stringify(sent)).toContain('Summary number 2.');
    expect(provider.violations).toEqual([]);
  });
});

describe('on request', () => {
  it('[CX2][CX4] over REST: all but the last turn, with what is to be kept; the revision grows', async () => {
    const { provider, server, id, address, fill, told } = await scene();
    await fill(3);
    const before = await server.messages(id);
    const { revision } = (await server.call('GET', address)).json.session;
    const answer = await server.call('POST', `${address}/compact`, { focus: 'the trees' });
    expect(answer).toMatchObject({
      status: 200,
      json: {
        status: 'compressed',
        summary: 'Summary number 1.',
        before_messages: 6,
        after_messages: 3,
        removed: 3,
        session: { usage: { context_estimated: true } },
      },
    });
    expect(answer.json.after_tokens).toBeLessThan(answer.json.before_tokens);
    expect(answer.json.session.revision).toBeGreaterThan(revision);
    expect(JSON.stringify(provider.summaries[0]!.body)).toContain('the trees');
    expect(await server.messages(id)).toEqual(before);
    await fill(1, 3);
    expect(told()).not.toContain('question 1');
    expect(told()).toContain('question 2');
    expect(provider.violations).toEqual([]);
  });

  it('[CX2][GW9] over the gateway, with the shape that its clients know', async () => {
    const { server, id, fill } = await scene();
    await fill(2);
    const client = await connectGateway(server.url);
    const { session_id } = await client.call('session.resume', { session_id: id });
    const done = await client.call('session.compress', { session_id, focus_topic: 'all' });
    expect(done).toMatchObject({
      status: 'compressed',
      removed: 1,
      before_messages: 4,
      after_messages: 3,
      summary: 'Summary number 1.',
      usage: { context_max: WINDOW, context_estimated: true },
      info: { stored_session_id: id },
    });
  });

  it('[CX2] a request while a turn runs or waits is refused and changes nothing', async () => {
    const { provider, server, id, address, fill } = await scene();
    await fill(2);
    const hold = provider.hold();
    provider.next({ text: 'so' }, { hold }, { text: ' far' });
    await server.prompt(id, 'on');
    await hold.reached;
    const refused = await server.call('POST', `${address}/compact`);
    expect(refused).toMatchObject({ status: 409, json: { code: 'session_busy' } });
    hold.release();
    await until('it is idle', async () => (await server.call('GET', address)).json.session.status === 'idle');
    expect(provider.summaries).toHaveLength(0);
  });

  it('[CX2] a turn that begins meanwhile does not wait, and the summary is there for the next', async () => {
    const { provider, server, address, fill, told } = await scene();
    await fill(2);
    const hold = provider.hold();
    provider.nextSummary({ text: 'A late' }, { hold }, { text: ' summary' });
    const asked = server.call('POST', `${address}/compact`);
    await hold.reached;
    await fill(1, 2);
    expect(told()).toContain('question 0');
    hold.release();
    expect((await asked).json).toMatchObject({ status: 'compressed', summary: 'A late summary' });
    await fill(1, 3);
    expect(told()).toContain('A late summary');
    expect(told()).not.toContain('question 0');
    expect(told()).toContain('question 2');
  });

  it('[CX4] two requests at once make one summary', async () => {
    const { provider, server, address, fill } = await scene();
    await fill(2);
    const both = await Promise.all([
      server.call('POST', `${address}/compact`),
      server.call('POST', `${address}/compact`),
    ]);
    expect(both.map(({ json }) => json.summary)).toEqual(['Summary number 1.', 'Summary number 1.']);
    expect(provider.summaries).toHaveLength(1);
  });

  it('[CX5] where there is nothing to summarise, or no summary comes, it says so and all stays', async () => {
    const { provider, server, id, address, fill } = await scene();
    expect((await server.call('POST', `${address}/compact`)).json).toMatchObject({ status: 'aborted', summary: null });
    await fill(2);
    provider.nextSummary({ status: 500 });
    const answer = await server.call('POST', `${address}/compact`);
    expect(answer.json).toMatchObject({ status: 'aborted', removed: 0, summary: null, message: expect.any(String) });
    expect((await server.call('POST', '/api/sessions/20200101_000000_aaaaaa/compact')).status).toBe(404);
    const builtin = await server.session({ model: 'builtin' });
    await server.ask(builtin, '/time');
    expect((await server.call('POST', `/api/sessions/${builtin}/compact`)).json.status).toBe('aborted');
    expect(await server.messages(id)).toHaveLength(4);
  });
});

describe('an edit', () => {
  const revisionOf = async ({ server, address }: Scene) => (await server.call('GET', address)).json.session.revision;

  it('[CX4][ED1] before the anchor takes the summary back', async () => {
    const made = await scene();
    const { server, id, address, fill, told } = made;
    await fill(3);
    await server.call('POST', `${address}/compact`);
    const rows = await server.messages(id);
    await server.call('POST', `${address}/rewind`, { to_message: rows[1]!.id, revision: await revisionOf(made) });
    await fill(1, 7);
    expect(told()).not.toContain('Summary');
    expect(told()).toContain('question 0');
    expect(told()).not.toContain('question 1');
  });

  it('[CX4] behind the anchor leaves it', async () => {
    const made = await scene();
    const { server, address, fill, told } = made;
    await fill(3);
    await server.call('POST', `${address}/compact`);
    await server.call('POST', `${address}/rewind`, { turns: 1, revision: await revisionOf(made) });
    await fill(1, 7);
    expect(told()).toContain('Summary number 1.');
    expect(told()).not.toContain('question 2');
  });

  it.each(['clear', 'resend'])('[CX4][ED1] %s takes it back with everything', async (edit) => {
    const made = await scene();
    const { server, id, address, fill, told } = made;
    await fill(3);
    await server.call('POST', `${address}/compact`);
    if (edit === 'clear') await server.call('POST', `${address}/clear`, { revision: await revisionOf(made) });
    else {
      const client = await connectGateway(server.url);
      const { session_id } = await client.call('session.resume', { session_id: id });
      await client.call('prompt.submit', {
        session_id,
        text: 'anew',
        truncate_before_user_ordinal: 0,
        confirm_truncate: true,
        confirm_empty_truncate: true,
      });
      await client.event(session_id, 'message.complete');
    }
    await fill(1, 7);
    expect(told()).not.toContain('Summary');
    expect(told()).not.toContain('question 0');
  });

  it('[CX4] made while the summary was written: what it tells of what was taken back is not kept', async () => {
    const made = await scene();
    const { provider, server, address, fill, told } = made;
    await fill(3);
    const hold = provider.hold();
    provider.nextSummary({ text: 'Old' }, { hold }, { text: ' words' });
    const asked = server.call('POST', `${address}/compact`);
    await hold.reached;
    await server.call('POST', `${address}/clear`, { revision: await revisionOf(made) });
    hold.release();
    expect((await asked).json).toMatchObject({ status: 'aborted' });
    await fill(1, 7);
    expect(told()).not.toContain('Old words');
  });

  it('[CX4][ED4] a fork that has the anchor has the summary too; one from before it has the rows', async () => {
    const { provider, server, id, address, fill } = await scene();
    await fill(3);
    await server.call('POST', `${address}/compact`);
    const rows = await server.messages(id);
    const askFork = async (body: object) => {
      const { session } = (await server.call('POST', `${address}/fork`, body)).json;
      provider.next({ text: 'forked' });
      await server.ask(session.session_id, 'on');
      return JSON.stringify(provider.requests.at(-1)!.body.messages);
    };
    expect(await askFork({})).toContain('Summary number 1.');
    const early = await askFork({ at_message: rows[1]!.id });
    expect(early).not.toContain('Summary');
    expect(early).toContain('question 0');
    // An exported session is what people see; the import begins without a summary.
    const document = (await server.call('GET', `${address}/export?format=json`)).text;
    expect(document).not.toContain('Summary');
  });
});
