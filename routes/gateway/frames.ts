/**
 * JSON-RPC 2.0 as the gateway speaks it: what a client may send, and the texts of what it is answered. A refusal has the
 * number of the gateway's catalogue, and in `data.code` the stable word that REST has for it.
 */
import { isRecord } from '../../server/core/text.ts';
import { AppError, CATALOGUE, storageRefusal } from '../../server/errors.ts';

export type RequestId = string | number;
export type Params = Record<string, unknown>;

/** A frame of a client, sorted. */
export type Incoming =
  | { kind: 'request'; id: RequestId | null; method: string; params: Params }
  /** The answer to a question of the server. */
  | { kind: 'reply'; id: string; result: unknown }
  | { kind: 'invalid'; id: RequestId | null; error: RpcError };

/** A refusal that only this protocol knows. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: Record<string, unknown> | undefined;

  constructor(code: number, message: string, data?: Record<string, unknown>) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

const isId = (value: unknown): value is RequestId => typeof value === 'string' || Number.isSafeInteger(value);

/** Sorts a frame. @param text one message, trimmed and not empty */
export function readFrame(text: string): Incoming {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return { kind: 'invalid', id: null, error: new RpcError(-32700, 'The frame is not valid JSON.') };
  }
  if (!isRecord(frame)) {
    return { kind: 'invalid', id: null, error: new RpcError(-32600, 'A frame is one JSON-RPC object.') };
  }
  const { id, method, params = {} } = frame;
  const known = isId(id) ? id : null;
  if (method === undefined && typeof id === 'string' && ('result' in frame || 'error' in frame)) {
    return { kind: 'reply', id, result: frame.result };
  }
  const refuse = (message: string, code = -32600): Incoming => ({
    kind: 'invalid',
    id: known,
    error: new RpcError(code, message),
  });
  if (typeof method !== 'string') return refuse('A request has a method.');
  if (id !== undefined && id !== null && known === null) return refuse('An id is a string or an integer.');
  if (!isRecord(params)) return refuse('params is an object.', -32602);
  return { kind: 'request', id: known, method, params };
}

/** @param result a value, or JSON text that was made already */
export const replyText = (id: RequestId | null, result: unknown): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result instanceof JsonText ? result.text : jsonOf(result)}}`;

/** How `JSON.stringify` writes half of a surrogate pair. */
const HALF_PAIR = /\\ud[89a-f]/;

/** JSON text in which such halves, which a client may have sent, are U+FFFD: not everybody can read them. */
function jsonOf(value: unknown): string {
  const json = JSON.stringify(value);
  if (!HALF_PAIR.test(json)) return json;
  return JSON.stringify(value, (_key, part) => (typeof part === 'string' ? part.toWellFormed() : part));
}

/** JSON text that goes into a frame as it is. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export const errorText = (id: RequestId | null, error: RpcError): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${jsonOf({
    code: error.code,
    message: error.message,
    ...(error.data && { data: error.data }),
  })}}`;

/** The refusal that an error is on this wire; null for a bug, of which a client is told nothing but that there was one. */
export function refusalOf(error: unknown): RpcError | null {
  if (error instanceof RpcError) return error;
  const known = error instanceof AppError ? error : storageRefusal(error);
  if (!known) return null;
  const { rpc, retryable } = CATALOGUE[known.code];
  const reason = rpc === LEASE_REFUSED ? { reason: known.code.toUpperCase() } : {};
  return new RpcError(rpc, known.message, { code: known.code, retryable, ...reason, ...known.details });
}

/** Who may run a session: the machine's reason is in `data.reason`. */
const LEASE_REFUSED = 4090;

export const INTERNAL = new RpcError(CATALOGUE.internal.rpc, CATALOGUE.internal.message, {
  code: 'internal',
  retryable: false,
});
