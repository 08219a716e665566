/** /api/models: what a session can be given. Answers from a cache; never waits for a provider. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Catalog } from '../server/runners/catalog.ts';

export const modelRoutes =
  (catalog: Pick<Catalog, 'list'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/models',
      {
        schema: {
          summary: 'Models that a session can be given',
          response: {
            200: Type.Object({
              default: Type.String(),
              models: Type.Array(
                Type.Object({
                  id: Type.String(),
                  label: Type.String(),
                  provider: Type.String(),
                  source: Type.Enum(['builtin', 'configured', 'discovered', 'path']),
                  context_length: Type.Optional(Type.Integer()),
                  modes: Type.Optional(Type.Array(Type.Object({ id: Type.String(), label: Type.String() }))),
                }),
              ),
              providers: Type.Array(
                Type.Object({
                  name: Type.String(),
                  status: Type.Enum(['ok', 'unreachable', 'loading', 'unauthorized']),
                  error: Type.Optional(Type.String()),
                }),
              ),
            }),
          },
        },
      },
      async () => catalog.list(),
    );
  };
