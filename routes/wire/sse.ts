/**
 * Server-sent events: the encoding of live events, and the sink that writes them to a response.
 * Format: HTML standard, section 9.2.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { LiveEvent } from '../../server/live/live-event.ts';
import type { CloseReason, Sink } from '../../server/live/subscriber.ts';
import { SHUTDOWN_GRACE_MS } from '../connections.ts';
import { whenDrained } from './drained.ts';

/** How the `id:` line names a place: on a stream of one session, or on one of many. */
export type IdForm = 'session' | 'many';

function idOf(event: LiveEvent, form: IdForm): string | null {
  const cursor = event.place ? `${event.place.runId}:${event.place.seq}` : event.cursor;
  if (cursor === null) return null;
  return form === 'session' ? cursor : `${event.sessionId}@${cursor}`;
}

/** The frame of an event: made once for each form. */
function sseFrame(event: LiveEvent, form: IdForm): string {
  const key = `sse:${form}`;
  const made = event.encoded.get(key);
  if (made !== undefined) return made;
  const id = idOf(event, form);
  const frame = `${id === null ? '' : `id: ${id}\n`}event: ${event.type}\ndata: ${event.json}\n\n`;
  event.encoded.set(key, frame);
  return frame;
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** Takes a response over for a stream: headers, then the first line that tells clients how soon to come back. */
export function openSse(reply: FastifyReply): ServerResponse {
  const headers = { ...reply.getHeaders(), ...SSE_HEADERS };
  reply.hijack();
  const response = reply.raw;
  response.socket?.setNoDelay(true);
  response.writeHead(200, headers as Record<string, string>);
  response.write('retry: 1000\n\n');
  return response;
}

/** The way to a reader over a response that `openSse` has opened. */
export function createSseSink(response: ServerResponse, form: IdForm): Sink {
  return {
    send(events) {
      if (response.destroyed || response.writableEnded) return true;
      let text = '';
      for (const event of events) text += sseFrame(event, form);
      return response.write(text);
    },
    drained: () => whenDrained(response),
    close(reason: CloseReason) {
      if (reason === 'overflow' || reason === 'send_deadline') {
        response.destroy();
        return;
      }
      response.end();
      // A reader that takes nothing must not keep the server from stopping.
      if (reason === 'shutdown') setTimeout(() => response.destroy(), SHUTDOWN_GRACE_MS).unref();
    },
  };
}
