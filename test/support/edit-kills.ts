/**
 * Rounds of kill -9 around edits: a conversation is rewound, cleared, retried or forked, and the server dies at a random
 * moment of it. Afterwards the edit was made or it was not, as a whole; one that was acknowledged was made.
 */
import { expect } from 'vitest';
import type { Message } from '../../server/core/terms.ts';
import { filesOf, startChildServer, writeProviderHome } from './child-server.ts';
import { startFakeProvider } from './fake-provider.ts';
import { temporaryFolder } from './home.ts';
import { messagesOf } from './kill-rounds.ts';
import { seededRandom } from './random.ts';
import { until } from './until.ts';

const contentsOf = (rows: readonly Message[]): string[] => rows.map((row) => `${row.role} ${row.content}`);

export async function editKills(options: { seed: number; rounds: number }): Promise<void> {
  const { seed, rounds } = options;
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl);
  let server = await startChildServer({ home });
  const sessionId: string = (await server.call('POST', '/api/sessions', { title: 'Edited' })).json.session.session_id;
  let asked = 0;
  let made = 0;

  for (let round = 0; round < rounds; round += 1) {
    const where = `seed ${seed}, round ${round}`;
    while ((await messagesOf(server, sessionId)).length < 6) {
      asked += 1;
      const text = `script:chunks=3,id=p${asked}`;
      const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, { text });
      expect(answer.status, where).toBe(200);
    }
    const before = await messagesOf(server, sessionId);
    const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
    const edits = {
      rewind: { body: { turns: 1 + below(2), revision } },
      clear: { body: { revision } },
      retry: { body: {} },
      fork: { body: {} },
    };
    const name = (['rewind', 'clear', 'retry', 'fork'] as const)[below(4)]!;
    const answer = server.call('POST', `/api/sessions/${sessionId}/${name}`, edits[name].body).then(
      ({ status }) => status,
      () => null,
    );
    // From before it arrives to after it was answered.
    const moment = below(3) === 0 ? answer : new Promise((resolve) => setTimeout(resolve, below(12)));
    await moment;
    await server.kill();
    const status = await answer;
    server = await startChildServer({ home });
    const after = await until(`${where}: the session is idle`, async () => {
      const { session } = (await server.call('GET', `/api/sessions/${sessionId}`)).json;
      // Asked for behind the status: a prompt that waited ran between two reads the other way round.
      return session.status === 'idle' ? messagesOf(server, sessionId) : null;
    });
    const kept = name === 'rewind' ? before.slice(0, -2 * edits.rewind.body.turns) : [];
    const done: Record<typeof name, () => boolean> = {
      rewind: () => contentsOf(after).join() === contentsOf(kept).join(),
      clear: () => after.length === 0,
      // The prompt that was asked again runs, or was ended by its own death: in both cases it is there once.
      retry: () => {
        const prompts = contentsOf(after.filter((row) => row.role === 'user'));
        const fresh =
          after.findLast((row) => row.role === 'user')?.id !== before.findLast((row) => row.role === 'user')?.id;
        return fresh && prompts.join() === contentsOf(before.filter((row) => row.role === 'user')).join();
      },
      fork: () => contentsOf(after).join() === contentsOf(before).join(),
    };
    const unchanged = contentsOf(after).join() === contentsOf(before).join();
    expect(done[name]() || unchanged, `${where}: ${name} was made half`).toBe(true);
    if (status !== null && status < 300) expect(done[name](), `${where}: an acknowledged ${name}`).toBe(true);
    if (status !== null) made += 1;
    const files = await filesOf(home);
    expect(await messagesOf(server, sessionId), where).toEqual(after);
    expect(await filesOf(home), where).toEqual(files);
    const list = (await server.call('GET', '/api/sessions')).json.sessions as { session_id: string; title: string }[];
    for (const fork of list.filter((one) => one.session_id !== sessionId)) {
      const copied = contentsOf(await messagesOf(server, fork.session_id));
      expect(copied.length % 2, `${where}: a fork of half turns`).toBe(0);
      await server.call('DELETE', `/api/sessions/${fork.session_id}`);
    }
  }
  console.info(`seed ${seed}: ${made} of ${rounds} edits were answered before the kill`);
  expect(provider.violations).toEqual([]);
  await provider.close();
}
