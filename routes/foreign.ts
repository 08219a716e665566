/** What would write into a session of another program is refused before its own route sees it. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isSessionId } from '../server/core/ids.ts';

export interface ForeignGuardParts {
  /** Throws the refusal; null where no home of another program is configured, and nothing is looked at. */
  assertOwn: ((sessionId: string) => Promise<void>) | null;
}

/** Routes of one session that write nothing there: a fork is a copy in our own home. */
const READS = /\/fork$/;

export function guardForeignSessions(app: FastifyInstance, { assertOwn }: ForeignGuardParts): void {
  if (!assertOwn) return;
  app.addHook('preHandler', async (request: FastifyRequest) => {
    if (request.method === 'GET' || request.method === 'HEAD') return;
    const { id } = (request.params ?? {}) as { id?: unknown };
    const route = request.routeOptions.url ?? '';
    if (typeof id !== 'string' || !isSessionId(id) || !route.includes('/sessions/:id') || READS.test(route)) return;
    await assertOwn(id);
  });
}
