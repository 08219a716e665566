/**
 * A real server process is killed with -9 at each step of a compaction, on request and within a turn, and started again on
 * the same home. Whatever the step: what people see is what it was, and the model is given all of it or the whole summary
 * with what is behind it; the next turn works, and a strict provider takes it.
 */
import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../server/authority/crash-points.ts';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, filesOf, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';

/** The points in order, and whether the summary stands afterwards. */
const POINTS: [point: CrashPoint, stands: boolean][] = [
  ['compacting', false],
  ['summarised', false],
  ['summary-saved', true],
];
/** About a tenth of the window. */
const LONG = 'word '.repeat(800);
const WINDOW = 10_000;

const messagesOf = async (server: ChildServer, id: string): Promise<Message[]> =>
  (await server.call('GET', `/api/sessions/${id}/messages?limit=100000`)).json.messages;

/** A conversation of some long turns, and a server process that dies at a point of the compaction to come. */
async function conversation(crashAt: CrashPoint, turns: number) {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, `  context_length: ${WINDOW}\n`);
  const server = await startChildServer({ home, crashAt });
  const created = await server.call('POST', '/api/sessions', { title: 'Long', workspace: home });
  const id: string = created.json.session.session_id;
  const ask = (on: ChildServer, text: string) => {
    provider.next({ text: `answer to ${text.slice(0, 10)}` });
    return on.call('POST', `/api/sessions/${id}/prompts?wait=1`, { text });
  };
  for (let turn = 0; turn < turns; turn += 1) await ask(server, `question ${turn}: ${LONG}`);
  expect(provider.summaries).toHaveLength(0);
  const rows = await messagesOf(server, id);
  return { provider, home, server, id, rows, ask };
}

describe('kill -9 in a compaction, then a restart', () => {
  it.each(POINTS)('[CX4][CX3] on request, at "%s"', { timeout: 60_000 }, async (crashAt, stands) => {
    const { provider, home, server, id, rows, ask } = await conversation(crashAt, 3);
    const asked = server.call('POST', `/api/sessions/${id}/compact`).then(
      () => 'answered',
      () => 'cut off',
    );
    expect(await server.exited).toBe('SIGKILL');
    expect(await asked).toBe('cut off');

    const next = await startChildServer({ home });
    expect(await messagesOf(next, id)).toEqual(rows);
    const files = await filesOf(home);
    expect(await messagesOf(next, id)).toEqual(rows);
    expect(await filesOf(home)).toEqual(files);
    const { json } = await ask(next, 'and now?');
    expect(json.message).toMatchObject({ status: 'complete', content: 'answer to and now?' });
    const told = JSON.stringify(provider.requests.at(-1)!.body.messages);
    expect([told.includes('Summary number 1.'), told.includes('question 0')]).toEqual([stands, !stands]);
    expect(told).toContain('question 2');
    expect((await messagesOf(next, id)).slice(0, rows.length)).toEqual(rows);
    expect(provider.violations).toEqual([]);
    await provider.close();
  });

  it.each(POINTS)('[CX4][CX5][RE1] within a turn, at "%s"', { timeout: 60_000 }, async (crashAt, stands) => {
    const { provider, home, server, id, rows, ask } = await conversation(crashAt, 5);
    const last = `question 5: ${LONG}${LONG}`;
    const asked = ask(server, last).then(
      () => 'answered',
      () => 'cut off',
    );
    expect(await server.exited).toBe('SIGKILL');
    expect(await asked).toBe('cut off');

    const next = await startChildServer({ home });
    const after = await messagesOf(next, id);
    expect(after.slice(0, rows.length)).toEqual(rows);
    // The turn is interrupted as any other, with its prompt kept.
    expect(after[rows.length]).toMatchObject({ role: 'user', content: last });
    expect(after.slice(rows.length + 1)).toMatchObject([{ error: { code: 'interrupted', cause: 'process_restart' } }]);
    const before = provider.summaries.length;
    expect((await ask(next, 'and now?')).json.message.status).toBe('complete');
    const told = JSON.stringify(provider.requests.at(-1)!.body.messages);
    // Without the summary of before the window is as full as it was, and another one is made.
    expect(provider.summaries.length > before).toBe(!stands);
    expect(told).toContain('[CONTEXT COMPACTION]');
    expect(told).not.toContain('question 0');
    expect(told).toContain('question 5');
    expect((await messagesOf(next, id)).slice(0, after.length)).toEqual(after);
    expect(provider.violations).toEqual([]);
    await provider.close();
  });
});
