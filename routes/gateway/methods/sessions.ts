/** Methods on sessions: lists, history, fields, close, delete. */
import Type from 'typebox';
import { isSessionId } from '../../../server/core/ids.ts';
import { AppError } from '../../../server/errors.ts';
import type { GatewaySession } from '../../../server/live/gateway-sessions.ts';
import type { SessionView } from '../../../server/sessions/view.ts';
import { RpcError } from '../frames.ts';
import { type Method, method } from '../method.ts';
import { activeRowOf, infoOf, messagesOf, statusOf, usageOf } from '../views.ts';
import { type GatewayMethodParts, RuntimeId, StoredId } from './parts.ts';

const OneSession = Type.Object({ session_id: RuntimeId });

/** Rows of a whole transcript. */
const ALL = 100_000;

export function sessionMethods(parts: GatewayMethodParts): Record<string, Method> {
  const { live, sessions, edits, version } = parts;

  /** What is stored of a live session; null for a draft. */
  const storedOf = async (session: GatewaySession): Promise<SessionView | null> =>
    session.draft === null ? sessions.get(session.sessionId) : null;

  /** Changes fields of a session, stored or not yet. */
  async function change(session: GatewaySession, fields: { title?: string | null; workspace?: string | null }) {
    return live.inTurn(session, async () => {
      if (session.draft !== null) {
        session.draft = await parts.draftOf({ ...session.draft, ...fields });
        return null;
      }
      await parts.assertOwn(session.sessionId);
      return sessions.patch(session.sessionId, fields, null);
    });
  }

  /** A session by its runtime id, else by its stored id, else by its title. */
  async function anySession(name: string): Promise<string> {
    const running = live.list().find((one) => one.runtimeId === name || one.sessionId === name);
    if (running) {
      if (running.draft)
        throw new AppError('session_not_found', 'This session has no prompt yet: nothing is stored of it.');
      return running.sessionId;
    }
    if (isSessionId(name)) {
      const found = await sessions.get(name).catch((error) => {
        if (error instanceof AppError && error.code === 'session_not_found') return null;
        throw error;
      });
      if (found) return name;
    }
    const [titled] = await parts.titled(name, { archived: 'yes', limit: 1 });
    if (!titled) throw new AppError('session_not_found');
    return titled.session_id;
  }

  const listRow = (one: SessionView) => ({
    id: one.session_id,
    title: one.title,
    started_at: one.created_at,
    last_active: one.last_message_at ?? one.updated_at,
    message_count: one.message_count,
    source: one.source,
    model: one.model,
    cwd: one.workspace,
    pinned: one.pinned,
    archived: one.archived,
    status: one.status,
    ...(live.bySession(one.session_id) && { live_session_id: live.bySession(one.session_id)?.runtimeId }),
  });

  const newest = async (limit: number): Promise<SessionView[]> => {
    const query = { limit, cursor: null, archived: 'no', q: null, project_id: null, source: null } as const;
    return (await sessions.list(query)).sessions;
  };

  return {
    'session.active_list': method(
      Type.Object({ current_session_id: Type.Optional(RuntimeId) }),
      async ({ current_session_id }) => {
        const rows = await Promise.all(
          live.list().map(async (session) => {
            const stored = await storedOf(session).catch((error) => {
              if (error instanceof AppError && error.code === 'session_not_found') return null;
              throw error;
            });
            return activeRowOf(session, stored, current_session_id);
          }),
        );
        return { sessions: rows };
      },
    ),

    'session.list': method(
      Type.Object({
        title: Type.Optional(Type.String({ maxLength: 500 })),
        limit: Type.Integer({ minimum: 1, maximum: 100_000, default: 200 }),
      }),
      async ({ title, limit }) => {
        const found = await (title === undefined ? newest(limit) : parts.titled(title, { archived: 'no', limit }));
        return { sessions: found.map(listRow) };
      },
    ),

    'session.most_recent': method(Type.Object({}), async () => {
      const latest = (await newest(200)).reduce<SessionView | null>(
        (best, one) => (best === null || one.updated_at > best.updated_at ? one : best),
        null,
      );
      if (!latest) return { session_id: null };
      const { session_id, title, created_at, source } = latest;
      return { session_id, title, started_at: created_at, source };
    }),

    'session.history': method(OneSession, async ({ session_id }) => {
      const session = live.get(session_id);
      if (session.draft) return { count: 0, messages: [] };
      const { rows } = await sessions.messages(session.sessionId, { limit: ALL });
      const messages = messagesOf(rows.toString());
      return { count: messages.length, messages };
    }),

    'session.title': method(
      Type.Object({ session_id: RuntimeId, title: Type.Optional(Type.String()) }),
      async ({ session_id, title }) => {
        const session = live.get(session_id);
        if (title !== undefined) {
          if (title.trim() === '') throw new RpcError(4021, 'A title is not empty.');
          if (title.length > 500) throw new RpcError(4022, 'A title has at most 500 characters.');
          await change(session, { title });
        }
        const stored = await storedOf(session);
        return {
          title: stored?.title ?? session.draft?.title ?? null,
          session_key: session.sessionId,
          ...(session.draft && { pending: true }),
        };
      },
    ),

    'session.archive': method(
      Type.Object({
        session_id: Type.String({ minLength: 1, maxLength: 500 }),
        archived: Type.Boolean({ default: true }),
      }),
      async ({ session_id, archived }) => {
        const sessionId = await anySession(session_id);
        await parts.assertOwn(sessionId);
        const changed = await sessions.patch(sessionId, { archived }, null);
        return { archived: changed.archived, session_key: sessionId };
      },
    ),

    'session.cwd.set': method(
      Type.Object({ session_id: RuntimeId, cwd: Type.String({ minLength: 1, maxLength: 4096 }) }),
      async ({ session_id, cwd }) => {
        const session = live.get(session_id);
        const stored = await change(session, { workspace: cwd });
        return infoOf(session, stored, version);
      },
    ),

    'session.undo': method(OneSession, async ({ session_id }) => {
      const session = live.get(session_id);
      if (session.draft) throw new RpcError(4004, 'There is nothing to take back yet.');
      await parts.assertOwn(session.sessionId);
      const { revision } = await sessions.get(session.sessionId);
      const { removed } = await edits.rewind(session.sessionId, { turns: 1 }, revision);
      return { removed };
    }),

    'session.compress': method(
      Type.Object({ session_id: RuntimeId, focus_topic: Type.Optional(Type.String({ maxLength: 2000 })) }),
      async ({ session_id, focus_topic }) => {
        const session = live.get(session_id);
        if (session.draft) throw new RpcError(4004, 'There is nothing to compress yet.');
        await parts.assertOwn(session.sessionId);
        const compacted = await parts.compress(session.sessionId, focus_topic?.trim() || null);
        const { session: stored, ...result } =
          compacted === 'pending' ? { status: compacted, session: await sessions.get(session.sessionId) } : compacted;
        return {
          ...result,
          usage: usageOf(stored.usage, stored.model),
          info: infoOf(session, stored, version),
        };
      },
    ),

    'session.usage': method(OneSession, async ({ session_id }) => {
      const stored = await storedOf(live.get(session_id));
      return usageOf(stored?.usage ?? null, stored?.model ?? null);
    }),

    'session.status': method(OneSession, async ({ session_id }) => {
      const session = live.get(session_id);
      const stored = await storedOf(session);
      const title = stored?.title ?? session.draft?.title ?? 'Untitled';
      const status = statusOf(session);
      const count = stored?.message_count ?? 0;
      const waiting = stored?.queue_length ?? 0;
      const queue = waiting === 0 ? '' : `, ${waiting} waiting`;
      return {
        status,
        output: `${title} (${session.sessionId}): ${status}, ${count} ${count === 1 ? 'message' : 'messages'}${queue}`,
      };
    }),

    'session.close': method(OneSession, async ({ session_id }) => {
      const session = live.find(session_id);
      if (!session) return { closed: false };
      await live.end(session, 'closed');
      // Its turn goes on; who closes to delete need not ask twice when it is about to end.
      await parts.turnEnded(session.sessionId);
      return { closed: true };
    }),

    'session.delete': method(Type.Object({ session_id: StoredId }), async ({ session_id }) => {
      if (live.bySession(session_id)) throw new AppError('session_live', 'The session is live. Close it first.');
      await parts.assertOwn(session_id);
      await sessions.remove(session_id, false);
      return { deleted: session_id };
    }),
  };
}
