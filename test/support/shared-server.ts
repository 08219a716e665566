/** One server for all tests of a file, where starting one for each would take most of the time. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { startTestServer, type TestServer, type TestServerOptions } from './test-server.ts';

/**
 * Call at the top of a test file.
 * @param prepare fills the home before the server starts
 * @returns what gives the server, in a test
 */
export function sharedServer(
  options: () => Omit<TestServerOptions, 'home' | 'release'>,
  prepare: (home: string) => Promise<unknown> = async () => {},
): () => TestServer {
  const ends: (() => Promise<unknown>)[] = [];
  let server: TestServer;
  beforeAll(async () => {
    const home = await mkdtemp(path.join(os.tmpdir(), 'turnkeep-test-'));
    ends.push(() => rm(home, { recursive: true, force: true }));
    await prepare(home);
    server = await startTestServer({ ...options(), home, release: (close) => ends.push(close) });
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return () => server;
}

/** Deletes every session of a server, so that a test begins with an empty list. */
export async function deleteSessions(server: TestServer): Promise<void> {
  for (const { session_id: id } of (await server.call('GET', '/api/sessions?limit=1000&archived=1')).json.sessions) {
    await server.call('DELETE', `/api/sessions/${id}?stop=1`);
  }
}
