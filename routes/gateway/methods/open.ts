/** Methods that begin: create, resume, activate, branch. Each attaches its caller and says where the session stands. */
import Type, { type Static } from 'typebox';
import { isSessionId } from '../../../server/core/ids.ts';
import { AppError } from '../../../server/errors.ts';
import type { GatewaySession } from '../../../server/live/gateway-sessions.ts';
import type { SeedRow } from '../../../server/sessions/seed.ts';
import { createSessionLock } from '../../../server/sessions/session-lock.ts';
import { RpcError } from '../frames.ts';
import { type Caller, type Method, method } from '../method.ts';
import { infoOf, messagesOf, snapshotOf } from '../views.ts';
import { Cols, type GatewayMethodParts, RuntimeId } from './parts.ts';

const Text = Type.String({ maxLength: 1_048_576 });
const Seed = Type.Object(
  {
    role: Type.Enum(['user', 'assistant', 'system']),
    content: Type.Optional(Text),
    text: Type.Optional(Text),
  },
  { additionalProperties: false },
);

export function openingMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, enter, intake, sessions, version, epoch } = parts;
  /** Creations with the same key, one after the other. */
  const byKey = createSessionLock();

  /** The session, and the caller attached to it. */
  async function snapshot(session: GatewaySession, caller: Caller, omit: boolean, resumed: boolean) {
    const standing = await enter(session, caller, !omit);
    return snapshotOf(session, standing, { version, epoch, omit, resumed });
  }

  /** The stored id of what is named by it or, failing that, by its exact title. */
  async function storedId(name: string): Promise<string> {
    if (isSessionId(name) && live.bySession(name)) return name;
    if (isSessionId(name)) {
      try {
        return (await sessions.get(name)).session_id;
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'session_not_found') throw error;
      }
    }
    const [found] = await parts.titled(name, { archived: 'yes', limit: 1 });
    const named = found?.session_id ?? live.list().find(({ draft }) => draft?.title === name)?.sessionId;
    if (named === undefined) throw new AppError('session_not_found');
    return named;
  }

  return {
    'session.create': method(
      Type.Object({
        cols: Cols,
        title: Type.Optional(Type.String({ maxLength: 500 })),
        model: Type.Optional(Type.String({ maxLength: 200 })),
        cwd: Type.Optional(Type.String({ maxLength: 4096 })),
        source: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' })),
        messages: Type.Optional(Type.Array(Seed, { maxItems: 10_000 })),
        close_on_disconnect: Type.Optional(Type.Boolean()),
        idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
      }),
      async (params, caller) => {
        const { messages = [], idempotency_key: key = null, close_on_disconnect: closeOnDisconnect = false } = params;
        const create = async (): Promise<GatewaySession> => {
          intake.work();
          const draft = await parts.draftOf({
            title: params.title ?? null,
            model: params.model ?? null,
            workspace: params.cwd ?? null,
            source: params.source ?? 'gateway',
          });
          if (messages.length === 0) return live.create(draft, { key, closeOnDisconnect });
          await intake.room();
          // A conversation that begins with something is a row at once: there is something to lose.
          return live.open(await parts.seed(draft, messages.map(seedRow)), { key, closeOnDisconnect });
        };
        const session =
          key === null ? await create() : await byKey(key, async () => live.byKey(key) ?? (await create()));
        const { session: stored, rows, latestSeq } = await enter(session, caller, true);
        return {
          session_id: session.runtimeId,
          stored_session_id: session.sessionId,
          message_count: stored?.message_count ?? 0,
          messages: messagesOf(rows),
          info: infoOf(session, stored, version),
          latest_seq: latestSeq,
          epoch,
        };
      },
    ),

    'session.resume': method(
      Type.Object({
        session_id: Type.String({ minLength: 1, maxLength: 500 }),
        cols: Cols,
        source: Type.Optional(Type.String({ maxLength: 64 })),
        omit_messages: Type.Optional(Type.Boolean()),
        close_on_disconnect: Type.Optional(Type.Boolean()),
      }),
      async ({ session_id, omit_messages: omit = false, close_on_disconnect }, caller) => {
        const sessionId = await storedId(session_id);
        // A draft has nothing that anybody else could run.
        if (!live.bySession(sessionId)?.draft) await sessions.assertStreamable(sessionId);
        const known = live.bySession(sessionId) !== null;
        const session = await live.open(sessionId, { closeOnDisconnect: close_on_disconnect ?? false });
        return snapshot(session, caller, omit, known);
      },
    ),

    'session.activate': method(
      Type.Object({ session_id: RuntimeId, cols: Cols, omit_messages: Type.Optional(Type.Boolean()) }),
      async ({ session_id, omit_messages: omit = false }, caller) => snapshot(live.get(session_id), caller, omit, true),
    ),

    'session.branch': method(
      Type.Object({
        session_id: RuntimeId,
        name: Type.Optional(Type.String({ maxLength: 500 })),
        at_message: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      }),
      async ({ session_id, name = null, at_message = null }, caller) => {
        const original = live.get(session_id);
        if (original.draft || (await sessions.get(original.sessionId)).message_count === 0) {
          throw new RpcError(4008, 'There is nothing to branch from yet.');
        }
        intake.work();
        await intake.room();
        const copy = await parts.fork(original.sessionId, { atMessage: at_message, title: name });
        const session = await live.open(copy.session_id);
        const standing = await enter(session, caller, true);
        return {
          session_id: session.runtimeId,
          stored_session_id: session.sessionId,
          title: copy.title,
          parent: original.sessionId,
          message_count: standing.session?.message_count ?? 0,
          messages: messagesOf(standing.rows),
          info: infoOf(session, standing.session, version),
          latest_seq: standing.latestSeq,
          epoch,
        };
      },
    ),
  };
}

/** A row that a client gives a new conversation to begin with; ids and times are made where it is stored. */
function seedRow({ role, content, text }: Static<typeof Seed>): SeedRow {
  const said = content ?? text;
  if (said === undefined) throw new RpcError(-32602, 'A message has content or text.');
  return { role, content: said };
}
