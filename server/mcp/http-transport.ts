/**
 * The transports to an MCP server at an address: streamable HTTP, and the older one with server-sent events. Both are the
 * SDK's; here they are given bounds, and calls that end when their connection does.
 */
import {
  type FetchLike,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client';
import type { McpServerSettings } from './settings.ts';
import { MAX_MESSAGE_BYTES, type OpenTransport } from './stdio-transport.ts';

type HttpSettings = Extract<McpServerSettings['transport'], { kind: 'http' }>;

export function createHttpTransport({ url, headers }: HttpSettings, fetchImpl: FetchLike): OpenTransport {
  const options = { requestInit: { headers }, fetch: bounded(fetchImpl, MAX_MESSAGE_BYTES) };
  const transport = new StreamableHTTPClientTransport(new URL(url), options);
  return { transport: endingCalls(transport), why: () => null };
}

/** The transport of servers from before streamable HTTP. */
export function createSseTransport({ url, headers }: HttpSettings, fetchImpl: FetchLike): OpenTransport {
  const options = { requestInit: { headers }, fetch: bounded(fetchImpl, MAX_MESSAGE_BYTES) };
  return { transport: new SSEClientTransport(new URL(url), options), why: () => null };
}

/**
 * A request has a connection of its own. When that ends without an answer the SDK goes on waiting, and when the request
 * is cancelled it leaves the connection open; here the one is an error, and the other closes it.
 */
function endingCalls(transport: StreamableHTTPClientTransport): Transport {
  const send = transport.send.bind(transport);
  const open = new Map<string | number, AbortController>();
  transport.send = async (message, options) => {
    if (Array.isArray(message) || !('method' in message)) return send(message, options);
    if (!('id' in message)) {
      const sent = send(message, options);
      const { requestId } = { ...(message.params as { requestId?: string | number } | undefined) };
      if (message.method === 'notifications/cancelled' && requestId !== undefined) {
        await sent.catch(() => {}); // Whoever no longer hears of a cancellation sees it by the connection.
        open.get(requestId)?.abort();
      }
      return sent;
    }
    const { id } = message;
    const stop = new AbortController();
    open.set(id, stop);
    const forget = (): void => void open.delete(id);
    try {
      await send(message, {
        ...options,
        requestSignal: stop.signal,
        onRequestStreamEnd() {
          forget();
          // Where the answer came in time this is one too many, which nobody waits for.
          const error = { code: CONNECTION_CLOSED, message: 'The connection ended before the answer.' };
          transport.onmessage?.({ jsonrpc: '2.0', id, error });
        },
      });
    } catch (error) {
      forget();
      throw error;
    }
  };
  return transport;
}

/** The code of JSON-RPC's own range that the SDKs use for this. */
export const CONNECTION_CLOSED = -32000;

/** A fetch whose answers are given up when a message in them is too long. In a stream each message counts for itself. */
export function bounded(fetchImpl: FetchLike, maxBytes: number): FetchLike {
  return async (url, init) => {
    const response = await fetchImpl(url, init);
    if (response.body === null || response.type === 'opaqueredirect') return response;
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false;
    let length = 0;
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const end = isStream ? endOfMessage(chunk) : -1;
        length = end < 0 ? length + chunk.length : chunk.length - end;
        if (length > maxBytes) controller.error(new Error('a message of the server is too long'));
        else controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
  };
}

/** Where the last empty line of a piece ends; -1 where there is none. */
function endOfMessage(chunk: Uint8Array): number {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const at = Math.max(bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\r\n\r\n') + 2, bytes.lastIndexOf('\r\r'));
  return at < 2 ? -1 : at + 2;
}
