/** Methods on questions of an agent: what is open, that it was seen, and the answers. The first valid answer wins. */
import Type from 'typebox';
import { AppError } from '../../../server/errors.ts';
import type { GatewaySessions } from '../../../server/live/gateway-sessions.ts';
import type { LiveSession } from '../../../server/live/live-session.ts';
import type { Reply, Requests } from '../../../server/live/requests.ts';
import { RpcError } from '../frames.ts';
import { type Method, method } from '../method.ts';
import { type GatewayMethodParts, RuntimeId } from './parts.ts';

const RequestId = Type.String({ minLength: 1, maxLength: 128 });
const CHOICES = ['once', 'session', 'always', 'deny'] as const;

/** What a client gave for an answer, or null when it is of no such shape. Without anything it is no to all questions. */
function replyOf(result: unknown): Reply | null {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return null;
  if (Object.keys(result).length === 0) return { answers: {} };
  const { choice, answers, value } = result as Record<string, unknown>;
  if (typeof choice === 'string') return { choice } as Reply;
  if (typeof value === 'string') return { value };
  if (typeof answers !== 'object' || answers === null || Array.isArray(answers)) return null;
  const isTold = Object.values(answers).every((one) => one === null || typeof one === 'string');
  return isTold ? ({ answers } as Reply) : null;
}

const approvalsOf = (session: LiveSession) =>
  [...session.requests.values()].filter((request) => request.kind === 'approval');

/** The live session that asks this: whoever answers may know it by an old runtime id, or by none. */
const askerOf = (live: GatewaySessions, requestId: string): LiveSession | null =>
  live.list().find((session) => session.live.requests.has(requestId))?.live ?? null;

/** Gives the answer of a client to the question of this id; `all` of an approval goes to every other open one as well. */
export function answerWith({ live, requests }: Pick<GatewayMethodParts, 'live' | 'requests'>) {
  return (requestId: string, result: unknown): ReturnType<Requests['reply']> => {
    const asker = askerOf(live, requestId);
    if (!asker) return 'expired';
    const reply = replyOf(result);
    if (!reply) return 'invalid';
    const said = requests.reply(asker, requestId, reply);
    const isForAll = said === 'ok' && 'choice' in reply && (result as { all?: unknown }).all === true;
    if (isForAll) for (const { id } of approvalsOf(asker)) requests.reply(asker, id, reply);
    return said;
  };
}

export function requestMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, requests } = parts;
  const answer = answerWith(parts);

  return {
    'approval.pending': method(Type.Object({ session_id: RuntimeId }), async ({ session_id }) => {
      const session = live.get(session_id);
      const approvals = approvalsOf(session.live).map(({ id, params, created_at, expires_at }) => ({
        request_id: id,
        created_at,
        expires_at,
        ...params,
      }));
      return { approvals };
    }),

    'approval.received': method(
      Type.Object({ session_id: RuntimeId, request_id: RequestId }),
      async ({ session_id, request_id }) => {
        const asker = live.find(session_id)?.live ?? askerOf(live, request_id);
        if (!asker) throw new AppError('runtime_not_live');
        return { acknowledged: requests.seen(asker, request_id) };
      },
    ),

    'approval.respond': method(
      Type.Object({
        session_id: RuntimeId,
        choice: Type.Enum(CHOICES, { default: 'deny' }),
        all: Type.Optional(Type.Boolean()),
        request_id: Type.Optional(RequestId),
      }),
      async ({ session_id, choice, all = false, request_id }) => {
        const asker =
          live.find(session_id)?.live ??
          (request_id ? askerOf(live, request_id) : null) ??
          live.bySession(session_id)?.live;
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
      async ({ request_id, question_id, answer: said }) => {
        const asker = askerOf(live, request_id);
        if (!asker) return { status: 'expired' };
        const locked = requests.lock(asker, request_id, question_id, said);
        if (locked === 'invalid') throw new RpcError(4002, `There is no question "${question_id}" in this request.`);
        return locked === 'expired' ? { status: 'expired' } : { status: 'ok', remaining: locked.remaining };
      },
    ),

    'request.answer': method(
      Type.Object({
        id: RequestId,
        result: Type.Object(
          {
            choice: Type.Optional(Type.Enum(CHOICES)),
            all: Type.Optional(Type.Boolean()),
            answers: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]))),
            value: Type.Optional(Type.String()),
          },
          { additionalProperties: false },
        ),
      }),
      async ({ id, result }) => {
        const said = answer(id, result);
        if (said === 'invalid') throw new RpcError(-32602, 'This answer does not fit the question.');
        return { status: said };
      },
    ),
  };
}
