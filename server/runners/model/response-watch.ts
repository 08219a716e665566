/**
 * What a provider's answer looked like on the wire, for the cases that the SDK reports as one: a web page with status
 * 200, an error document with status 200, a stream that ended properly but without a finish reason, a stream that
 * was cut. Sees bytes pass; holds at most a few kilobytes of them, and takes out what the SDK misreads (null-errors).
 */

import { createNullErrors } from './null-errors.ts';

const HEAD_BYTES = 8192;
const TAIL_BYTES = 64;

/** The answer to one request, so far. */
export interface SeenResponse {
  contentType: string;
  /** The beginning of a body that is not an event stream; empty for streams. */
  head: string;
  /** Whether the bytes seen last are the protocol's own end, `data: [DONE]`. */
  ended(): boolean;
}

export interface ResponseWatch {
  fetch: typeof fetch;
  /** What was seen of the request that was made with this signal; null before its headers came. */
  of(signal: AbortSignal): SeenResponse | null;
}

/** Wraps `fetch`. A request is known by its signal, which is new for each. */
export function createResponseWatch(fetchImpl: typeof fetch): ResponseWatch {
  const seen = new WeakMap<AbortSignal, SeenResponse>();

  const watched: typeof fetch = async (input, init) => {
    const response = await fetchImpl(input, init);
    if (!init?.signal || !response.ok || !response.body) return response;
    const contentType = response.headers.get('content-type') ?? '';
    const keepHead = !contentType.includes('event-stream');
    let head: Buffer = Buffer.alloc(0);
    let tail: Buffer = Buffer.alloc(0);
    seen.set(init.signal, {
      contentType,
      get head() {
        return head.toString('utf8');
      },
      ended: () => /(^|\n)data: ?\[DONE\]\s*$/.test(tail.toString('latin1')),
    });
    const nullErrors = createNullErrors();
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          if (keepHead && head.length < HEAD_BYTES) head = Buffer.concat([head, chunk]).subarray(0, HEAD_BYTES);
          const last = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
          tail =
            last.length >= TAIL_BYTES ? last.subarray(-TAIL_BYTES) : Buffer.concat([tail, last]).subarray(-TAIL_BYTES);
          const clean = nullErrors.push(chunk);
          if (clean.length > 0) controller.enqueue(clean);
        },
        flush(controller) {
          const rest = nullErrors.end();
          if (rest.length > 0) controller.enqueue(rest);
        },
      }),
    );
    return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
  };

  return { fetch: watched, of: (signal) => seen.get(signal) ?? null };
}
