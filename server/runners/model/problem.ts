/**
 * A problem: what can be read out of a provider's failure, whatever shape it has (an SDK error, an exception of the
 * connection, an `{"error": …}` in the stream, an error document). Only reads; `failure.ts` decides what it means.
 */
import type { SeenResponse } from './response-watch.ts';
import { retryAfterOf } from './retry-after.ts';

export interface Problem {
  kind:
    | 'answered' // the provider said that it failed, by status or by an error object
    | 'malformed' // a frame of the stream could not be read
    | 'not_a_stream' // the whole answer was something else: a page, a document, noise
    | 'cut' // the answer stopped before its end
    | 'unreachable' // no answer at all
    | 'timeout'; // the connection's own time-outs
  /** HTTP status of the failure; an error in a stream may bring one in its `code`. */
  status: number | null;
  /** Machine words of the error, lower case, most telling first: code, type, status, reasons. */
  codes: string[];
  /** What the provider wrote for a person; not redacted yet. */
  text: string | null;
  /** Seconds that the provider asks to wait. */
  retryAfter: number | null;
  /** Code of the exception, such as ECONNREFUSED. */
  exception: string | null;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
/** Connections that broke rather than never came to be. */
const CUTS = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'UND_ERR_ABORTED', 'ERR_STREAM_PREMATURE_CLOSE']);

/**
 * Reads a failure.
 * @param failure what was thrown, or the `error` of an error part
 * @param seen the answer on the wire, where there was one
 * @param frames whether any frame of the stream could be read
 * @param now epoch seconds, for a Retry-After that is a date
 */
export function readProblem(failure: unknown, seen: SeenResponse | null, frames: boolean, now: number): Problem {
  const error = isFields(failure) ? failure : {};
  switch (error.name) {
    case 'AI_APICallError': {
      const status = typeof error.statusCode === 'number' ? error.statusCode : null;
      if (status === null || status < 300) return ofException(failure, status !== null);
      // The SDK makes a refusal of a failure in the first frame of an answer that was accepted.
      if (seen) return ofFirstFrame(parse(error.responseBody));
      const headers = isFields(error.responseHeaders) ? error.responseHeaders : {};
      const answered = ofErrorObject(parse(error.responseBody)) ?? blank('answered');
      return { ...answered, status, retryAfter: retryAfterOf(headers, now) ?? answered.retryAfter };
    }
    case 'AI_TypeValidationError': // a frame that is JSON, but no chunk: often an error in a shape of its own
      return ofErrorObject(error.value) ?? blank('malformed');
    case 'AI_JSONParseError':
      return blank('malformed');
    case STREAM_ENDED:
    case 'AI_InvalidResponseDataError':
      if (error.data !== undefined) return blank('malformed');
      if (frames) return blank('cut');
      return ofErrorObject(parse(seen?.head)) ?? blank('not_a_stream');
    default:
      if (failure instanceof Error) return ofException(failure, seen !== null);
      return ofErrorObject({ error: failure }) ?? blank('answered');
  }
}

/** The events of the messages protocol; it says that others may come and are to be passed over. */
const MESSAGE_EVENTS = /^(message_(start|delta|stop)|content_block_(start|delta|stop)|ping|error)$/;

/** Whether a failure is only an event of the messages protocol that the SDK does not know. */
export function isUnknownEvent(failure: unknown): boolean {
  if (!isFields(failure) || failure.name !== 'AI_TypeValidationError' || !isFields(failure.value)) return false;
  const { type } = failure.value;
  return typeof type === 'string' && !MESSAGE_EVENTS.test(type);
}

/** Name of the error that stands for a stream that ended without its finish. */
export const STREAM_ENDED = 'StreamEnded';

/** What went wrong in a first frame: an error object, or the SDK's own error about what it could not read. */
function ofFirstFrame(frame: unknown): Problem {
  if (isFields(frame) && typeof frame.name === 'string' && frame.name.startsWith('AI_')) {
    return ofErrorObject(frame.value) ?? blank('malformed');
  }
  return ofErrorObject({ error: frame }) ?? blank('answered');
}

const blank = (kind: Problem['kind']): Problem => ({
  kind,
  status: null,
  codes: [],
  text: null,
  retryAfter: null,
  exception: null,
});

/** An exception of the connection: its code is somewhere down its causes. */
function ofException(failure: unknown, answering: boolean): Problem {
  let code: string | null = null;
  let current: unknown = failure;
  for (let depth = 0; depth < 8 && isFields(current) && !code; depth += 1) {
    if (typeof current.code === 'string') code = current.code;
    // A connection that was tried over IPv6 and IPv4 fails with both.
    else if (Array.isArray(current.errors) && isFields(current.errors[0])) code = String(current.errors[0].code ?? '');
    current = current.cause;
  }
  const exception = code || null;
  if (exception && TIMEOUTS.has(exception)) return { ...blank('timeout'), exception };
  const cut = answering || (exception !== null && CUTS.has(exception));
  return { ...blank(cut ? 'cut' : 'unreachable'), exception };
}

/** `{"error": {…}}`, `{"error": "…"}`, `[{"error": …}]`, `{"object": "error", …}`; null for anything else. */
function ofErrorObject(document: unknown): Problem | null {
  const outer = Array.isArray(document) ? document[0] : document;
  if (!isFields(outer)) return null;
  const named = outer.error ?? (outer.object === 'error' || outer.type === 'error' ? outer : null);
  if (named === null || named === undefined) {
    const bare = outer.message ?? outer.detail;
    return typeof bare === 'string' ? { ...blank('answered'), text: bare } : null;
  }
  if (!isFields(named)) return { ...blank('answered'), text: typeof named === 'string' ? named : null };
  const status = [named.code, named.status].map(Number).find((n) => Number.isInteger(n) && n >= 400 && n < 600);
  return {
    ...blank('answered'),
    status: status ?? null,
    codes: wordsOf(named, outer),
    text: typeof named.message === 'string' ? named.message : null,
    retryAfter: retryDelayOf(named.details),
  };
}

function wordsOf(named: Fields, outer: Fields): string[] {
  const inner = isFields(named.innererror) ? named.innererror : {};
  const details = Array.isArray(named.details) ? named.details.filter(isFields) : [];
  const words = [named.code, inner.code, ...details.map((d) => d.reason), named.type, named.status, outer.code];
  return words.filter((word): word is string => typeof word === 'string').map((word) => word.toLowerCase());
}

/** `{"@type": "…RetryInfo", "retryDelay": "13s"}` among the details. */
function retryDelayOf(details: unknown): number | null {
  const info = Array.isArray(details) ? details.find((d) => isFields(d) && typeof d.retryDelay === 'string') : null;
  const seconds = Number.parseFloat(info?.retryDelay);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}

function parse(text: unknown): unknown {
  if (typeof text !== 'string') return null;
  try {
    return JSON.parse(text);
  } catch {
    return null; // not JSON: there is nothing to read in it
  }
}
