/** What a request must pass before its body is looked at: no new work while there is too much, nor without room (LI). */
import type { FastifyInstance } from 'fastify';
import { AppError } from '../server/errors.ts';
import type { Intake } from '../server/limits/intake.ts';
import type { Load } from '../server/limits/load.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Stores what its caller sends or copies, and wants room on the disk for it. */
    fills?: boolean;
    /** Ends work or lets it go on, so that it is let through under any load. */
    relieves?: boolean;
  }
  interface FastifyRequest {
    /** It is no longer work, but a stream. Harmless when said twice. */
    leaveLoad(): void;
  }
}

const READS = new Set(['GET', 'HEAD']);

/** Must be registered before what looks at credentials: that is work, too. */
export function shedLoad(app: FastifyInstance, load: Load): void {
  app.addHook('onRequest', async ({ method, routeOptions: { config } }) => {
    const isNew = !READS.has(method) || config.stream === true;
    if (isNew && !config.relieves && load.isTooHigh()) throw new AppError('overloaded');
  });
  // Only now: who sends slowly keeps nobody busy. A stream has a limit of its own.
  app.decorateRequest('leaveLoad', () => {});
  app.addHook('preHandler', async (request, reply) => {
    if (request.routeOptions.config.stream || reply.raw.destroyed) return;
    request.leaveLoad = load.enter();
    reply.raw.once('close', request.leaveLoad);
  });
}

/** Must be registered behind what looks at credentials: how full the disk is concerns nobody else. */
export function wantRoom(app: FastifyInstance, intake: Pick<Intake, 'room'>): void {
  app.addHook('onRequest', async ({ routeOptions }) => {
    if (routeOptions.config.fills) await intake.room();
  });
}
