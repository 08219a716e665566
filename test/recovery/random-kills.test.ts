/**
 * Twenty sessions stream from an OpenAI-compatible provider in a server of its own, which is killed with -9 at random
 * moments. The seed is printed with every failure; set TURNKEEP_TEST_SEED to run one again.
 */
import { describe, expect, it } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { killRounds, messagesOf, shownIn } from '../support/kill-rounds.ts';
import { testSeed } from '../support/random.ts';

const chunksOf = (id: string, count: number) =>
  Array.from({ length: count }, (_, index) => `[${id}:${index}] `)
    .join('')
    .trim();

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

  it('[AD1][RE1][RE2][EV1] kill -9 at five random moments loses no accepted prompt and no shown text', {
    timeout: 240_000,
  }, async () => {
    await killRounds({ seed: testSeed(), rounds: 5, sessionCount: 5 });
  });
});
