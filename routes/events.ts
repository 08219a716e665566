/** The event streams: one session, or the session list and any number of sessions over one connection. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Standing } from '../server/auth/standing.ts';
import { parseSessionCursor } from '../server/core/cursor.ts';
import { isSessionId } from '../server/core/ids.ts';
import { AppError } from '../server/errors.ts';
import type { Attach } from '../server/live/attach.ts';
import { plainLiveEvent } from '../server/live/live-event.ts';
import type { LiveRegistry } from '../server/live/registry.ts';
import { createSubscriber, type Subscriber, type SubscriberLimits } from '../server/live/subscriber.ts';
import type { Sessions } from '../server/sessions/sessions.ts';
import { EventStream, refusals, SessionParams } from './schemas.ts';
import { createSseSink, type IdForm, openSse, SSE_HEADERS } from './wire/sse.ts';

export interface EventRoutesParts {
  sessions: Sessions;
  attach: Attach;
  registry: LiveRegistry;
  limits: SubscriberLimits;
  standing: Standing;
  version: string;
  /** Names this start of the server: a reader that comes back sees whether it is another one. */
  start: string;
}

/** What a stream belongs to besides its session. */
export type StreamParts = Pick<EventRoutesParts, 'registry' | 'limits' | 'standing'>;

/** @throws AppError too_many_streams when the credential of a request has its share of streams already */
export function assertRoom({ identity }: Pick<FastifyRequest, 'identity'>, standing: Pick<Standing, 'hasRoom'>): void {
  if (!standing.hasRoom(identity!)) throw new AppError('too_many_streams');
}

/** Turns a reply into a stream with a subscriber at its end. After this nothing else may be sent on the reply. */
export function openSubscriber(
  reply: FastifyReply,
  { registry, limits, standing }: StreamParts,
  form: IdForm,
): Subscriber {
  const response = openSse(reply);
  const subscriber = createSubscriber(createSseSink(response, form), limits);
  response.on('close', () => subscriber.gone());
  response.on('error', () => subscriber.gone());
  registry.add(subscriber);
  standing.hold(reply.request.identity!, subscriber);
  // A client may have left while its request was looked at: its close has passed already.
  if (response.destroyed) subscriber.gone();
  return subscriber;
}

/** An error behind the headers can only end the stream; the reader comes back with its cursor. */
export async function endOnError(
  log: FastifyBaseLogger,
  subscriber: Subscriber,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn({ err: error }, 'a stream ended early');
    subscriber.close('shutdown');
  }
}

/** An EventSource repeats the cursor of its URL for ever: the header is newer. */
const lastEventId = (request: FastifyRequest): string | null => {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && header !== '' ? header : null;
};

const STREAM = { config: { stream: true }, exposeHeadRoute: false } as const;

/** The sessions that a reader of many wants, each with its cursor. */
function wantedSessions(texts: readonly string[]): Map<string, string | null> {
  const wanted = new Map<string, string | null>();
  for (const text of texts) {
    const { sessionId, cursor } = parseSessionCursor(text);
    if (!isSessionId(sessionId)) throw new AppError('bad_request', `"${sessionId}" is not the id of a session.`);
    wanted.set(sessionId, cursor);
  }
  return wanted;
}

/** HEAD on a stream: its headers, then the end. */
const head = (reply: FastifyReply) => reply.headers(SSE_HEADERS).send();

export const eventRoutes =
  ({ sessions, attach, version, start, ...parts }: EventRoutesParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const one = {
      summary: 'Events of one session: what follows the cursor, or a snapshot; then live',
      params: SessionParams,
      querystring: Type.Object({ cursor: Type.Optional(Type.String()) }),
      response: { 200: EventStream, ...refusals(400, 404, 423, 429, 503) },
    };

    app.get('/api/sessions/:id/events', { ...STREAM, schema: one }, async (request, reply) => {
      const sessionId = request.params.id;
      await sessions.assertStreamable(sessionId);
      const cursor = lastEventId(request) ?? request.query.cursor ?? null;
      assertRoom(request, parts.standing);
      const subscriber = openSubscriber(reply, parts, 'session');
      await endOnError(app.log, subscriber, () => attach({ sessionId, subscriber, cursor }));
      return reply;
    });

    app.head(
      '/api/sessions/:id/events',
      { config: { stream: true }, schema: { ...one, hide: true } },
      async (request, reply) => {
        await sessions.assertStreamable(request.params.id);
        return head(reply);
      },
    );

    const many = {
      summary: 'Events of the session list and of any number of sessions (session=<id> or session=<id>@<cursor>)',
      querystring: Type.Object({ session: Type.Optional(Type.Array(Type.String(), { maxItems: 50 })) }),
      response: { 200: EventStream, ...refusals(400, 429, 503) },
    };

    app.get('/api/events', { ...STREAM, schema: many }, async (request, reply) => {
      const wanted = wantedSessions(request.query.session ?? []);
      const last = lastEventId(request);
      if (last !== null) {
        const { sessionId, cursor } = parseSessionCursor(last);
        if (cursor !== null && wanted.has(sessionId)) wanted.set(sessionId, cursor);
      }
      assertRoom(request, parts.standing);
      const subscriber = openSubscriber(reply, parts, 'many');
      parts.registry.addListReader(subscriber);
      const connected = { session_id: null, reason: 'connected', server: { version, start } };
      subscriber.offer([plainLiveEvent('sessions.changed', '', connected)]);
      await endOnError(app.log, subscriber, async () => {
        await Promise.all([...wanted].map(([sessionId, cursor]) => attachOne(subscriber, sessionId, cursor)));
      });
      return reply;
    });

    app.head('/api/events', { config: { stream: true }, schema: { ...many, hide: true } }, async (request, reply) => {
      wantedSessions(request.query.session ?? []);
      return head(reply);
    });

    /** One session that cannot be read does not cost the others. */
    async function attachOne(subscriber: Subscriber, sessionId: string, cursor: string | null): Promise<void> {
      try {
        await sessions.assertStreamable(sessionId);
        await attach({ sessionId, subscriber, cursor });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const deleted = error.code === 'session_not_found';
        const event = deleted
          ? plainLiveEvent('session.deleted', sessionId, {})
          : plainLiveEvent('session.reset', sessionId, { reason: error.code });
        subscriber.offer([event]);
      }
    }
  };
