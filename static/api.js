/** Requests to the server: relative addresses, JSON in and out, every failure as one kind of error with a sentence. */

/** How long an answer may take, in milliseconds. */
const PATIENCE_MS = 30_000;

/** A request that did not succeed. `kind` is `network` (no answer: it may or may not have arrived) or `refused`. */
export class RequestFailed extends Error {
  constructor(kind, message, { status = 0, code = '', reason = '', retryAfter = null } = {}) {
    super(message);
    this.name = 'RequestFailed';
    this.kind = kind;
    this.status = status;
    this.code = code;
    /** More about some codes: a word of theirs. */
    this.reason = reason;
    /** Seconds, when the server named them. */
    this.retryAfter = retryAfter;
  }
}

/** The refusal in an answer. */
export async function refusalOf(response) {
  const body = await response.json().catch(() => null);
  const seconds = Number(response.headers.get('retry-after'));
  const sentence = body?.error ?? `The server answered ${response.status}.`;
  return new RequestFailed('refused', sentence, {
    status: response.status,
    code: body?.code ?? '',
    reason: body?.reason ?? '',
    retryAfter: seconds > 0 ? seconds : null,
  });
}

/**
 * @param onUnauthorized called whenever the server wants a credential
 * @returns `get post patch remove`, each resolving with the JSON of the answer (null for 204) or rejecting with `RequestFailed`
 */
export function createApi({ onUnauthorized }) {
  async function request(method, path, body, headers = {}, options = {}) {
    let response;
    try {
      response = await fetch(path, {
        method,
        cache: 'no-store',
        credentials: 'same-origin',
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        signal: timeLimit(PATIENCE_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...options,
      });
      if (response.ok) return response.status === 204 ? null : await response.json();
    } catch {
      throw new RequestFailed('network', 'The server could not be reached.');
    }
    const refusal = await refusalOf(response);
    if (refusal.code === 'unauthorized') onUnauthorized();
    throw refusal;
  }
  return {
    get: (path) => request('GET', path),
    post: (path, body = {}, headers) => request('POST', path, body, headers),
    // `options` is more for `fetch`: `keepalive` for a page that goes.
    patch: (path, body, options) => request('PATCH', path, body, {}, options),
    remove: (path, options) => request('DELETE', path, undefined, {}, options),
  };
}

function timeLimit(ms) {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), ms);
  return controller.signal;
}

/** A fresh id for a request, also where a page on plain HTTP has no `randomUUID`. */
export function newRequestId() {
  if (globalThis.crypto.randomUUID) return globalThis.crypto.randomUUID();
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
