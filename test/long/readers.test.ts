/** A thousand readers that come and go leave memory and descriptors flat; three hundred at once block nobody. */
import v8 from 'node:v8';
import vm from 'node:vm';
import { expect, it } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { openSse } from '../support/sse.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { descriptorsOf, healthOf, visitOnce } from '../support/visits.ts';

// Many readers of one address: what is measured here is how they are served, not that they are refused.
const CONFIG = 'live: {orphan_reap_grace_s: 0.05}\nlimits: {streams: 1000}';

const untilEmpty = (url: string) =>
  until('no live session is left', async () => (await healthOf(url)).live_sessions === 0);

/** Bytes of this process that are in use when everything is collected that can be. */
async function heapInUse(): Promise<number> {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc') as () => void;
  for (let pass = 0; pass < 3; pass += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

it('[GW6][HT4] a thousand readers of each kind leave memory and descriptors of a server flat', async () => {
  const server = await startTestServer({ config: CONFIG });
  const sessionId = await server.session();
  await server.ask(sessionId, 'what is 2 + 3?');
  const rounds = async (count: number): Promise<{ heap: number; files: number }> => {
    for (let round = 0; round < count; round += 1) await visitOnce(server.url, sessionId, round);
    await untilEmpty(server.url);
    server.logs.length = 0;
    return { heap: await heapInUse(), files: await descriptorsOf('self') };
  };
  const warm = await rounds(200);
  const after = await rounds(1000);
  console.log(`heap ${warm.heap} → ${after.heap}, descriptors ${warm.files} → ${after.files}`);
  // Two kilobytes for each round, of three readers, would be a leak already.
  expect(after.heap - warm.heap).toBeLessThan(2_000_000);
  expect(after.files).toBeLessThanOrEqual(warm.files + 4);
});

it('[SU1] three hundred readers that come again and again for thirty seconds keep nobody from the server', async () => {
  const home = await temporaryFolder();
  await writeProviderHome(home, 'http://127.0.0.1:9', `${CONFIG}\n`);
  const server = await startChildServer({ home });
  const { json } = await server.call('POST', '/api/sessions', {});
  const sessionId: string = json.session.session_id;
  let isOver = false;
  let visits = 0;
  const overStream = async (): Promise<void> => {
    while (!isOver) {
      const stream = await openSse(`${server.url}/api/sessions/${sessionId}/events`);
      await stream.next(({ type }) => type === 'session.snapshot');
      stream.drop();
      visits += 1;
    }
  };
  const overSocket = async (): Promise<void> => {
    while (!isOver) {
      const client = await connectGateway(`${server.url}/`);
      await client.call('session.resume', { session_id: sessionId });
      await client.drop();
      visits += 1;
    }
  };
  const readers = Array.from({ length: 300 }, (_, index) => (index % 2 ? overSocket() : overStream()));
  const took: number[] = [];
  const end = performance.now() + 30_000;
  while (performance.now() < end) {
    const asked = performance.now();
    expect((await healthOf(server.url)).status).toBe('ok');
    took.push(performance.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  isOver = true;
  await Promise.all(readers);
  await untilEmpty(server.url);
  took.sort((a, b) => a - b);
  const [median, longest] = [took[Math.floor(took.length / 2)]!, took.at(-1)!];
  console.log(`${visits} visits; /health: median ${median.toFixed(0)} ms, longest ${longest.toFixed(0)} ms`);
  expect(took.length).toBeGreaterThan(10);
  // Below a second on a machine that does nothing else; only what hangs takes as long as this.
  expect(longest).toBeLessThan(10_000);
});
