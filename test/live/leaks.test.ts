/** Whoever comes and goes leaves nothing behind: no live session, no timer, no socket, no descriptor. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startChildServer, writeProviderHome } from '../support/child-server.ts';
import { connectGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/home.ts';
import { createScriptedRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { descriptorsOf, healthOf, resourcesNow, visitOnce } from '../support/visits.ts';

const CONFIG = 'live: {orphan_reap_grace_s: 0.05}';
const ROUNDS = 50;

const untilEmpty = (url: string) =>
  until('no live session and no run is left', async () => {
    const { live_sessions, active_runs } = await healthOf(url);
    return live_sessions === 0 && active_runs === 0;
  });

describe('leaks', () => {
  it('[GW6][SU1] readers that come and go, in mid-turn too, leave no live session, timer, socket or child', async () => {
    const script = createScriptedRunner();
    const server = await startTestServer({ config: CONFIG, overrides: { runner: script.runner } });
    const sessionId = await server.session();
    const sockets = new Set<unknown>();
    server.app.server.server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    const gone = (method: string, address: string, body: object) =>
      server.call(method, address, body, { connection: 'close' });
    const visitInTurn = async (index: number) => {
      const accepted = await gone('POST', `/api/sessions/${sessionId}/prompts`, { text: `turn ${index}` });
      const turn = await script.turn(index);
      for (let round = 0; round < 4; round += 1) {
        turn.text(`${round} `);
        await visitOnce(server.url, sessionId, round);
      }
      const client = await connectGateway(`${server.url}/`);
      await client.call('session.create', { cols: 80 });
      await client.drop();
      turn.complete();
      expect(accepted.status).toBe(202);
      await untilEmpty(server.url);
      await until('no connection is left', () => sockets.size <= 1);
    };
    // What the process needs in any case is there after the first time.
    await visitInTurn(0);
    const kinds = ({ Timeout = 0, PipeWrap = 0, ProcessWrap = 0, Worker = 0, MessagePort = 0, TCPServerWrap = 0 }) => ({
      ...{ Timeout, PipeWrap, ProcessWrap, Worker, MessagePort, TCPServerWrap },
    });
    const before = kinds(resourcesNow());
    for (let index = 1; index < 4; index += 1) await visitInTurn(index);
    await until('as little keeps the process alive as before', () => {
      const now = kinds(resourcesNow());
      return Object.keys(now).every((kind) => now[kind as keyof typeof now] <= before[kind as keyof typeof now]);
    });
  });

  it('[GW6] whoever comes in the last moment of the grace is let in', async () => {
    const server = await startTestServer({ config: 'live: {orphan_reap_grace_s: 0.001}' });
    const sessionId = await server.session();
    for (let round = 0; round < 20; round += 1) {
      const client = await connectGateway(`${server.url}/`);
      const { session_id } = await client.call('session.resume', { session_id: sessionId });
      expect((await client.call('session.status', { session_id })).error).toBeUndefined();
      await client.drop();
    }
    await untilEmpty(server.url);
  });

  it.skipIf(!existsSync('/proc/self/fd'))(
    '[GW6][HT4] fifty rounds leave the descriptors of a server as they were',
    async () => {
      const home = await temporaryFolder();
      await writeProviderHome(home, 'http://127.0.0.1:9', `${CONFIG}\n`);
      const server = await startChildServer({ home });
      const { json } = await server.call('POST', '/api/sessions', {}, { connection: 'close' });
      const sessionId = json.session.session_id;
      for (let round = 0; round < 3; round += 1) await visitOnce(server.url, sessionId, round);
      await untilEmpty(server.url);
      const before = await descriptorsOf(server.process.pid!);
      for (let round = 0; round < ROUNDS; round += 1) await visitOnce(server.url, sessionId, round);
      await untilEmpty(server.url);
      await until(
        'the descriptors are as few as before',
        async () => (await descriptorsOf(server.process.pid!)) <= before,
      );
      expect(server.stderr()).not.toMatch(/"level":[56]0/);
    },
  );
});
