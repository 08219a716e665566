/**
 * The error catalogue: every refusal that a caller can get, with its stable code, HTTP status and whether the same call
 * may succeed later. An `AppError` is something a caller did wrong or must hear; everything else that is thrown is a bug.
 */
import { RegistryTrouble, storageTroubleKind } from '../db/storage-trouble.ts';

interface CatalogueEntry {
  status: number;
  /** The code of the same refusal on the gateway (JSON-RPC). */
  rpc: number;
  /** Default sentence for a person: what was wrong and what to do. */
  message: string;
  retryable: boolean;
  /** Seconds, for `Retry-After`. */
  retryAfter?: number;
}

export const CATALOGUE = {
  bad_request: { status: 400, rpc: -32602, message: 'The request is malformed.', retryable: false },
  bad_json: { status: 400, rpc: -32700, message: 'The body is not valid JSON.', retryable: false },
  unauthorized: {
    status: 401,
    rpc: 4401,
    message: 'This server needs a credential: send "Authorization: Bearer <token>", or log in on the page.',
    retryable: false,
  },
  bad_credentials: { status: 401, rpc: 4401, message: 'That is not the right credential.', retryable: false },
  insufficient_scope: {
    status: 403,
    rpc: 4403,
    message: 'This credential may not do that. Use one with a wider scope.',
    retryable: false,
  },
  login_not_found: { status: 404, rpc: 4040, message: 'There is no login with this id.', retryable: false },
  token_not_found: { status: 404, rpc: 4040, message: 'There is no token with this id.', retryable: false },
  forbidden_host: {
    status: 403,
    rpc: 4403,
    message: 'The Host of this request is not one of this server.',
    retryable: false,
  },
  forbidden_origin: {
    status: 403,
    rpc: 4403,
    message: 'A page of another origin may not do this.',
    retryable: false,
  },
  not_found: { status: 404, rpc: -32601, message: 'There is nothing at this address.', retryable: false },
  runtime_not_live: {
    status: 404,
    rpc: 4001,
    message: 'There is no live session with this id. Resume it under its stored id.',
    retryable: false,
  },
  session_not_found: { status: 404, rpc: 4007, message: 'There is no session with this id.', retryable: false },
  project_not_found: { status: 404, rpc: 4040, message: 'There is no project with this id.', retryable: false },
  prompt_not_found: {
    status: 404,
    rpc: 4040,
    message: 'There is no prompt with this id in this session.',
    retryable: false,
  },
  attachment_not_found: {
    status: 404,
    rpc: 4040,
    message: 'There is no attachment with this id in this session.',
    retryable: false,
  },
  method_not_allowed: {
    status: 405,
    rpc: -32601,
    message: 'This address does not take this method.',
    retryable: false,
  },
  too_slow: { status: 408, rpc: 4009, message: 'The request did not arrive in time.', retryable: true },
  session_live: {
    status: 409,
    rpc: 4023,
    message: 'The session is in use. Stop it first, or delete it with ?stop=1.',
    retryable: true,
  },
  session_busy: { status: 409, rpc: 4009, message: 'A turn of this session is running or waiting.', retryable: true },
  admission_conflict: {
    status: 409,
    rpc: 4092,
    message: 'This request id was already used in this session for another prompt. Use a new one.',
    retryable: false,
  },
  idempotency_conflict: {
    status: 409,
    rpc: 4092,
    message: 'This Idempotency-Key was already used with another body. Use a new one.',
    retryable: false,
  },
  stale_generation: {
    status: 409,
    rpc: 4093,
    message: 'The turn has moved on: the prompt was started, or another turn runs now.',
    retryable: false,
  },
  unknown_execution: {
    status: 409,
    rpc: 4094,
    message: 'How an earlier turn of this session ended is not known. Resolve it first.',
    retryable: false,
  },
  revision_conflict: {
    status: 409,
    rpc: 4018,
    message: 'The session was changed since this revision. Read it again.',
    retryable: false,
  },
  too_large: { status: 413, rpc: 4130, message: 'The request is too large.', retryable: false },
  not_json: {
    status: 415,
    rpc: -32600,
    message: 'The body must be JSON and say so: with curl add -H "content-type: application/json".',
    retryable: false,
  },
  not_multipart: {
    status: 415,
    rpc: -32600,
    message: 'A file is sent as multipart/form-data, in a field "file": with curl -F file=@photo.png.',
    retryable: false,
  },
  empty_prompt: { status: 422, rpc: 4002, message: 'The prompt is empty.', retryable: false },
  unsupported_mode: { status: 422, rpc: 4010, message: 'This mode of prompting is not available.', retryable: false },
  unknown_attachment: {
    status: 422,
    rpc: 4012,
    message: 'There is no such attachment in this session. Upload it first, to the same session.',
    retryable: false,
  },
  too_many_attachments: {
    status: 422,
    rpc: 4013,
    message: 'This session has as many attachments as it may have. Go on in a new session.',
    retryable: false,
  },
  unknown_model: {
    status: 422,
    rpc: -32602,
    message: 'There is no such model. GET /api/models lists them.',
    retryable: false,
  },
  unknown_project: {
    status: 422,
    rpc: -32602,
    message: 'There is no such project. GET /api/projects lists them.',
    retryable: false,
  },
  bad_workspace: { status: 422, rpc: 4017, message: 'The workspace must be an existing folder.', retryable: false },
  unknown_message: { status: 422, rpc: 4040, message: 'There is no such message in this session.', retryable: false },
  foreign_home: {
    status: 422,
    rpc: 4024,
    message: "This session is in another program's home, which is only read. Import it to go on with it.",
    retryable: false,
  },
  unacceptable: {
    status: 422,
    rpc: 4004,
    message: 'The request is well-formed, but cannot be carried out.',
    retryable: false,
  },
  session_not_owned: { status: 423, rpc: 4090, message: 'Another process runs this session.', retryable: true },
  max_concurrent_sessions: {
    status: 429,
    rpc: 4090,
    message: 'As many sessions are running as the configuration allows (max_concurrent_sessions).',
    retryable: true,
    retryAfter: 5,
  },
  queue_full: {
    status: 429,
    rpc: 4095,
    message: 'As many prompts wait in this session as the configuration allows (queue.max).',
    retryable: true,
    retryAfter: 5,
  },
  too_many_attempts: {
    status: 429,
    rpc: 4401,
    message: 'Too many failed attempts. Try again in a minute.',
    retryable: true,
    retryAfter: 60,
  },
  too_many_streams: {
    status: 429,
    rpc: 4291,
    message: 'This credential has as many open streams as it may have (limits.streams). Close one first.',
    retryable: true,
    retryAfter: 5,
  },
  too_many_prompts: {
    status: 429,
    rpc: 4292,
    message: 'This credential has sent as many prompts as it may in a minute (limits.prompts_per_minute).',
    retryable: true,
    retryAfter: 60,
  },
  upgrade_required: {
    status: 426,
    rpc: -32600,
    message: 'This address speaks WebSocket: connect to it with ws:// or wss://.',
    retryable: false,
  },
  headers_too_large: {
    status: 431,
    rpc: -32600,
    message: 'The headers of the request are too large.',
    retryable: false,
  },
  internal: {
    status: 500,
    rpc: -32603,
    message: 'Something went wrong inside the server. Its log says what.',
    retryable: false,
  },
  draining: { status: 503, rpc: 5035, message: 'The server is shutting down.', retryable: true, retryAfter: 5 },
  storage_unavailable: {
    status: 503,
    rpc: 5072,
    message: 'The database does not answer right now. Nothing was changed; try again.',
    retryable: true,
    retryAfter: 1,
  },
  overloaded: {
    status: 503,
    rpc: 5036,
    message: 'The server has more to do than it can. Nothing was changed; try again in a moment.',
    retryable: true,
    retryAfter: 5,
  },
  session_coordination_unavailable: {
    status: 503,
    rpc: 4090,
    message: 'Who may run this session cannot be found out right now. Nothing was changed; try again.',
    retryable: true,
    retryAfter: 5,
  },
  disk_full: {
    status: 503,
    rpc: 5070,
    message: 'The disk is full. Nothing was changed; make room and try again.',
    retryable: true,
    retryAfter: 30,
  },
  disk_nearly_full: {
    status: 507,
    rpc: 5071,
    message: 'The disk is nearly full (limits.min_free_mb), so nothing new is taken. Make room, and try again.',
    retryable: true,
    retryAfter: 60,
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

/** A refusal with a code of the catalogue. `details` go into the answer beside `error` and `code`. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  constructor(code: ErrorCode, message?: string, details: Record<string, unknown> = {}) {
    super(message ?? CATALOGUE[code].message);
    this.name = 'AppError';
    this.code = code;
    this.details = details;
  }

  get entry(): CatalogueEntry {
    return CATALOGUE[this.code];
  }
}

/** Storage trouble as the refusal that a caller gets; null when the error is something else. */
export function storageRefusal(error: unknown): AppError | null {
  const kind = storageTroubleKind(error);
  if (kind === null) return null;
  if (error instanceof RegistryTrouble) return new AppError('session_coordination_unavailable');
  return new AppError(kind === 'disk_full' ? 'disk_full' : 'storage_unavailable');
}
