/** Prompts of a session: submit in three forms, look up, cancel, resolve; interrupt; the agent's open questions. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import type { Stop } from '../server/authority/stop.ts';
import { AppError } from '../server/errors.ts';
import type { Attach } from '../server/live/attach.ts';
import type { LiveRegistry } from '../server/live/registry.ts';
import type { Reply as Answer, Requests } from '../server/live/requests.ts';
import type { SubscriberLimits } from '../server/live/subscriber.ts';
import { type AdmissionView, toAdmissionView } from '../server/sessions/admission-view.ts';
import type { Prompts } from '../server/sessions/prompts.ts';
import type { Sessions } from '../server/sessions/sessions.ts';
import { endOnError, openSubscriber } from './events.ts';
import {
  Admission,
  EventStream,
  Limit,
  Message,
  Nullable,
  PromptParams,
  RequestKey,
  refusals,
  SessionParams,
} from './schemas.ts';

export interface PromptRoutesParts {
  prompts: Prompts;
  sessions: Sessions;
  stop: Stop;
  attach: Attach;
  registry: LiveRegistry;
  requests: Requests;
  limits: SubscriberLimits;
}

const Accepted = Type.Object({
  admission: Admission,
  run_id: Type.String(),
  cursor: Type.String(),
  reason: Type.Optional(Type.String()),
});
const Ended = Type.Object({ admission: Admission, message: Nullable(Message) });
const AnswerOfRun = {
  description: 'The end of the run (wait=1), or its events (Accept: text/event-stream).',
  content: { 'application/json': { schema: Ended }, ...EventStream.content },
};

const accepted = (admission: AdmissionView) => ({
  admission,
  run_id: admission.run_id,
  cursor: `${admission.run_id}:0`,
});

export const promptRoutes =
  (parts: PromptRoutesParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { prompts, sessions, stop } = parts;

    app.post(
      '/api/sessions/:id/prompts',
      {
        schema: {
          summary:
            'Submit a prompt: 202 at once, its events with Accept: text/event-stream, or its answer with ?wait=1',
          params: SessionParams,
          querystring: Type.Object({ wait: Type.Enum(['0', '1'], { default: '0' }) }),
          headers: Type.Object({ 'idempotency-key': Type.Optional(RequestKey), accept: Type.Optional(Type.String()) }),
          body: Type.Object(
            {
              text: Type.String(),
              attachments: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
              mode: Type.Optional(Type.Enum(['queue', 'steer', 'interrupt', 'reject'])),
              request_id: Type.Optional(RequestKey),
            },
            { additionalProperties: false },
          ),
          response: { 200: AnswerOfRun, 202: Accepted, ...refusals(400, 404, 409, 413, 422, 423, 429, 503) },
        },
      },
      async (request, reply) => {
        const { text, attachments = [], mode = 'queue', request_id } = request.body;
        const key = request.headers['idempotency-key'];
        if (key !== undefined && request_id !== undefined && key !== request_id) {
          throw new AppError('bad_request', 'Idempotency-Key and request_id are both given and differ.');
        }
        const sessionId = request.params.id;
        const requestId = request_id ?? key ?? null;
        const admission = await prompts.submit({ sessionId, text, attachments, mode, requestId, principalId: 'owner' });
        const waits = request.query.wait === '1';
        const streams = !waits && request.headers.accept?.includes('text/event-stream');
        if (waits || streams) await prompts.assertFollowable(admission);
        if (waits) return waitForEnd(admission, reply);
        if (streams) {
          await streamRun(admission, reply);
          return reply;
        }
        return reply.code(202).send(accepted(admission));
      },
    );

    async function waitForEnd(admission: AdmissionView, reply: FastifyReply) {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      if (reply.raw.destroyed) gone.abort();
      const waited = await prompts.waitForEnd(admission.session_id, admission.admission_id, gone.signal);
      if (waited.kind === 'pending') {
        return reply.code(202).send({ ...accepted(waited.admission), reason: waited.reason });
      }
      const json = `{"admission":${JSON.stringify(waited.admission)},"message":${waited.message ?? 'null'}}\n`;
      return reply
        .code(200)
        .type('application/json; charset=utf-8')
        .send(json as never);
    }

    async function streamRun(admission: AdmissionView, reply: FastifyReply): Promise<void> {
      const { session_id: sessionId, run_id: runId, admission_id: admissionId } = admission;
      const subscriber = openSubscriber(reply, parts.registry, parts.limits, 'session');
      const completion = () => prompts.completion(sessionId, admissionId);
      await endOnError(app.log, subscriber, () =>
        parts.attach({ sessionId, subscriber, cursor: null, only: runId, completion }),
      );
    }

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
        schema: {
          summary: 'Cancel a waiting prompt',
          params: PromptParams,
          body: Type.Optional(Type.Object({}, { additionalProperties: false })),
          response: { 200: Type.Object({ admission: Admission }), ...refusals(400, 404, 409, 503) },
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
          response: { 200: Type.Object({ admission: Admission }), ...refusals(400, 404, 409, 503) },
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
            ...refusals(400, 404, 503),
          },
        },
      },
      async (request) => {
        await sessions.get(request.params.id);
        return { requests: [...(parts.registry.peek(request.params.id)?.requests.values() ?? [])] };
      },
    );

    app.post(
      '/api/sessions/:id/requests/:request_id',
      {
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
            ...refusals(400, 404, 422, 503),
          },
        },
      },
      async (request) => {
        await sessions.get(request.params.id);
        const live = parts.registry.peek(request.params.id);
        const status = parts.requests.reply(live, request.params.request_id, request.body as Answer);
        if (status === 'invalid') throw new AppError('unacceptable', 'This answer does not fit the question.');
        return { status };
      },
    );
  };
