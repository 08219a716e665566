/** The process as its user starts and stops it: what it says where, how it ends, and what it says when it cannot start. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeProviderHome } from '../support/child-server.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { temporaryFolder } from '../support/home.ts';
import { type MainServer, serveMain, startMain } from '../support/main-process.ts';
import { openSse } from '../support/sse.ts';
import { until } from '../support/until.ts';

const manifest = JSON.parse(await readFile(path.join(import.meta.dirname, '../../package.json'), 'utf8'));

/** A connection that keeps its half open whatever the server does. Resolves when the system has taken the bytes. */
function open(
  server: MainServer,
  bytes: string,
): Promise<{ socket: Socket; received(): string; closed: Promise<void> }> {
  const { hostname, port } = new URL(server.url);
  let received = '';
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
    });
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    const closed = new Promise<void>((done) => socket.on('close', () => done()));
    const ready = (): void => resolve({ socket, received: () => received, closed });
    socket.on('connect', () => (bytes ? socket.write(bytes, ready) : ready()));
  });
}

const head = (server: MainServer, first: string, more = ''): string =>
  `${first} HTTP/1.1\r\nhost: ${new URL(server.url).host}\r\n${more}`;

/** Connections that are not idle for an HTTP server, and that nobody but the server can end. */
async function openStubborn(server: MainServer): Promise<void> {
  await open(server, '');
  await open(server, head(server, 'GET /health'));
  const body = 'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"tit';
  await open(server, head(server, 'POST /api/sessions', body));
  const garbage = await open(server, 'what is this\r\n\r\n');
  await until('the garbage is refused', () => garbage.received().includes('"bad_request"'));
  const list = await open(server, head(server, 'GET /api/events', '\r\n'));
  await until('the list is streamed', () => list.received().includes('connected'));
  list.socket.pause();
}

/** Starts a turn that would stream for long, and waits for its first words. */
async function startTurn(server: MainServer): Promise<{ address: string; shown(): string }> {
  const { json } = await server.call('POST', '/api/sessions');
  const address = `/api/sessions/${json.session.session_id}`;
  const body = { text: 'script:chunks=2000,delay=10,id=a' };
  const reader = await openSse(`${server.url}${address}/prompts`, { method: 'POST', body });
  await reader.next((event) => event.type === 'message.delta');
  const shown = (): string =>
    reader.events.map((event) => (event.type === 'message.delta' ? event.json.payload.text : '')).join('');
  return { address, shown };
}

async function providerHome(more: string): Promise<string> {
  const provider = await startFakeProvider();
  onTestFinished(() => provider.close());
  const home = await temporaryFolder();
  await writeProviderHome(home, provider.baseUrl, more);
  return home;
}

describe('stopping', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('[HT9] %s exits with 0 whatever connections are open', async (signal) => {
    const server = await serveMain(await temporaryFolder());
    await openStubborn(server);
    expect((await server.call('GET', '/health')).status).toBe(200);
    server.process.kill(signal);
    expect(await server.exited).toBe(0);
    expect(server.stdout()).toMatch(/^TURNKEEP_READY port=\d+\n$/);
    expect(server.stderr()).not.toMatch(/"level":(50|60)/);
  });

  it('[HT9] a running turn is kept as interrupted, with connections open', async () => {
    const home = await providerHome('server: {drain_s: 0.2}\n');
    const server = await serveMain(home);
    const turn = await startTurn(server);
    await openStubborn(server);
    server.process.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    const next = await serveMain(home);
    const { messages } = (await next.call('GET', `${turn.address}/messages`)).json;
    expect(messages).toHaveLength(2);
    expect(messages[1]).toMatchObject({ role: 'assistant', status: 'interrupted', content: turn.shown() });
  });

  it('[HT9] a second signal ends the process at once, and the turn is recovered', async () => {
    const home = await providerHome('server: {drain_s: 600}\n');
    const server = await serveMain(home);
    const turn = await startTurn(server);
    server.process.kill('SIGTERM');
    await until('it drains', async () => (await server.call('GET', '/health')).json.draining);
    // One key press in a terminal is two signals at once; a second wish comes later.
    let code: unknown = null;
    void server.exited.then((how) => {
      code = how;
    });
    await until('a later signal has ended it', () => {
      if (code === null) server.process.kill('SIGTERM');
      return code !== null;
    });
    expect(code).toBe(1);
    const next = await serveMain(home);
    const { messages } = (await next.call('GET', `${turn.address}/messages`)).json;
    expect(messages[1].content.startsWith(turn.shown())).toBe(true);
    expect(messages.at(-1)).toMatchObject({ status: 'error', error: { cause: 'process_restart' } });
  });
});

