/** A gateway client over a real socket: remembers every frame that it got, answers nothing by itself. */
import WebSocket from 'ws';
import { until } from './until.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server says.
type Json = any;

export interface GatewayEvent {
  type: string;
  session_id: string;
  seq?: number;
  run_id?: string;
  payload: Json;
  first_seq?: number;
}

export class RpcFailure extends Error {
  readonly code: number;
  readonly data: Json;
  constructor(method: string, error: { code: number; message: string; data?: unknown }) {
    super(`${method}: ${error.code} ${error.message}`);
    this.code = error.code;
    this.data = error.data;
  }
}

/** The upgrade was answered with a status instead. */
export class UpgradeRefused extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`refused: ${status}`);
    this.status = status;
  }
}

export interface GatewayClient {
  readonly name: string;
  /** All frames so far. */
  readonly frames: Json[];
  /** The code with which the server ended it; null while it is open. */
  closed(): number | null;
  /** Sends a request; the reply frame, whatever it says. */
  request(method: string, params?: object): Promise<Json>;
  /** Sends a request; its result. @throws RpcFailure */
  call(method: string, params?: object): Promise<Json>;
  /** Sends a text as it is. */
  send(text: string): void;
  /** Events so far, of a session and of a type if they are given. */
  events(sessionId?: string, type?: string): GatewayEvent[];
  /** Waits for an event, from a number of frames on. */
  event(sessionId: string, type: string, from?: number): Promise<GatewayEvent>;
  /** Stops reading from the socket, and goes on. */
  pause(): void;
  resume(): void;
  /** Ends the TCP connection without a word. */
  drop(): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectOptions {
  name?: string;
  token?: string;
  headers?: Record<string, string>;
  /** Whether it says that it can answer questions. */
  capable?: boolean;
  /** Is told each event when it comes, with the number of frames before it. */
  onEvent?: (event: GatewayEvent, at: number) => void;
}

/** @param url of the server, `http://…/` */
export async function connectGateway(
  url: string,
  { name = 'client', token, headers = {}, capable = false, onEvent = () => {} }: ConnectOptions = {},
): Promise<GatewayClient> {
  const address = new URL('api/ws', url);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  if (token !== undefined) address.searchParams.set('token', token);
  const socket = new WebSocket(address, { headers, perMessageDeflate: false, rejectUnauthorized: false });
  const frames: Json[] = [];
  const replies = new Map<number, (frame: Json) => void>();
  let code: number | null = null;
  let next = 0;
  socket.on('message', (data) => {
    const frame = JSON.parse(data.toString());
    frames.push(frame);
    if (frame.method === 'event') onEvent(frame.params, frames.length - 1);
    if (frame.method === undefined) replies.get(frame.id)?.(frame);
  });
  const gone = new Promise<void>((resolve) => {
    socket.on('close', (closeCode) => {
      code = closeCode;
      for (const [id, tell] of replies) tell({ id, error: { code: -1, message: 'the connection is gone' } });
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => reject(new UpgradeRefused(response.statusCode ?? 0)));
  });
  socket.on('error', () => {});

  const request = (method: string, params: object = {}): Promise<Json> => {
    next += 1;
    const id = next;
    return new Promise((resolve) => {
      replies.set(id, (frame) => {
        replies.delete(id);
        resolve(frame);
      });
      if (code !== null) replies.get(id)?.({ id, error: { code: -1, message: 'the connection is gone' } });
      else socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  };
  const eventsOf = (sessionId?: string, type?: string, from = 0): GatewayEvent[] =>
    frames
      .slice(from)
      .filter((frame) => frame.method === 'event')
      .map((frame) => frame.params)
      .filter((event) => sessionId === undefined || event.session_id === sessionId)
      .filter((event) => type === undefined || event.type === type);

  const client: GatewayClient = {
    name,
    frames,
    closed: () => code,
    request,
    async call(method, params) {
      const frame = await request(method, params);
      if (frame.error) throw new RpcFailure(method, frame.error);
      return frame.result;
    },
    send: (text) => socket.send(text),
    events: (sessionId, type) => eventsOf(sessionId, type),
    async event(sessionId, type, from = 0) {
      await until(`${name} has ${type} of ${sessionId}`, () => eventsOf(sessionId, type, from).length > 0);
      return eventsOf(sessionId, type, from)[0]!;
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    async drop() {
      socket.terminate();
      await gone;
    },
    async close() {
      if (code === null) socket.close();
      await gone;
    },
  };
  await until('the gateway is ready', () => frames.length > 0);
  if (capable) await client.call('client.capabilities', { server_requests: true });
  return client;
}
