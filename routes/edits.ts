/** Edits of a session: rewind, retry, clear, fork; and compaction, which edits only what its model is given. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { AppError } from '../server/errors.ts';
import type { Intake } from '../server/limits/intake.ts';
import type { Compaction } from '../server/sessions/compaction.ts';
import type { Edits } from '../server/sessions/edits.ts';
import type { Fork } from '../server/sessions/fork.ts';
import {
  Accepted,
  AnswerOfRun,
  createRunAnswer,
  formWithRoom,
  type RunAnswerParts,
  RunHeaders,
  requestIdOf,
  WaitQuery,
} from './run-answer.ts';
import { Nullable, RequestKey, refusals, Session, SessionParams } from './schemas.ts';
import { etagOf, revisionOf, SessionBody } from './sessions.ts';

export interface EditRoutesParts extends RunAnswerParts {
  edits: Edits;
  intake: Intake;
  compaction: Pick<Compaction, 'onRequest'>;
  fork: Fork;
}

const MessageId = Type.String({ minLength: 1, maxLength: 200 });
const Revision = Type.Optional(Type.Integer({ minimum: 0, description: 'The revision that you have seen.' }));
const IfMatch = Type.Object({ 'if-match': Type.Optional(Type.String()) });

/** The revision that an edit names, in its header or its body. @throws AppError bad_request without one */
function seenRevision(header: string | undefined, body: number | undefined): number {
  const named = revisionOf(header);
  if (named !== null && body !== undefined && named !== body) {
    throw new AppError('bad_request', 'If-Match and revision are both given and differ.');
  }
  const revision = body ?? named;
  if (revision === null) throw new AppError('bad_request', 'The revision that you have seen is needed: "revision".');
  return revision;
}

export const editRoutes =
  (parts: EditRoutesParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { edits, fork, compaction, intake } = parts;
    const answer = createRunAnswer(parts, app.log);

    app.post(
      '/api/sessions/:id/rewind',
      {
        schema: {
          summary: 'Take back the messages after one, or the last turns; nothing is destroyed',
          params: SessionParams,
          headers: IfMatch,
          body: Type.Union([
            Type.Object({ to_message: MessageId, revision: Revision }, { additionalProperties: false }),
            Type.Object(
              { turns: Type.Integer({ minimum: 1, maximum: 100_000 }), revision: Revision },
              { additionalProperties: false },
            ),
          ]),
          response: {
            200: Type.Object({ session: Session, removed: Type.Integer({ description: 'Messages taken back.' }) }),
            ...refusals(400, 404, 409, 422, 423, 503),
          },
        },
      },
      async (request, reply) => {
        const { body } = request;
        const revision = seenRevision(request.headers['if-match'], body.revision);
        const to = 'turns' in body ? { turns: body.turns } : { message: body.to_message };
        const rewound = await edits.rewind(request.params.id, to, revision);
        reply.header('etag', etagOf(rewound.session));
        return rewound;
      },
    );

    app.post(
      '/api/sessions/:id/clear',
      {
        schema: {
          summary: 'Take back all messages; title, model and draft stay',
          params: SessionParams,
          headers: IfMatch,
          body: Type.Object({ revision: Revision }, { additionalProperties: false }),
          response: { 200: SessionBody, ...refusals(400, 404, 409, 423, 503) },
        },
      },
      async (request, reply) => {
        const revision = seenRevision(request.headers['if-match'], request.body.revision);
        const session = await edits.clear(request.params.id, revision);
        reply.header('etag', etagOf(session));
        return { session };
      },
    );

    app.post(
      '/api/sessions/:id/retry',
      {
        schema: {
          summary: 'Take back the last prompt with its answer and submit it again; answered like a prompt',
          params: SessionParams,
          querystring: WaitQuery,
          headers: RunHeaders,
          body: Type.Object({ request_id: Type.Optional(RequestKey) }, { additionalProperties: false }),
          response: { 200: AnswerOfRun, 202: Accepted, ...refusals(400, 404, 409, 413, 422, 423, 429, 503, 507) },
        },
      },
      async (request, reply) => {
        const requestId = requestIdOf(request.headers['idempotency-key'], request.body.request_id);
        const sessionId = request.params.id;
        const form = formWithRoom(request, parts.standing);
        await intake.prompt({ key: request.identity!.share, sessionId, requestId });
        const admission = await edits.retry(sessionId, requestId, 'owner');
        return answer(await parts.prompts.receipt(admission), form, reply);
      },
    );

    app.post(
      '/api/sessions/:id/compact',
      {
        schema: {
          summary: 'Have what is older than the last turn summarised for the model; the messages stay as they are',
          params: SessionParams,
          body: Type.Object(
            { focus: Type.Optional(Type.String({ maxLength: 2000, description: 'What is to be kept above all.' })) },
            { additionalProperties: false },
          ),
          response: {
            200: Type.Object({
              session: Session,
              status: Type.Enum(['compressed', 'aborted']),
              removed: Type.Integer({ description: "How many fewer messages the model's context has." }),
              before_messages: Type.Integer(),
              after_messages: Type.Integer(),
              before_tokens: Type.Integer({ description: 'Estimated.' }),
              after_tokens: Type.Integer({ description: 'Estimated.' }),
              summary: Nullable(Type.String()),
              message: Type.Optional(Type.String({ description: 'Why nothing was compressed.' })),
            }),
            ...refusals(400, 404, 409, 422, 423, 503),
          },
        },
      },
      async (request, reply) => {
        const focus = request.body.focus?.trim() || null;
        const compacted = await compaction.onRequest(request.params.id, focus);
        reply.header('etag', etagOf(compacted.session));
        return compacted;
      },
    );

    app.post(
      '/api/sessions/:id/fork',
      {
        config: { fills: true },
        schema: {
          summary: 'Make a new session of what is there, or of what is there up to a message',
          params: SessionParams,
          body: Type.Object(
            {
              at_message: Type.Optional(MessageId),
              title: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
            },
            { additionalProperties: false },
          ),
          response: { 201: SessionBody, ...refusals(400, 404, 422, 503, 507) },
        },
      },
      async (request, reply) => {
        const { at_message, title } = request.body;
        const session = await fork(request.params.id, { atMessage: at_message ?? null, title: title ?? null });
        return reply.code(201).send({ session });
      },
    );
  };
