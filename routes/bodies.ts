/**
 * How long a body may take (HT2). Node has one time for all requests; here an upload gets more of it, as long as it goes on,
 * and everything else is refused when its time is over, in the words of the HTTP parser's own time-out.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body may take `UPLOAD_ROUNDS` times as long, but must not stop for longer than any other. */
    upload?: boolean;
  }
}

export const UPLOAD_ROUNDS = 20;

/** How long a client that was refused in the middle of its body may take to hear of it, in milliseconds. */
const LINGER_MS = 2_000;

/** @param limitMs milliseconds in which a body must have arrived */
export function watchBodies(app: FastifyInstance, limitMs: number): void {
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = request;
    if (!hasBody(raw.headers)) return;
    const { socket } = raw;
    let rounds = request.routeOptions.config.upload ? UPLOAD_ROUNDS : 1;
    let seen = socket.bytesRead;
    const timer = setInterval(() => {
      const stands = socket.bytesRead === seen;
      seen = socket.bytesRead;
      rounds -= 1;
      if (raw.complete) clearInterval(timer);
      else if (rounds <= 0 || stands) {
        clearInterval(timer);
        if (reply.raw.writableEnded) socket.destroy();
        else app.server.emit('clientError', lateError(), socket);
      }
    }, limitMs);
    raw.once('close', () => clearInterval(timer));
  });

  // Nobody reads the rest of what has been answered; an upload may have much of it.
  app.addHook('onResponse', async (request) => {
    const { raw } = request;
    if (!request.routeOptions.config.upload || raw.complete) return;
    const timer = setTimeout(() => {
      if (!raw.complete) raw.socket.destroy();
    }, LINGER_MS);
    raw.once('close', () => clearTimeout(timer));
  });
}

const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** As Node would say it. */
const lateError = (): Error => Object.assign(new Error('the body did not arrive in time'), { code: LATE });
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';
