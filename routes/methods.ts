/** 405 for an address of the interface with another method, with `allow` naming those that it takes (HT1). */
import type { FastifyInstance } from 'fastify';
import { AppError } from '../server/errors.ts';

/**
 * Remembers all routes that are registered after this call.
 * @returns registers the refusals of all other methods at documented addresses; to be called after the last route
 */
export function watchMethods(app: FastifyInstance): () => void {
  const taken = new Map<string, Set<string>>();
  const documented = new Set<string>();
  let watching = true;
  app.addHook('onRoute', ({ url, method, schema }) => {
    if (!watching) return;
    const methods = taken.get(url) ?? new Set();
    taken.set(url, methods);
    for (const one of [method].flat()) methods.add(one.toUpperCase());
    if (schema && !schema.hide) documented.add(url);
  });
  return () => {
    watching = false;
    for (const url of documented) {
      const methods = taken.get(url)!;
      const allow = [...methods].sort().join(', ');
      app.route({
        method: app.supportedMethods.filter((method) => !methods.has(method)),
        url,
        exposeHeadRoute: false,
        schema: { hide: true },
        // Before the body is looked at: what it holds does not matter.
        onRequest: async (_request, reply) => {
          reply.header('allow', allow);
          throw new AppError('method_not_allowed', `This address does not take this method, but ${allow}.`);
        },
        handler: () => {},
      });
    }
  };
}
