/**
 * GET /api/ws: the gateway, JSON-RPC over a WebSocket. Same services and same events as REST and SSE; who may connect is
 * decided before the upgrade, as for every request.
 */
import type { Socket } from 'node:net';
import websocket from '@fastify/websocket';
import type { FastifyInstance } from 'fastify';
import type { WebSocket } from 'ws';
import type { Standing } from '../../server/auth/standing.ts';
import { AppError } from '../../server/errors.ts';
import { plainLiveEvent } from '../../server/live/live-event.ts';
import type { LiveRegistry } from '../../server/live/registry.ts';
import { createSubscriber, type SubscriberLimits } from '../../server/live/subscriber.ts';
import { assertRoom } from '../events.ts';
import { createWsSink } from '../wire/ws.ts';
import { serveConnection } from './connection.ts';
import type { Method } from './method.ts';
import { connectionMethods } from './methods/connection.ts';
import { eventMethods } from './methods/events.ts';
import { openingMethods } from './methods/open.ts';
import type { GatewayMethodParts } from './methods/parts.ts';
import { promptMethods } from './methods/prompts.ts';
import { answerWith, requestMethods } from './methods/requests.ts';
import { sessionMethods } from './methods/sessions.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** May be upgraded to a WebSocket. */
    upgrade?: boolean;
  }
}

export interface GatewayParts extends GatewayMethodParts {
  registry: LiveRegistry;
  limits: SubscriberLimits;
  standing: Standing;
  /** Longest frame of a client, in bytes. */
  frameBytes: number;
  heartbeatS: number;
  /** Fresh for each connection. */
  newSocketId(): string;
}

/** Signs of life that may fail to come before a peer counts as gone. */
const MISSED_PONGS = 3;

/** How long a connection may go on that asked for an upgrade and was refused so early that nobody ended it. */
const REFUSED_MS = 2_000;

/** Must be registered before whatever may refuse a request, and before the routes that may be upgraded. */
export async function registerGateway(app: FastifyInstance, frameBytes: number): Promise<void> {
  await app.register(websocket, {
    options: {
      maxPayload: frameBytes,
      perMessageDeflate: false,
      // What is no UTF-8 becomes U+FFFD: a stray byte is no reason to lose a connection.
      skipUTF8Validation: true,
    },
    // Connections are ended with all other streams.
    preClose: (done) => done(),
    // A connection ends with its error, which is its peer's and no fault of this server.
    errorHandler: (_error, socket) => socket.terminate(),
  });
  // Node has let go of it, and its time-outs with it; an upgrade puts an end to this one.
  app.server.on('upgrade', (_request, socket) => {
    (socket as Socket).setTimeout(REFUSED_MS, () => socket.destroy());
  });
  // Otherwise every route would be upgraded, by whoever it is, and its address with all that is in it be logged.
  app.addHook('onRequest', async (request) => {
    if (!request.ws || request.routeOptions.config.upgrade) return;
    throw new AppError('not_found', 'No WebSocket is spoken at this address.');
  });
}

export function gatewayRoutes(parts: GatewayParts) {
  const methods: ReadonlyMap<string, Method> = new Map(
    Object.entries({
      ...connectionMethods(),
      ...openingMethods(parts),
      ...sessionMethods(parts),
      ...promptMethods(parts),
      ...requestMethods(parts),
      ...eventMethods(parts),
    }),
  );

  const answer = answerWith(parts);

  /** Ends a connection whose peer is silent: one that is half open takes everything and answers nothing. */
  function watch(socket: WebSocket): void {
    let missed = 0;
    socket.on('pong', () => {
      missed = 0;
    });
    socket.on('message', () => {
      missed = 0;
    });
    const timer = setInterval(() => {
      // While too much waits to be done nothing is read, and signs of life are in what is not read.
      if (socket.isPaused) return;
      missed += 1;
      if (missed > MISSED_PONGS) socket.terminate();
      else socket.ping();
    }, parts.heartbeatS * 1000);
    socket.on('close', () => clearInterval(timer));
  }

  /** Who asks without an upgrade is told what this address is. */
  const refuse = async (): Promise<never> => {
    throw new AppError('upgrade_required');
  };

  return async (app: FastifyInstance): Promise<void> => {
    // Whatever its methods do is done with the one credential of its upgrade.
    const config = { stream: true, queryToken: true, upgrade: true, scope: 'prompt' as const };
    const schema = {
      summary: 'The WebSocket gateway: JSON-RPC 2.0 in text frames (docs/gateway.md)',
      querystring: { type: 'object', properties: { token: { type: 'string' } } },
    };
    app.head('/api/ws', { config, schema: { ...schema, hide: true } }, refuse);
    app.route({
      method: 'GET',
      url: '/api/ws',
      exposeHeadRoute: false,
      config,
      schema,
      preHandler: async (request) => {
        if (request.ws) assertRoom(request, parts.standing);
      },
      handler: refuse,
      wsHandler: (socket, request) => {
        const connection = request.raw.socket;
        connection.setNoDelay(true);
        connection.setKeepAlive(true, 30_000);
        const subscriber = createSubscriber(createWsSink(socket, connection), parts.limits);
        const identity = request.identity!;
        serveConnection({
          socket,
          key: identity.share,
          subscriber,
          methods,
          sessions: parts.live,
          answer,
          log: app.log,
        });
        watch(socket);
        parts.registry.add(subscriber);
        parts.standing.hold(identity, subscriber);
        parts.registry.addListReader(subscriber);
        const payload = {
          change_events: true,
          heartbeat: true,
          replay_epoch: parts.epoch,
          shared_session: { version: 1, socket_id: parts.newSocketId() },
        };
        subscriber.offer([plainLiveEvent('gateway.ready', '', payload)]);
      },
    });
  };
}
