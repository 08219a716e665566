/** The TCP connections of the server: none of them may keep it from stopping (HT9). */
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How long a connection may take for what it is still owed when the server stops, in milliseconds. */
export const SHUTDOWN_GRACE_MS = 1_000;

/**
 * Ends every connection that is left when the grace is over. `close` of an HTTP server waits for each one that is not
 * idle, and one that says nothing, has sent half a request or got a refusal from the parser never is.
 */
export function endConnectionsOnClose(app: FastifyInstance): void {
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  app.addHook('preClose', async () => {
    const timer = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, SHUTDOWN_GRACE_MS);
    app.server.once('close', () => clearTimeout(timer));
  });
}
