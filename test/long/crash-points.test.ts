/**
 * A real server process is killed with -9 at each named point of a prompt's way, and started again on the same home.
 * Whatever the point: the prompt is there once, what a reader had been shown is there, it was run at most once, the
 * resumed reader gets its end, and the next prompt works at once.
 */
import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../server/authority/crash-points.ts';
import type { Message } from '../../server/core/terms.ts';
import { type ChildServer, filesOf, startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import type { SseEvent, SseReader } from '../support/sse.ts';
import { until } from '../support/until.ts';

/** The points in order, and how the turn must have ended after the restart. */
const POINTS: [point: CrashPoint, times: number, outcome: 'completed' | 'interrupted'][] = [
  ['admitted', 1, 'completed'],
  ['claimed', 1, 'interrupted'],
  ['pending-saved', 1, 'interrupted'],
  ['journal-opened', 1, 'interrupted'],
  ['mid-stream', 1, 'interrupted'],
  ['mid-stream', 6, 'interrupted'],
  ['row-committed', 1, 'interrupted'],
  ['row-committed', 2, 'interrupted'],
  ['journal-sealed', 1, 'completed'],
  ['settled', 1, 'completed'],
  ['sidecar-saved', 1, 'completed'],
];

const PROMPT = 'script:tool=list_files,args={} script:tool=list_files,args={} script:chunks=12,delay=2,id=abc';

const messagesOf = async (server: ChildServer, sessionId: string): Promise<Message[]> =>
  (await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`)).json.messages;

/** Text of the deltas that a reader was shown, by run. */
function shownText(reader: SseReader): string {
  const deltas = reader.events.filter((event) => event.type === 'message.delta');
  return deltas.map((event) => event.json.payload.text).join('');
}

const textOf = (rows: Message[]): string =>
  rows
    .filter((row) => row.role === 'assistant' && !row.id.endsWith('.m'))
    .map((row) => row.content)
    .join('');

const isComplete = (event: SseEvent): boolean => event.type === 'message.complete';

describe('kill -9 at a named point, then a restart', () => {
  it.each(POINTS)(
    '[AD1][RE1][RE2][EV2][EV3] at "%s" (time %i): nothing is lost, nothing runs twice, it ends as %s',
    { timeout: 60_000 },
    async (crashAt, times, outcome) => {
      const provider = await startFakeProvider();
      const home = await temporaryFolder();
      await writeProviderHome(home, provider.baseUrl);

      const first = await startChildServer({ home, crashAt, times });
      const created = await first.call('POST', '/api/sessions', { workspace: home });
      const sessionId: string = created.json.session.session_id;
      const reader = await first.stream(`/api/sessions/${sessionId}/events`);
      await reader.next((event) => event.type === 'session.snapshot');
      const answer = first.call('POST', `/api/sessions/${sessionId}/prompts`, { text: PROMPT, request_id: 'one' });
      const acknowledged = answer.then(
        () => true,
        () => false,
      );
      expect(await first.exited).toBe('SIGKILL');
      await reader.ended;
      await acknowledged;
      const shown = shownText(reader);
      const lastId = reader.events.findLast((event) => event.id !== null)?.id ?? null;

      const second = await startChildServer({ home });
      const rows = await messagesOf(second, sessionId);
      if (outcome === 'interrupted') {
        // The first read after the restart is already right.
        expect(rows.filter((row) => row.role === 'user').map((row) => row.content)).toEqual([PROMPT]);
        expect(textOf(rows)).toContain(shown);
        expect(rows.filter((row) => row.id.endsWith('.m'))).toHaveLength(1);
        expect(rows.at(-1)?.error?.cause).toBe('process_restart');
      }
      const ended = await until('the turn has ended', async () => {
        const list = await second.call('GET', `/api/sessions/${sessionId}/prompts`);
        const [admission] = list.json.admissions;
        return admission?.status === 'terminal' ? admission : null;
      });
      expect(ended.outcome).toBe(outcome);

      // A repeat of the prompt is the same prompt.
      const repeat = await second.call('POST', `/api/sessions/${sessionId}/prompts`, {
        text: PROMPT,
        request_id: 'one',
      });
      expect(repeat.status).toBe(202);
      expect(repeat.json.admission).toMatchObject({ admission_id: ended.admission_id, outcome });

      // The reader comes back where it was and gets the rest, each event once, and one end.
      const resumed = await second.stream(`/api/sessions/${sessionId}/events`, {
        headers: lastId === null ? {} : { 'last-event-id': lastId },
      });
      const seqs = (events: SseEvent[]) => events.filter((event) => event.json.seq).map((event) => event.json.seq);
      const complete = await resumed.next(isComplete);
      expect(complete.json.payload).toMatchObject({ outcome, admission_id: ended.admission_id });
      expect([...seqs(reader.events), ...seqs(resumed.events)]).toEqual(
        Array.from({ length: complete.json.seq }, (_, index) => index + 1),
      );
      const text = shown + shownText(resumed);
      const settledRows = await messagesOf(second, sessionId);
      expect(textOf(settledRows)).toBe(text);
      if (outcome === 'completed') {
        expect(text).toContain('[abc:11]');
        expect(settledRows.some((row) => row.id.endsWith('.m'))).toBe(false);
      }
      expect(new Set(settledRows.map((row) => row.id)).size).toBe(settledRows.length);

      // The prompt reached the model at most once: one request for each step, and none of them again.
      const steps = provider.requests.map(
        (request) => request.body.messages?.filter((message) => message.role === 'tool').length,
      );
      // Step n is the one that is sent n results of tools.
      expect(steps).toEqual(steps.map((_, index) => index));
      if (outcome === 'completed') expect(steps).toEqual([0, 1, 2]);

      // The next prompt works at once, and the provider accepts the history.
      const next = await second.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, { text: 'and now?' });
      expect(next.status).toBe(200);
      expect(next.json.message.content).toBe('You said: and now?');
      expect(provider.violations).toEqual([]);

      // A second restart and read changes no byte.
      await second.kill();
      const before = await filesOf(home);
      const third = await startChildServer({ home });
      const again = await messagesOf(third, sessionId);
      expect(again.slice(0, settledRows.length)).toEqual(settledRows);
      await third.kill();
      expect(await filesOf(home)).toEqual(before);
      reader.drop();
      resumed.drop();
      await provider.close();
    },
  );
});
