/** Prompts of a session: submit in three forms, look up, cancel, resolve; interrupt; the agent's open questions. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Stop } from '../server/authority/stop.ts';
import type { Mode } from '../server/core/terms.ts';
import { AppError } from '../server/errors.ts';
import type { Intake } from '../server/limits/intake.ts';
import type { Reply as Answer, Requests } from '../server/live/requests.ts';
import { toAdmissionView } from '../server/sessions/admission-view.ts';
import type { Edits } from '../server/sessions/edits.ts';
import type { Sessions } from '../server/sessions/sessions.ts';
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
import { Admission, Limit, Nullable, PromptParams, RequestKey, refusals, SessionParams } from './schemas.ts';

export interface PromptRoutesParts extends RunAnswerParts {
  sessions: Sessions;
  stop: Stop;
  edits: Edits;
  intake: Intake;
  /** What a prompt does when a turn runs and it does not say so itself. */
  busyMode(): Mode;
  requests: Requests;
}

export const promptRoutes =
  (parts: PromptRoutesParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { prompts, sessions, stop, edits, intake } = parts;
    const answer = createRunAnswer(parts, app.log);

    app.post(
      '/api/sessions/:id/prompts',
      {
        schema: {
          summary:
            'Submit a prompt: 202 at once, its events with Accept: text/event-stream, or its answer with ?wait=1',
          params: SessionParams,
          querystring: WaitQuery,
          headers: RunHeaders,
          body: Type.Object(
            {
              text: Type.String(),
              attachments: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
              mode: Type.Optional(Type.Enum(['queue', 'steer', 'interrupt', 'reject'])),
              replaces: Type.Optional(
                Type.String({
                  minLength: 1,
                  maxLength: 200,
                  description: 'Id of a prompt in whose place this one comes: it and all after it is taken back.',
                }),
              ),
              request_id: Type.Optional(RequestKey),
            },
            { additionalProperties: false },
          ),
          response: { 200: AnswerOfRun, 202: Accepted, ...refusals(400, 404, 409, 413, 422, 423, 429, 503, 507) },
        },
      },
      async (request, reply) => {
        const { text, attachments = [], mode, request_id, replaces } = request.body;
        if (replaces && mode && mode !== 'queue') {
          throw new AppError('unsupported_mode', 'A prompt that replaces another one is queued: leave mode out.');
        }
        const sessionId = request.params.id;
        const requestId = requestIdOf(request.headers['idempotency-key'], request_id);
        const form = formWithRoom(request, parts.standing);
        await intake.prompt({ key: request.identity!.share, sessionId, requestId });
        const submission = { sessionId, text, attachments, requestId, principalId: 'owner' };
        const admission = replaces
          ? await prompts.receipt(await edits.resend({ message: replaces }, submission))
          : await prompts.submit({ ...submission, mode: mode ?? parts.busyMode() });
        return answer(admission, form, reply);
      },
    );

    app.get(
      '/api/sessions/:id/prompts',
      {
        schema: {
          summary: 'Prompts of a session in order of acceptance',
          params: SessionParams,
          querystring: Type.Object({
            pending: Type.Enum(['0', '1'], { default: '0' }),
            limit: Limit(1000),
          }),
          response: { 200: Type.Object({ admissions: Type.Array(Admission) }), ...refusals(400, 404, 503) },
        },
      },
      async (request) => ({
        admissions: await prompts.list(request.params.id, request.query.pending === '1', request.query.limit),
      }),
    );

    app.delete(
      '/api/sessions/:id/prompts/:admission_id',
      {
        config: { relieves: true },
        schema: {
          summary: 'Cancel a waiting prompt',
          params: PromptParams,
          body: Type.Optional(Type.Object({}, { additionalProperties: false })),
          response: { 200: Type.Object({ admission: Admission }), ...refusals(400, 404, 409, 423, 503) },
        },
      },
      async (request) => {
        await sessions.get(request.params.id);
        return { admission: toAdmissionView(await stop.cancel(request.params.id, request.params.admission_id)) };
      },
    );

    app.post(
      '/api/sessions/:id/prompts/:admission_id/resolve',
      {
        schema: {
          summary: 'End a prompt of unknown fate as interrupted',
          params: PromptParams,
          body: Type.Object({ outcome: Type.Literal('interrupted') }, { additionalProperties: false }),
          response: { 200: Type.Object({ admission: Admission }), ...refusals(400, 404, 409, 423, 503) },
        },
      },
      async (request) => {
        await sessions.get(request.params.id);
        return { admission: toAdmissionView(await stop.resolve(request.params.id, request.params.admission_id)) };
      },
    );

    app.post(
      '/api/sessions/:id/interrupt',
      {
        config: { relieves: true },
        schema: {
          summary: 'Stop the running turn; what it produced is kept',
          params: SessionParams,
          body: Type.Object(
            { generation: Type.Optional(Type.Integer({ minimum: 0 })), clear_queue: Type.Optional(Type.Boolean()) },
            { additionalProperties: false },
          ),
          response: {
            200: Type.Object({
              status: Type.Enum(['interrupted', 'idle']),
              generation: Type.Integer(),
            }),
            ...refusals(400, 404, 409, 423, 503),
          },
        },
      },
      async (request) => {
        const { generation = null, clear_queue: clearQueue = false } = request.body;
        return stop.interrupt(request.params.id, { generation, clearQueue });
      },
    );

    app.get(
      '/api/sessions/:id/requests',
      {
        schema: {
          summary: 'Open questions of the agent',
          params: SessionParams,
          response: {
            200: Type.Object({ requests: Type.Array(Type.Object({}, { additionalProperties: true })) }),
            ...refusals(400, 404, 423, 503),
          },
        },
      },
      async (request) => {
        await sessions.assertStreamable(request.params.id); // Only the process that runs it knows them.
        return { requests: [...(parts.registry.peek(request.params.id)?.requests.values() ?? [])] };
      },
    );

    app.post(
      '/api/sessions/:id/requests/:request_id',
      {
        config: { relieves: true },
        schema: {
          summary: 'Answer an open question; the first valid answer wins',
          params: Type.Object({
            ...SessionParams.properties,
            request_id: Type.String({ minLength: 1, maxLength: 128 }),
          }),
          body: Type.Union([
            Type.Object({ choice: Type.Enum(['once', 'session', 'always', 'deny']) }, { additionalProperties: false }),
            Type.Object(
              { answers: Type.Record(Type.String(), Nullable(Type.String())) },
              { additionalProperties: false },
            ),
            Type.Object({ value: Type.String() }, { additionalProperties: false }),
          ]),
          response: {
            200: Type.Object({ status: Type.Enum(['ok', 'expired']) }),
            ...refusals(400, 404, 422, 423, 503),
          },
        },
      },
      async (request) => {
        await sessions.assertStreamable(request.params.id);
        const live = parts.registry.peek(request.params.id);
        const status = parts.requests.reply(live, request.params.request_id, request.body as Answer);
        if (status === 'invalid') throw new AppError('unacceptable', 'This answer does not fit the question.');
        return { status };
      },
    );
  };
