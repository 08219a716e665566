/** /api/sessions: create, list, read, change, delete, and the messages of one. */
import { createHash } from 'node:crypto';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { AppError } from '../server/errors.ts';
import type { SessionListCursor, Sessions } from '../server/sessions/sessions.ts';
import type { SessionView } from '../server/sessions/view.ts';
import { Limit, Message, Nullable, RequestKey, refusals, Session, SessionParams } from './schemas.ts';

const Title = Type.String({ maxLength: 500 });
const ListQuery = Type.Object({
  limit: Limit(50),
  cursor: Type.Optional(Type.String({ maxLength: 500 })),
  q: Type.Optional(Type.String({ maxLength: 500 })),
  archived: Type.Enum(['0', '1', 'only'], { default: '0' }),
  project_id: Type.Optional(Type.String({ maxLength: 128 })),
  source: Type.Optional(Type.String({ maxLength: 128 })),
});
export const SessionBody = Type.Object({ session: Session });

/** ETag of what one can see of a session: begins with its revision; status, queue and draft move without one. */
export const etagOf = (session: SessionView, transcript = ''): string => {
  const hash = createHash('sha256').update(JSON.stringify(session)).update(transcript);
  return `"${session.revision}.${hash.digest('base64url').slice(0, 22)}"`;
};

/** Answers 304 when the client has this already. */
export function isFresh(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag).header('cache-control', 'no-cache');
  const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known !== undefined && (known.includes(etag) || known.includes('*'));
}

/** The revision in an If-Match header. */
export function revisionOf(header: string | undefined): number | null {
  if (header === undefined || header.trim() === '*') return null;
  const match = /^\s*("?)(\d{1,15})(\.[^"]*)?\1\s*$/.exec(header);
  if (!match) throw new AppError('bad_request', 'If-Match must be a quoted revision, for example "7".');
  return Number(match[2]);
}

const writeCursor = (cursor: SessionListCursor): string =>
  Buffer.from(JSON.stringify([cursor.pinned, cursor.activity, cursor.session_id])).toString('base64url');

