/** The answer to whoever had a prompt accepted, in three forms: a receipt, the events of its run, or its end (HT7). */
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Standing } from '../server/auth/standing.ts';
import { AppError } from '../server/errors.ts';
import type { Attach } from '../server/live/attach.ts';
import type { AdmissionView } from '../server/sessions/admission-view.ts';
import type { Prompts } from '../server/sessions/prompts.ts';
import { assertRoom, endOnError, openSubscriber, type StreamParts } from './events.ts';
import { Admission, EventStream, Message, Nullable, RequestKey } from './schemas.ts';

export interface RunAnswerParts extends StreamParts {
  prompts: Prompts;
  attach: Attach;
}

/** How a caller wants to hear of its run. */
export type RunForm = 'receipt' | 'events' | 'end';

export const WaitQuery = Type.Object({ wait: Type.Enum(['0', '1'], { default: '0' }) });
export const RunHeaders = Type.Object({
  'idempotency-key': Type.Optional(RequestKey),
  accept: Type.Optional(Type.String()),
});
export const Accepted = Type.Object({
  admission: Admission,
  run_id: Type.String(),
  cursor: Type.String(),
  reason: Type.Optional(Type.String()),
});
const Ended = Type.Object({ admission: Admission, message: Nullable(Message) });
export const AnswerOfRun = {
  description: 'The end of the run (wait=1), or its events (Accept: text/event-stream).',
  content: { 'application/json': { schema: Ended }, ...EventStream.content },
};

interface FormRequest {
  query: { wait: '0' | '1' };
  headers: { accept?: string | undefined };
}

/** @throws AppError too_many_streams: behind the acceptance nobody could be refused any more */
export function formWithRoom(request: FormRequest & Pick<FastifyRequest, 'identity'>, standing: Standing): RunForm {
  const form = formOf(request);
  if (form !== 'receipt') assertRoom(request, standing);
  return form;
}

function formOf(request: FormRequest): RunForm {
  if (request.query.wait === '1') return 'end';
  return request.headers.accept?.includes('text/event-stream') ? 'events' : 'receipt';
}

/** The caller's key for a prompt, which has two names. @throws AppError bad_request when they differ */
export function requestIdOf(key: string | undefined, requestId: string | undefined): string | null {
  if (key !== undefined && requestId !== undefined && key !== requestId) {
    throw new AppError('bad_request', 'Idempotency-Key and request_id are both given and differ.');
  }
  return requestId ?? key ?? null;
}

const accepted = (admission: AdmissionView) => ({
  admission,
  run_id: admission.run_id,
  cursor: `${admission.run_id}:0`,
});

/** @returns what answers for an accepted prompt in the form that its caller asked for */
export function createRunAnswer({ prompts, attach, ...parts }: RunAnswerParts, log: FastifyBaseLogger) {
  async function waitForEnd(admission: AdmissionView, reply: FastifyReply) {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    if (reply.raw.destroyed) gone.abort();
    parts.standing.hold(reply.request.identity!, {
      close: () => reply.raw.destroy(),
      onEnd: (release) => {
        if (reply.raw.destroyed) release('gone');
        else reply.raw.once('close', () => release('gone'));
      },
    });
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
    const subscriber = openSubscriber(reply, parts, 'session');
    const completion = () => prompts.completion(sessionId, admissionId);
    const only = { runId, admissionId };
    await endOnError(log, subscriber, () => attach({ sessionId, subscriber, cursor: null, only, completion }));
  }

  return async (admission: AdmissionView, form: RunForm, reply: FastifyReply): Promise<FastifyReply> => {
    // A stream is no work; how many may be open is said by their share.
    if (form === 'events') reply.request.leaveLoad();
    if (form !== 'receipt') await prompts.assertFollowable(admission);
    if (form === 'end') return waitForEnd(admission, reply);
    if (form === 'receipt') return reply.code(202).send(accepted(admission));
    // Behind the headers of a stream only an event could say so.
    const reason = await prompts.whyWaits(admission);
    if (reason !== null) return reply.code(202).send({ ...accepted(admission), reason });
    await streamRun(admission, reply);
    return reply;
  };
}
