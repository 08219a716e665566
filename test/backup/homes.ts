/** Homes for the tests of backup and restore, and the two commands as their user calls them. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { type ChildServer, writeProviderHome } from '../support/child-server.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { startMain } from '../support/main-process.ts';
import { createEchoRunner } from '../support/scripted-runner.ts';
import { startTestServer } from '../support/test-server.ts';

/** What a command has said when it ended with 0. */
export async function succeeds(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const main = startMain(args);
  expect(await main.exited, main.stderr()).toBe(0);
  return { stdout: main.stdout(), stderr: main.stderr() };
}

/** What a command has said on stderr when it ended with this code, and nothing on stdout. */
export async function fails(code: number, ...args: string[]): Promise<string> {
  const main = startMain(args);
  expect(await main.exited, main.stderr()).toBe(code);
  expect(main.stdout()).toBe('');
  expect(main.stderr()).not.toMatch(/^\s+at |node:internal/m);
  return main.stderr();
}

/** Backs a home up to a new file; its path. */
export async function backedUp(home: string, ...more: string[]): Promise<string> {
  const folder = await temporaryFolder();
  const { stdout } = await succeeds('backup', '--home', home, '--to', folder, '--json', ...more);
  return JSON.parse(stdout).file;
}

/** Makes a home of a backup; its path. */
export async function restored(file: string): Promise<string> {
  const home = path.join(await temporaryFolder(), 'restored');
  await succeeds('restore', file, '--home', home);
  return home;
}

/** A provider, and a home whose sessions it answers. */
export async function providedHome(): Promise<{ provider: FakeProvider; home: string }> {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const home = path.join(await temporaryFolder(), 'home');
  await writeProviderHome(home, provider.baseUrl);
  return { provider, home };
}

export async function newSession(server: ChildServer): Promise<string> {
  return (await server.call('POST', '/api/sessions')).json.session.session_id;
}

/** Sends a prompt and waits for its end. */
export async function ask(server: ChildServer, sessionId: string, text: string): Promise<void> {
  const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, { text });
  expect(answer.status, answer.text).toBe(200);
}

/** Takes the last turns back. */
export async function rewind(server: ChildServer, sessionId: string, turns = 1): Promise<void> {
  const { revision } = (await server.call('GET', `/api/sessions/${sessionId}`)).json.session;
  const answer = await server.call('POST', `/api/sessions/${sessionId}/rewind`, { turns, revision });
  expect(answer.status, answer.text).toBe(200);
}

/** A home that a server has used and left: some conversations of two turns each. */
export async function quietHome(conversations = 2): Promise<string> {
  const home = path.join(await temporaryFolder(), 'home');
  const server = await startTestServer({ home, config: '{}\n', overrides: { runner: createEchoRunner().runner } });
  for (let n = 0; n < conversations; n += 1) {
    const sessionId = await server.session();
    for (const text of ['first', `second ${n}`]) await server.ask(sessionId, text);
  }
  await server.close();
  return home;
}

/** Every name below a folder. */
export const namesIn = async (folder: string): Promise<string[]> => (await readdir(folder, { recursive: true })).sort();
