/** What `npm run build` makes and the package carries: one file that runs with only what it leaves outside of it. */
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, realpath, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { startMain } from '../support/main-process.ts';
import { call } from '../support/test-server.ts';
import { until } from '../support/until.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const OUTSIDE = ['better-sqlite3', '@fastify/swagger-ui', '@ai-sdk/anthropic', '@ai-sdk/openai-compatible'];

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['scripts/build.mjs'], { cwd: ROOT });
});

/** An installation that has what the package carries and, of its libraries, only those that are not in the one file. */
async function install(libraries: readonly string[]): Promise<string> {
  const folder = await temporaryFolder();
  for (const name of ['dist', 'static', 'db/migrations', 'package.json']) {
    await cp(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  }
  for (const name of libraries) {
    const link = path.join(folder, 'node_modules', name);
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(await realpath(path.join(ROOT, 'node_modules', name)), link);
  }
  return folder;
}

async function serve(folder: string, home: string) {
  const main = startMain(['serve', '--home', home, '--port', '0'], {}, path.join(folder, 'dist/server/main.js'));
  let ended = false;
  void main.exited.then(() => {
    ended = true;
  });
  await until('it listens', () => ended || main.stdout().includes('READY'));
  expect(main.stdout(), main.stderr()).toMatch(/^TURNKEEP_READY port=\d+\n$/);
  const url = `http://127.0.0.1:${/\d+/.exec(main.stdout())![0]}`;
  return { ...main, call: (method: string, address: string, body?: unknown) => call(`${url}${address}`, method, body) };
}

describe('the built server', () => {
  it('[HO5] serves the page, the documents and a turn of a model with nothing but what it leaves outside', async () => {
    const provider = await startFakeProvider();
    onTestFinished(() => provider.close());
    const home = await temporaryFolder();
    await writeProviderHome(home, provider.baseUrl);
    const server = await serve(await install(OUTSIDE), home);
    for (const address of [
      '/',
      '/app.js',
      '/docs/',
      '/docs/static/swagger-ui.css',
      '/api/openapi.json',
      '/api/models',
    ]) {
      expect((await server.call('GET', address)).status, address).toBe(200);
    }
    const { session } = (await server.call('POST', '/api/sessions')).json;
    const prompt = { text: 'script:chunks=3,id=a' };
    const end = await server.call('POST', `/api/sessions/${session.session_id}/prompts?wait=1`, prompt);
    expect(end.json.admission).toMatchObject({ status: 'terminal', outcome: 'completed' });
    server.process.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    expect(server.stderr()).not.toMatch(/"level":(40|50|60)/);
  });

  it('[HO5] starts without the page to try the interface, which is optional', async () => {
    const server = await serve(await install(['better-sqlite3']), await temporaryFolder());
    expect((await server.call('GET', '/docs/')).status).toBe(404);
    expect((await server.call('GET', '/api/openapi.json')).status).toBe(200);
  });

  it('[HO5] leads a stack trace to the sources, and names the licence of each library in it', async () => {
    const map = JSON.parse(await readFile(path.join(ROOT, 'dist/server/main.js.map'), 'utf8'));
    expect(map.sources).toEqual(expect.arrayContaining(['../../server/main.ts', '../../db/client.ts']));
    // Each joined file stands behind a comment with its path.
    const joinedFiles = (await readFile(path.join(ROOT, 'dist/server/main.js'), 'utf8')).matchAll(
      /^ *\/\/ node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm,
    );
    const joined = new Set([...joinedFiles].map((match) => match[1]!));
    expect(joined).toContain('fastify');
    for (const name of OUTSIDE) expect(joined).not.toContain(name);
    const licences = await readFile(path.join(ROOT, 'dist/LICENCES.txt'), 'utf8');
    const unnamed = [...joined].filter((name) => !licences.includes(`\n${name} `));
    expect(unnamed).toEqual([]);
  });
});