describe('speaking', () => {
  it('[CF1] the line that says where it listens is all that is ever on stdout', async () => {
    const home = await temporaryFolder();
    const server = await serveMain(home, '--base-path', '/x', '--host', '127.0.0.1');
    expect((await server.call('GET', '/x/health')).json.version).toBe(manifest.version);
    await server.call('POST', '/x/api/sessions');
    server.process.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    expect(server.stdout()).toBe(`TURNKEEP_READY port=${new URL(server.url).port}\n`);
    const lines = server.stderr().trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(expect.arrayContaining(['listening', 'stopping']));
  });

  it('[CF1] --help and --version say what they should on stdout, and nothing else happens', async () => {
    for (const flag of ['--help', '-h']) {
      const help = startMain([flag]);
      expect(await help.exited).toBe(0);
      expect(help.stdout()).toMatch(/^Usage: turnkeep serve \[options\]\n/);
      for (const option of ['--home', '--host', '--port', '--base-path']) expect(help.stdout()).toContain(option);
      expect(help.stderr()).toBe('');
    }
    const version = startMain(['--version']);
    expect(await version.exited).toBe(0);
    expect([version.stdout(), version.stderr()]).toEqual([`${manifest.version}\n`, '']);
  });
});

/** What a start that must fail says: nothing on stdout, and on stderr its sentence without a trace. */
async function refusal(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const main = startMain(args, env);
  expect(await main.exited, main.stderr()).toBe(1);
  expect(main.stdout()).toBe('');
  const text = main.stderr();
  expect(text).toMatch(/^turnkeep: [^\n]*\n/);
  expect(text).not.toMatch(/^\s+at |node:internal|Error:/m);
  return text;
}

/** The same, for a refusal that is one sentence and nothing more. */
async function sentence(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const text = await refusal(args, env);
  expect(text).toMatch(/^turnkeep: [^\n]+\.( [^\n]+\.)?\n$|\)\.\n$/);
  return text;
}

describe('a start that cannot be', () => {
  it('[CF1] an unknown flag or command is named, with the usage', async () => {
    for (const [args, named] of [
      [['--prot', '1'], '--prot'],
      [['--port'], '--port'],
      [['sevre'], '"sevre"'],
      [['serve', 'me'], '"serve me"'],
    ] as const) {
      const text = await refusal(args);
      expect(text).toContain(named);
      expect(text).toContain('Usage: turnkeep serve');
    }
  });

  it('[CF1] a value that is wrong is named', async () => {
    const home = await temporaryFolder();
    expect(await sentence(['--home', home, '--port', 'http'])).toContain('"http"');
    expect(await sentence(['--home', ''])).toContain('--home is empty');
    expect(await sentence(['--home', home, '--host', '0.0.0.0'])).toContain('TURNKEEP_TOKEN');
    await mkdir(home, { recursive: true });
    await writeFile(path.join(home, 'config.yaml'), 'server: {prot: 1}\n');
    expect(await sentence(['--home', home])).toContain('server has no key "prot"');
  });

  it('[CF1] an address that cannot be listened on is named', async () => {
    const home = await temporaryFolder();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    expect(await sentence(['--home', home, '--port', String(port)])).toContain(`the port ${port} is in use already`);
    const token = { TURNKEEP_TOKEN: 'a-token-of-some-length' };
    const elsewhere = await sentence(['--home', home, '--port', '0', '--host', '192.0.2.1'], token);
    expect(elsewhere).toContain('192.0.2.1 is no address of this machine');
    const nowhere = await sentence(['--home', home, '--port', '0', '--host', 'no-such-name.invalid'], token);
    expect(nowhere).toContain('no-such-name.invalid');
  });

  it('[CF1] a home that is no folder, or that cannot be made, is named', async () => {
    const folder = await temporaryFolder();
    await mkdir(folder, { recursive: true });
    const file = path.join(folder, 'file');
    await writeFile(file, 'mine');
    expect(await sentence(['--home', file])).toContain(`the home ${file} is a file`);
    expect(await sentence(['--home', path.join(file, 'below')])).toContain('lies below a file');
    // Even root makes no folder there.
    expect(await sentence(['--home', '/sys/turnkeep'])).toMatch(/the home \/sys\/turnkeep cannot be (made|written)/);
    expect(await readFile(file, 'utf8')).toBe('mine');
  });

  it('[DB7] a database that stays locked is told as that', async () => {
    const home = await temporaryFolder();
    const first = await serveMain(home);
    first.process.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    const other = new Database(path.join(home, 'state.db'));
    onTestFinished(() => void other.close());
    other.exec('BEGIN EXCLUSIVE');
    expect(await sentence(['--home', home, '--port', '0'])).toContain(`the database in ${home} is locked`);
    other.exec('ROLLBACK');
    await serveMain(home);
  });

  it('[DB6] the database of another program is refused as it is', async () => {
    const home = await temporaryFolder();
    await mkdir(home, { recursive: true });
    const file = path.join(home, 'state.db');
    const other = new Database(file);
    other.exec("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    other.close();
    const before = await readFile(file);
    expect(await sentence(['--home', home, '--port', '0'])).toContain(`${file} belongs to another program`);
    expect(await readFile(file)).toEqual(before);
    await writeFile(
      file,
      'no database at all, but long enough to be taken for one by whoever looks at its size only\n',
    );
    expect(await sentence(['--home', home, '--port', '0'])).toContain(`the database in ${home} cannot be read`);
  });
});
