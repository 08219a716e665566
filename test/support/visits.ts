/** Readers that come and go: over a WebSocket and over a stream, leaving politely or not. */
import { readdir } from 'node:fs/promises';
import http from 'node:http';
import { connectGateway } from './gateway.ts';
import { openSse } from './sse.ts';

/** One reader of each kind comes to a session, is told where it stands, and is gone. @param url without a slash at its end */
export async function visitOnce(url: string, sessionId: string, round: number): Promise<void> {
  const [client, one, many] = await Promise.all([
    connectGateway(`${url}/`),
    openSse(`${url}/api/sessions/${sessionId}/events`),
    openSse(`${url}/api/events?session=${sessionId}`),
  ]);
  await client.call('session.resume', { session_id: sessionId });
  await one.next(({ type }) => type === 'session.snapshot');
  await many.next(({ type }) => type === 'session.snapshot');
  one.drop();
  many.drop();
  if (round % 2 === 0) await client.drop();
  else await client.close();
}

/** What the server says of itself, over a connection that is closed behind it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
export function healthOf(url: string): Promise<any> {
  return new Promise((resolve, reject) => {
    const request = http.get(`${url}/health`, { agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(JSON.parse(text)));
    });
    request.on('error', reject);
  });
}

/** The number of open file descriptors of a process. */
export const descriptorsOf = async (pid: number | 'self'): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;

/** What keeps the event loop of this process alive, counted by kind. */
export function resourcesNow(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
