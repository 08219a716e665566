/** A whole server in this process: real files, real SQLite, real sockets. Closed when the test has finished. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { type App, type AppOverrides, createApp } from '../../server/app.ts';
import { loadConfig } from '../../server/config.ts';
import { temporaryFolder } from './home.ts';
import { openSse, type SseOptions, type SseReader } from './sse.ts';

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
  json: any;
  text: string;
}

export interface TestServer {
  app: App;
  home: string;
  url: string;
  /** Log lines that were written, as objects. */
  logs: { level: number; msg: string; [field: string]: unknown }[];
  call(method: string, address: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Makes a session and returns its id. */
  session(fields?: object): Promise<string>;
  /** Submits a prompt; the 202's body. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  prompt(sessionId: string, text: string, fields?: object): Promise<any>;
  /** Submits a prompt and waits for the end of its turn. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  ask(sessionId: string, text: string): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  messages(sessionId: string): Promise<any[]>;
  stream(address: string, options?: SseOptions): Promise<SseReader>;
  close(): Promise<void>;
}

export interface TestServerOptions {
  home?: string;
  /** Text of config.yaml. */
  config?: string;
  env?: Record<string, string>;
  flags?: { host?: string; basePath?: string };
  overrides?: AppOverrides;
  /** Is given what closes it; by default that happens when the test has finished. */
  release?(close: () => Promise<void>): void;
}

/** Sends one request and reads its answer. */
export async function call(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const raw = typeof body === 'string' || body === undefined;
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  return { status: response.status, headers: response.headers, text, json: isJson && text ? JSON.parse(text) : null };
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const home = options.home ?? (await temporaryFolder());
  if (options.config !== undefined) {
    await mkdir(home, { recursive: true });
    await writeFile(path.join(home, 'config.yaml'), options.config);
  }
  const config = loadConfig({ home, port: '0', ...options.flags }, { HOME: home, ...options.env });
  // The disk of a test is small, or somebody else's; a test of this limit says so.
  if (!options.config?.includes('min_free_mb')) config.limits.min_free_mb = 0;
  const logs: TestServer['logs'] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logs.push(JSON.parse(line)) });
  const app = await createApp(config, log, { discovery: [], knownAgents: [], wordDelayMs: 0, ...options.overrides });
  const port = await app.listen();
  const url = `http://127.0.0.1:${port}${config.server.base_path}`;
  const streams: SseReader[] = [];
  const server: TestServer = {
    app,
    home,
    url,
    logs,
    call: (method, address, body, headers) => call(`${url}${address}`, method, body, headers),
    async session(fields = {}) {
      const answer = await server.call('POST', '/api/sessions', fields);
      if (answer.status !== 201) throw new Error(`no session: ${answer.text}`);
      return answer.json.session.session_id;
    },
    async prompt(sessionId, text, fields = {}) {
      const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts`, { text, ...fields });
      if (answer.status !== 202) throw new Error(`not accepted: ${answer.text}`);
      return answer.json;
    },
    async ask(sessionId, text) {
      const answer = await server.call('POST', `/api/sessions/${sessionId}/prompts?wait=1`, { text });
      if (answer.status !== 200) throw new Error(`not answered: ${answer.text}`);
      return answer.json;
    },
    async messages(sessionId) {
      return (await server.call('GET', `/api/sessions/${sessionId}/messages?limit=100000`)).json.messages;
    },
    async stream(address, sse) {
      const reader = await openSse(`${url}${address}`, sse);
      streams.push(reader);
      return reader;
    },
    async close() {
      for (const stream of streams) stream.drop();
      app.hurry();
      await app.close();
    },
  };
  if (options.release) options.release(() => server.close());
  else onTestFinished(() => server.close());
  return server;
}
