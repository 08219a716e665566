/** /api/openapi.json from the schemas beside the handlers, and /docs to try them where the viewer is installed. */
import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';

/** Registers the collector; before all routes. */
export async function registerOpenApi(app: FastifyInstance, version: string): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Turnkeep', version, description: 'Talk with agents; an accepted prompt is never lost.' },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
    transform: ({ schema, url }) => ({ schema: withOptionalDefaults(schema), url }),
  });
}

/** A query value that has a default may be left out, although whoever reads the checked query always finds it. */
function withOptionalDefaults(schema: FastifySchema): FastifySchema {
  const query = schema?.querystring as { required?: string[]; properties: Record<string, object> } | undefined;
  if (!query?.required) return schema;
  const required = query.required.filter((name) => !('default' in (query.properties[name] ?? {})));
  return { ...schema, querystring: { ...query, required } };
}

/** Serves the document and, if it is installed, the page to try it. */
export async function docsRoutes(app: FastifyInstance): Promise<void> {
  app.get('/api/openapi.json', { schema: { hide: true } }, async () => app.swagger());
  const viewer = await import('@fastify/swagger-ui').catch(() => null);
  if (!viewer) return;
  await app.register(viewer.default, {
    routePrefix: '/docs',
    uiHooks: {
      // The page names its files relative to itself only behind the slash: behind a proxy that strips a prefix too.
      onRequest: async (request, reply) => {
        if (request.url.split('?')[0]?.endsWith('/docs')) return reply.redirect('docs/');
      },
    },
    staticCSP: {
      'default-src': ["'self'"],
      'img-src': ["'self'", 'data:'],
      'script-src': ["'self'"],
      'style-src': ["'self'", "'unsafe-inline'"],
      'frame-ancestors': ["'none'"],
    },
  });
}
