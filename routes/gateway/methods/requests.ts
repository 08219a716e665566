/** Methods on questions of an agent: what is open, that it was seen, and the answers. The first valid answer wins. */
import Type from 'typebox';
import { AppError } from '../../../server/errors.ts';
import type { LiveSession } from '../../../server/live/live-session.ts';
import type { Reply } from '../../../server/live/requests.ts';
import { RpcError } from '../frames.ts';
import { type Method, method } from '../method.ts';
import { type GatewayMethodParts, RuntimeId } from './parts.ts';

const RequestId = Type.String({ minLength: 1, maxLength: 128 });
const Choice = Type.Enum(['once', 'session', 'always', 'deny']);

/** What a client gave for an answer, or null when it is of no such shape. */
export function replyOf(result: unknown): Reply | null {
  if (typeof result !== 'object' || result === null) return null;
  const { choice, answers, value } = result as Record<string, unknown>;
  if (typeof choice === 'string') return { choice } as Reply;
  if (typeof value === 'string') return { value };
  if (typeof answers !== 'object' || answers === null || Array.isArray(answers)) return null;
  const isTold = Object.values(answers).every((one) => one === null || typeof one === 'string');
  return isTold ? ({ answers } as Reply) : null;
}

export function requestMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, requests } = parts;

  const approvalsOf = (session: LiveSession) =>
    [...session.requests.values()].filter((request) => request.kind === 'approval');

  /** The live session that asks this, whoever asks about it: its runtime id may be an old one. */
  const askerOf = (requestId: string): LiveSession | null =>
    live.list().find((session) => session.live.requests.has(requestId))?.live ?? null;

  return {
    'approval.pending': method(Type.Object({ session_id: RuntimeId }), async ({ session_id }) => {
      const session = live.get(session_id);
      const approvals = approvalsOf(session.live).map(({ id, params, created_at }) => ({
        request_id: id,
        created_at,
        ...params,
      }));
      return { approvals };
    }),

    'approval.received': method(
      Type.Object({ session_id: RuntimeId, request_id: RequestId }),
      async ({ session_id, request_id }) => {
        const asker = live.list().find((session) => session.runtimeId === session_id)?.live ?? askerOf(request_id);
        if (!asker) throw new AppError('runtime_not_live');
        return { acknowledged: requests.seen(asker, request_id) };
      },
    ),

    'approval.respond': method(
      Type.Object({
        session_id: RuntimeId,
        choice: Type.Enum(['once', 'session', 'always', 'deny'], { default: 'deny' }),
        all: Type.Optional(Type.Boolean()),
        request_id: Type.Optional(RequestId),
      }),
      async ({ session_id, choice, all = false, request_id }) => {
        const byRuntime = live.list().find((session) => session.runtimeId === session_id)?.live ?? null;
        const asker =
          byRuntime ?? (request_id ? askerOf(request_id) : null) ?? live.bySession(session_id)?.live ?? null;
        if (!asker) throw new AppError('runtime_not_live');
        const open = approvalsOf(asker);
        const meant = request_id ? open.filter(({ id }) => id === request_id) : all ? open : open.slice(0, 1);
        let resolved = 0;
        for (const { id } of meant) {
          const said = requests.reply(asker, id, { choice });
          if (said === 'invalid') throw new RpcError(5004, `"${choice}" is not one of the choices of this request.`);
          if (said === 'ok') resolved += 1;
        }
        return { resolved };
      },
    ),

    'clarify.lock': method(
      Type.Object({
        request_id: RequestId,
        question_id: Type.String({ minLength: 1, maxLength: 128 }),
        answer: Type.Union([Type.String(), Type.Null()]),
      }),
      async ({ request_id, question_id, answer }) => {
        const asker = askerOf(request_id);
        if (!asker) return { status: 'expired' };
        const locked = requests.lock(asker, request_id, question_id, answer);
        if (locked === 'invalid') throw new RpcError(4002, `There is no question "${question_id}" in this request.`);
        return locked === 'expired' ? { status: 'expired' } : { status: 'ok', remaining: locked.remaining };
      },
    ),

    'request.answer': method(
      Type.Object({
        id: RequestId,
        result: Type.Object(
          {
            choice: Type.Optional(Choice),
            answers: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]))),
            value: Type.Optional(Type.String()),
          },
          { additionalProperties: false },
        ),
      }),
      async ({ id, result }) => {
        const asker = askerOf(id);
        if (!asker) return { status: 'expired' };
        const reply = replyOf(result);
        const said = reply ? requests.reply(asker, id, reply) : 'invalid';
        if (said === 'invalid') throw new RpcError(-32602, 'This answer does not fit the question.');
        return { status: said };
      },
    ),
  };
}
