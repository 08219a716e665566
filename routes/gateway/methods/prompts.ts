/** Methods on turns: submit, interrupt, and what is to be said to a running agent. */
import Type, { type Static } from 'typebox';
import type { Message, Mode } from '../../../server/core/terms.ts';
import { AppError } from '../../../server/errors.ts';
import type { GatewaySession } from '../../../server/live/gateway-sessions.ts';
import type { AdmissionView } from '../../../server/sessions/admission-view.ts';
import type { PromptPlace, Resent } from '../../../server/sessions/edits.ts';
import { RpcError } from '../frames.ts';
import { type Method, method } from '../method.ts';
import { type GatewayMethodParts, RuntimeId } from './parts.ts';

const Said = Type.Object({
  session_id: RuntimeId,
  text: Type.String(),
  request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
});

const Place = Type.String({ minLength: 1, maxLength: 200 });
/** Edit and send again: from which prompt on everything is taken back for this one, in the same step. */
const Truncation = {
  truncate_before_message_id: Type.Optional(Place),
  truncate_before_row_id: Type.Optional(Place),
  truncate_before_user_ordinal: Type.Optional(Type.Integer({ minimum: 0 })),
  confirm_truncate: Type.Optional(Type.Boolean()),
  confirm_empty_truncate: Type.Optional(Type.Boolean()),
};
type Truncating = Static<Type.TObject<typeof Truncation>>;
const TRUNCATIONS = ['truncate_before_message_id', 'truncate_before_row_id', 'truncate_before_user_ordinal'] as const;

export function promptMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, prompts, stop, intake } = parts;

  /** Says something to the turn that runs. Accepted it is never lost: what comes too late runs as a prompt of its own. */
  const say = (mode: 'steer' | 'interrupt', status: string) =>
    method(Said, async ({ session_id, text, request_id = null }, { key }) => {
      const { sessionId, live: runtime } = live.get(session_id);
      if (text.trim() === '') throw new AppError('empty_prompt');
      // Nothing runs that it could be said to: nothing is stored.
      if (!runtime.run) return { status: 'rejected', text };
      await parts.assertOwn(sessionId);
      intake.work();
      await intake.prompt({ key, sessionId, requestId: request_id });
      const submission = { sessionId, text, attachments: [], mode, requestId: request_id, principalId: 'owner' };
      const admission = await prompts.submit(submission);
      return { status, text, run_id: admission.run_id, admission };
    });

  /** The prompt in whose place this one comes; null for one that comes at the end. */
  async function placeOf(params: Truncating, session: GatewaySession): Promise<PromptPlace | null> {
    const given = TRUNCATIONS.filter((name) => params[name] !== undefined);
    if (given.length === 0) return null;
    if (given.length > 1) throw new RpcError(4004, `Give one of ${TRUNCATIONS.join(', ')}.`);
    if (!params.confirm_truncate) throw new RpcError(4028, 'What is taken back must be confirmed: confirm_truncate.');
    const { truncate_before_user_ordinal: ordinal, truncate_before_row_id, truncate_before_message_id } = params;
    const place =
      ordinal === undefined ? { message: (truncate_before_message_id ?? truncate_before_row_id)! } : { ordinal };
    const [first] = session.draft ? [] : await promptsOf(session.sessionId);
    const isFirst = 'ordinal' in place ? place.ordinal === 0 : place.message === first;
    if (isFirst && !params.confirm_empty_truncate) {
      throw new RpcError(4029, 'This takes back everything: confirm_empty_truncate says that it is meant.');
    }
    return place;
  }

  /** Admits in the place of another prompt. A repeat is told its receipt, although that prompt is gone by then. */
  async function resend(place: PromptPlace, session: GatewaySession, submission: Resent): Promise<AdmissionView> {
    try {
      return await prompts.receipt(await parts.edits.resend(place, submission));
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unknown_message') throw error;
      const { length } = await promptsOf(session.sessionId);
      throw new RpcError(4018, 'This prompt is not there any more.', { code: error.code, user_turn_count: length });
    }
  }

  /** Ids of the prompts of a session, oldest first. */
  async function promptsOf(sessionId: string): Promise<string[]> {
    const { rows } = await parts.sessions.messages(sessionId, { limit: 100_000 });
    const messages = JSON.parse(`[${rows.toString()}]`) as Message[];
    return messages.filter(({ role }) => role === 'user').map(({ id }) => id);
  }

  return {
    'prompt.submit': method(
      Type.Object({
        session_id: RuntimeId,
        text: Type.String(),
        attachments: Type.Array(Type.String(), { maxItems: 100, default: [] }),
        mode: Type.Optional(Type.Enum(['queue', 'steer', 'interrupt', 'reject'])),
        queued: Type.Optional(Type.Boolean()),
        request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
        ...Truncation,
      }),
      async (params, caller) => {
        const { session_id, text, attachments, mode, queued, request_id = null } = params;
        const session = live.get(session_id);
        const { sessionId } = session;
        intake.work();
        await intake.prompt({ key: caller.key, sessionId, requestId: request_id });
        const submission = { sessionId, text, attachments, requestId: request_id, principalId: 'owner' };
        const isReplacing = TRUNCATIONS.some((name) => params[name] !== undefined);
        const asked = queued || isReplacing ? 'queue' : (mode ?? parts.busyMode());
        const admit = async (): Promise<AdmissionView> => {
          await parts.assertOwn(sessionId);
          const place = await placeOf(params, session);
          const { draft } = session;
          const accepted = place
            ? await resend(place, session, submission)
            : await prompts.submit({ ...submission, mode: asked, ...(draft && { draft }) });
          session.draft = null;
          return accepted;
        };
        const admission = await live.keptDuring(session, () => live.inTurn(session, admit));
        // Closed by another client meanwhile: the prompt is accepted all the same.
        if (live.bySession(sessionId) === session) live.join(session, caller);
        const isBehind = (admission.position ?? 0) > 0;
        const now = isBehind ? admission : await started(sessionId, admission.admission_id);
        return {
          status: statusOf(now, asked),
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

    'session.steer': say('steer', 'queued'),
    'session.redirect': say('interrupt', 'redirected'),
  };

  /** Behind nothing: it has begun when its sender hears of it, unless something holds the queue up. */
  async function started(sessionId: string, admissionId: string) {
    await parts.claimed(sessionId);
    return prompts.get(sessionId, admissionId);
  }
}

/** What became of an accepted prompt, in one word. */
function statusOf({ status }: AdmissionView, mode: Mode): 'streaming' | 'queued' | 'steered' | 'redirected' {
  if (status !== 'queued') return 'streaming';
  return mode === 'steer' ? 'steered' : mode === 'interrupt' ? 'redirected' : 'queued';
}
