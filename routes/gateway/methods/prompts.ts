/** Methods on turns: submit, interrupt, and what is to be said to a running agent. */
import Type from 'typebox';
import { AppError } from '../../../server/errors.ts';
import { type Method, method } from '../method.ts';
import { type GatewayMethodParts, RuntimeId } from './parts.ts';

const Said = Type.Object({ session_id: RuntimeId, text: Type.String() });

export function promptMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, prompts, stop } = parts;

  /** No agent here can be spoken to in the middle of its turn yet. */
  const unsupported = method(Said, async ({ session_id, text }) => {
    live.get(session_id);
    if (text.trim() === '') throw new AppError('empty_prompt');
    throw new AppError('unsupported_mode', 'The agent of this session cannot be spoken to while it works.');
  });

  return {
    'prompt.submit': method(
      Type.Object({
        session_id: RuntimeId,
        text: Type.String(),
        attachments: Type.Array(Type.String(), { maxItems: 100, default: [] }),
        mode: Type.Enum(['queue', 'steer', 'interrupt', 'reject'], { default: 'queue' }),
        queued: Type.Optional(Type.Boolean()),
        request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
      }),
      async ({ session_id, text, attachments, mode, queued, request_id = null }, caller) => {
        const session = live.get(session_id);
        const { sessionId, draft } = session;
        await parts.assertOwn(sessionId);
        const admission = await prompts.submit({
          sessionId,
          text,
          attachments,
          mode: queued === true ? 'queue' : mode,
          requestId: request_id,
          principalId: 'owner',
          ...(draft && { draft }),
        });
        session.draft = null;
        live.join(session, caller);
        const now = admission.position === 0 ? await started(sessionId, admission.admission_id) : admission;
        return {
          status: now.status === 'queued' ? 'queued' : 'streaming',
          user_row_id: `${admission.run_id}.0`,
          run_id: admission.run_id,
          admission: now,
        };
      },
    ),

    'session.interrupt': method(
      Type.Object({ session_id: RuntimeId, generation: Type.Optional(Type.Integer({ minimum: 0 })) }),
      async ({ session_id, generation = null }) => {
        const { sessionId, draft } = live.get(session_id);
        if (draft) return { status: 'interrupted', was: 'idle', generation: 0 };
        await parts.assertOwn(sessionId);
        const { status, generation: current } = await stop.interrupt(sessionId, { generation, clearQueue: true });
        return { status: 'interrupted', was: status === 'idle' ? 'idle' : 'running', generation: current };
      },
    ),

    'session.steer': unsupported,
    'session.redirect': unsupported,
  };

  /** Behind nothing: it has begun when its sender hears of it, unless something holds the queue up. */
  async function started(sessionId: string, admissionId: string) {
    await parts.claimed(sessionId);
    return prompts.get(sessionId, admissionId);
  }
}
