/**
 * WebSocket: the encoding of live events as JSON-RPC frames, and the sink that writes them to a socket. One text frame
 * holds one JSON object.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { LiveEvent } from '../../server/live/live-event.ts';
import type { CloseReason, Sink } from '../../server/live/subscriber.ts';
import { SHUTDOWN_GRACE_MS } from '../connections.ts';
import { whenDrained } from './drained.ts';

const FRAME = 'ws';

/** A frame that is no event: a reply, or a question of the server. It goes the way of events, in order with them. */
export function frameOf(json: string): LiveEvent {
  return {
    type: 'frame',
    sessionId: '',
    place: null,
    cursor: null,
    json,
    mergeable: false,
    encoded: new Map([[FRAME, json]]),
  };
}

/** The frame of an event: made once, whoever gets it. Its envelope is the `params`. */
function wsFrame(event: LiveEvent): string {
  const made = event.encoded.get(FRAME);
  if (made !== undefined) return made;
  const frame = `{"jsonrpc":"2.0","method":"event","params":${event.json}}`;
  event.encoded.set(FRAME, frame);
  return frame;
}

/** Why a connection ends, as its close code (RFC 6455, section 7.4.1). */
const CLOSE_CODES: Record<Exclude<CloseReason, 'gone'>, number> = {
  finished: 1000,
  shutdown: 1001,
  overflow: 1011,
  send_deadline: 1011,
  revoked: 4401,
};

/** How long a reader that lagged too far may take for what is on its way, so that it hears why it is closed. */
const LAST_WORD_MS = 2_000;

/** @param connection the TCP (or TLS) connection under the socket */
export function createWsSink(socket: WebSocket, connection: Socket): Sink {
  return {
    send(events) {
      if (socket.readyState !== socket.OPEN) return true;
      // All frames of a batch in one write to the system.
      connection.cork();
      for (const event of events) socket.send(wsFrame(event));
      connection.uncork();
      return !connection.writableNeedDrain;
    },
    drained: () => whenDrained(connection),
    close(reason) {
      if (reason === 'gone') return;
      socket.close(CLOSE_CODES[reason], reason);
      // A peer that takes nothing does not answer either.
      const isStuck = reason === 'overflow' || reason === 'send_deadline';
      const timer = setTimeout(() => socket.terminate(), isStuck ? LAST_WORD_MS : SHUTDOWN_GRACE_MS).unref();
      socket.once('close', () => clearTimeout(timer));
    },
  };
}