function readCursor(text: string | undefined): SessionListCursor | null {
  if (text === undefined) return null;
  try {
    const [pinned, activity, session_id] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (typeof pinned === 'boolean' && typeof activity === 'number' && typeof session_id === 'string') {
      return { pinned, activity, session_id };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error;
  }
  throw new AppError('bad_request', 'The cursor is not one of this list.');
}

const ARCHIVED = { '0': 'no', '1': 'yes', only: 'only' } as const;

export const sessionRoutes =
  (sessions: Sessions): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/api/sessions',
      {
        schema: {
          summary: 'Create a session',
          headers: Type.Object({ 'idempotency-key': Type.Optional(RequestKey) }),
          body: Type.Object(
            {
              title: Type.Optional(Nullable(Title)),
              model: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
              workspace: Type.Optional(Nullable(Type.String({ maxLength: 4096 }))),
              project_id: Type.Optional(Nullable(Type.String({ maxLength: 128 }))),
            },
            { additionalProperties: false },
          ),
          response: { 201: SessionBody, ...refusals(400, 409, 422, 503) },
        },
      },
      async (request, reply) => {
        const key = request.headers['idempotency-key'];
        const { title = null, model = null, workspace = null, project_id = null } = request.body;
        const fields = JSON.stringify([title, model, workspace, project_id]);
        const digest = createHash('sha256').update(fields).digest('hex');
        const session = await sessions.create(request.body, key === undefined ? null : { key, digest });
        return reply.code(201).send({ session });
      },
    );

    app.get(
      '/api/sessions',
      {
        schema: {
          summary: 'List sessions: pinned first, then newest activity',
          querystring: ListQuery,
          response: {
            200: Type.Object({
              sessions: Type.Array(Session),
              next_cursor: Nullable(Type.String()),
              total: Type.Integer(),
            }),
            ...refusals(400, 503),
          },
        },
      },
      async (request) => {
        const { limit, cursor, archived, q, project_id, source } = request.query;
        const page = await sessions.list({
          limit,
          cursor: readCursor(cursor),
          archived: ARCHIVED[archived],
          q: q ?? null,
          project_id: project_id ?? null,
          source: source ?? null,
        });
        return { sessions: page.sessions, next_cursor: page.next ? writeCursor(page.next) : null, total: page.total };
      },
    );

    app.get(
      '/api/sessions/:id',
      {
        schema: {
          summary: 'Read a session, with its last messages if asked for',
          params: SessionParams,
          querystring: Type.Object({
            messages: Type.Union([Type.Literal('all'), Type.Integer({ minimum: 0, maximum: 100_000 })], { default: 0 }),
          }),
          response: {
            200: Type.Object({ session: Session, messages: Type.Optional(Type.Array(Message)) }),
            ...refusals(400, 404, 503),
          },
        },
      },
      async (request, reply) => {
        const { messages } = request.query;
        if (messages === 0) {
          const session = await sessions.get(request.params.id);
          if (isFresh(request, reply, etagOf(session))) return notModified(reply);
          return { session };
        }
        const limit = messages === 'all' ? Number.MAX_SAFE_INTEGER : messages;
        const { rows, session, tag } = await sessions.messages(request.params.id, { limit });
        if (isFresh(request, reply, etagOf(session, tag))) return notModified(reply);
        return sendJson(reply, `{"session":${JSON.stringify(session)},"messages":[`, rows, ']}\n');
      },
    );

    app.get(
      '/api/sessions/:id/messages',
      {
        schema: {
          summary: 'Messages of a session, oldest first: the last ones, or those before or after one',
          params: SessionParams,
          querystring: Type.Object({
            limit: Limit(50),
            before: Type.Optional(Type.String({ maxLength: 200 })),
            after: Type.Optional(Type.String({ maxLength: 200 })),
          }),
          response: {
            200: Type.Object({ messages: Type.Array(Message), has_more: Type.Boolean(), revision: Type.Integer() }),
            ...refusals(400, 404, 422, 503),
          },
        },
      },
      async (request, reply) => {
        const { limit, before, after } = request.query;
        const page = await sessions.messages(request.params.id, { limit, before, after });
        if (isFresh(request, reply, etagOf(page.session, page.tag))) return notModified(reply);
        const { revision } = page.session;
        return sendJson(reply, '{"messages":[', page.rows, `],"has_more":${page.hasMore},"revision":${revision}}\n`);
      },
    );

    app.patch(
      '/api/sessions/:id',
      {
        schema: {
          summary: 'Change title, pin, archive, model, workspace, project or draft',
          params: SessionParams,
          headers: Type.Object({ 'if-match': Type.Optional(Type.String()) }),
          body: Type.Object(
            {
              title: Type.Optional(Nullable(Title)),
              pinned: Type.Optional(Type.Boolean()),
              archived: Type.Optional(Type.Boolean()),
              model: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
              workspace: Type.Optional(Nullable(Type.String({ maxLength: 4096 }))),
              project_id: Type.Optional(Nullable(Type.String({ maxLength: 128 }))),
              draft: Type.Optional(Type.String({ maxLength: 1_048_576 })),
            },
            { additionalProperties: false },
          ),
          response: { 200: SessionBody, ...refusals(400, 404, 409, 422, 503) },
        },
      },
      async (request, reply) => {
        const session = await sessions.patch(request.params.id, request.body, revisionOf(request.headers['if-match']));
        reply.header('etag', etagOf(session));
        return { session };
      },
    );

    app.delete(
      '/api/sessions/:id',
      {
        schema: {
          summary: 'Delete a session; with stop=1 also one that is running',
          params: SessionParams,
          querystring: Type.Object({ stop: Type.Enum(['0', '1'], { default: '0' }) }),
          body: Type.Optional(Type.Object({}, { additionalProperties: false })),
          response: { 204: Type.Null(), ...refusals(400, 404, 409, 423, 503) },
        },
      },
      async (request, reply) => {
        await sessions.remove(request.params.id, request.query.stop === '1');
        return reply.code(204).send(null);
      },
    );
  };

/** Sends rows that are JSON already between two pieces of it; a big body is copied once and never parsed. */
function sendJson(reply: FastifyReply, before: string, rows: string | Buffer, after: string): FastifyReply {
  const json =
    typeof rows === 'string' ? before + rows + after : Buffer.concat([Buffer.from(before), rows, Buffer.from(after)]);
  // The typed reply wants an object; a text goes out as it is, which is the point.
  return reply.type('application/json; charset=utf-8').send(json as never);
}

/** 304 has no body, so no schema of the route speaks of it. */
export const notModified = (reply: FastifyReply): FastifyReply => (reply as FastifyReply).code(304).send();
