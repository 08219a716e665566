/** Server processes and signals: what ends, what is kept, and what runs at the next start. */
import { describe, expect, it } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import type { SseEvent } from '../support/sse.ts';
import { until } from '../support/until.ts';

const type = (wanted: string) => (event: SseEvent) => event.type === wanted;

async function start(more = '') {
  const provider = await startFakeProvider();
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, more);
  return { provider, home };
}

describe('signals', () => {
  it('[HT9] SIGTERM lets a running turn end, refuses new prompts, ends streams, and exits with 0', async () => {
    const { provider, home } = await start('server: {drain_s: 20}\n');
    const server = await startChildServer({ home });
    const { json } = await server.call('POST', '/api/sessions');
    const sessionId = json.session.session_id;
    const address = `/api/sessions/${sessionId}/prompts`;
    const reader = await server.stream(address, { method: 'POST', body: { text: 'script:chunks=40,delay=20,id=a' } });
    const queued = await server.call('POST', address, { text: 'later' });
    expect(queued.status).toBe(202);
    await reader.next(type('message.delta'));
    server.process.kill('SIGTERM');
    await until('it drains', async () => (await server.call('GET', '/health')).json.draining);
    expect(await server.call('POST', address, { text: 'too late' })).toMatchObject({
      status: 503,
      json: { code: 'draining' },
    });
    expect((await server.call('GET', '/ready')).status).toBe(503);
    const complete = await reader.next(type('message.complete'));
    expect(complete.json.payload.outcome).toBe('completed');
    expect(await server.exited).toBe(0);
    await reader.ended;
    // What was queued runs at the next start, without any client.
    const next = await startChildServer({ home });
    await until('the queued prompt has run', async () => {
      const list = await next.call('GET', address);
      return list.json.admissions[1].outcome === 'completed';
    });
    await provider.close();
  });

  it('[HT9] a turn that does not end in time is kept as interrupted, without a marker', async () => {
    const { provider, home } = await start('server: {drain_s: 0.2}\n');
    const server = await startChildServer({ home });
    const { json } = await server.call('POST', '/api/sessions');
    const sessionId = json.session.session_id;
    const body = { text: 'script:chunks=1000,delay=20,id=a' };
    const reader = await server.stream(`/api/sessions/${sessionId}/prompts`, { method: 'POST', body });
    await reader.next(type('message.delta'));
    server.process.kill('SIGTERM');
    const complete = await reader.next(type('message.complete'));
    expect(complete.json.payload).toMatchObject({ outcome: 'interrupted', status: 'interrupted' });
    expect(await server.exited).toBe(0);
    const next = await startChildServer({ home });
    const rows = (await next.call('GET', `/api/sessions/${sessionId}/messages`)).json.messages;
    expect(rows.map((row: { role: string }) => row.role)).toEqual(['user', 'assistant']);
    expect(rows[1]).toMatchObject({ status: 'interrupted', content: complete.json.payload.text });
    await provider.close();
  });
});
