/**
 * One connection of the gateway: reads frames, answers requests in the order in which they came, and ends with its
 * socket. Frames that were read before the end are finished first, then it leaves its sessions.
 */
import type { WebSocket } from 'ws';
import type { GatewaySessions } from '../../server/live/gateway-sessions.ts';
import type { OpenRequest } from '../../server/live/live-session.ts';
import type { Subscriber } from '../../server/live/subscriber.ts';
import { frameOf } from '../wire/ws.ts';
import { errorText, INTERNAL, type Incoming, RpcError, readFrame, refusalOf, replyText } from './frames.ts';
import type { Caller, Method } from './method.ts';

export interface ConnectionParts {
  socket: WebSocket;
  /** Of the credential that it was opened with. */
  key: string;
  subscriber: Subscriber;
  methods: ReadonlyMap<string, Method>;
  sessions: Pick<GatewaySessions, 'connected' | 'disconnected'>;
  /** A client answers a question of the server. One that nobody waits for any more, or that fits none, is dropped. */
  answer(requestId: string, result: unknown): unknown;
  log: { error(fields: object, message: string): void };
}

/** Frames that are read ahead; then nothing is read until they are done. */
const READ_AHEAD = 256;
/** The same in characters: a frame may be many megabytes. */
const READ_AHEAD_CHARS = 4 * 1024 * 1024;

/** Begins to read. Must be called in the same tick as the upgrade, or the first frames are lost. */
export function serveConnection(parts: ConnectionParts): Caller {
  const { socket, subscriber, methods, log } = parts;
  const waiting: { frame: Incoming; size: number }[] = [];
  let waitingChars = 0;
  let isWorking = false;
  let isClosed = false;
  let isRevoked = false;
  let answers = false;

  const caller: Caller = {
    key: parts.key,
    subscriber,
    setAnswers(value) {
      answers = value;
    },
    ask(runtimeId, request) {
      if (answers) subscriber.offer([frameOf(questionText(runtimeId, request))]);
    },
  };

  async function handle(frame: Incoming): Promise<void> {
    if (frame.kind === 'reply') {
      try {
        parts.answer(frame.id, frame.result);
      } catch (error) {
        log.error({ err: error }, 'an answer of a gateway client could not be taken');
      }
      return;
    }
    const { id } = frame;
    const reply = frame.kind === 'invalid' ? errorText(id, frame.error) : await replyTo(frame);
    // A request without an id wants no reply.
    if (reply !== null) await subscriber.paced([frameOf(reply)]);
  }

  async function replyTo({ id, method: name, params }: Incoming & { kind: 'request' }): Promise<string | null> {
    try {
      const method = methods.get(name);
      if (!method) throw new RpcError(-32601, `There is no method "${name.slice(0, 100)}".`);
      const result = await method.handle(params, caller);
      return id === null ? null : replyText(id, result);
    } catch (error) {
      const refusal = refusalOf(error);
      if (!refusal) log.error({ err: error, method: name }, 'a gateway request failed');
      return id === null ? null : errorText(id, refusal ?? INTERNAL);
    }
  }

  const isFull = (): boolean => waiting.length >= READ_AHEAD || waitingChars >= READ_AHEAD_CHARS;

  async function work(): Promise<void> {
    isWorking = true;
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await handle(next.frame);
        waitingChars -= next.size;
        if (!isFull() && socket.isPaused) socket.resume();
      }
    } finally {
      isWorking = false;
    }
    if (isClosed) leave();
  }

  const leave = (): void => {
    subscriber.gone();
    parts.sessions.disconnected(caller);
  };

  socket.on('message', (data) => {
    const text = data.toString().trim();
    if (text === '' || isRevoked) return;
    const frame = readFrame(text);
    // A sign of life must not wait for a request that takes long.
    if (frame.kind === 'request' && frame.method === 'gateway.ping') {
      if (frame.id !== null) subscriber.offer([frameOf(replyText(frame.id, { ok: true }))]);
      return;
    }
    waiting.push({ frame, size: text.length });
    waitingChars += text.length;
    if (isFull()) socket.pause();
    if (!isWorking) void work();
  });
  socket.on('close', () => {
    isClosed = true;
    if (!isWorking) leave();
  });
  socket.on('error', () => socket.terminate());
  subscriber.onEnd((reason) => {
    // What was read ahead was asked with a credential that is none any more.
    isRevoked = reason === 'revoked';
    if (isRevoked) waiting.length = 0;
    parts.sessions.disconnected(caller);
  });
  parts.sessions.connected(caller);
  return caller;
}

/** A question of an agent as a request of the server. */
function questionText(runtimeId: string, { id, kind, params }: OpenRequest): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: kind,
    params: { session_id: runtimeId, request_id: id, ...params },
  });
}
