/** /api/search: full text over what people and agents said. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Search } from '../server/sessions/search.ts';
import { Limit, Nullable, refusals } from './schemas.ts';

export const searchRoutes =
  (search: Search): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/search',
      {
        schema: {
          summary: 'Search the text of all conversations, best first',
          querystring: Type.Object({ q: Type.String({ maxLength: 1000 }), limit: Limit(20) }),
          response: {
            200: Type.Object({
              hits: Type.Array(
                Type.Object({
                  session_id: Type.String(),
                  title: Nullable(Type.String()),
                  message_id: Type.String(),
                  role: Type.String(),
                  snippet: Type.String(),
                  timestamp: Type.Number(),
                }),
              ),
            }),
            ...refusals(400, 503),
          },
        },
      },
      async (request) => ({ hits: await search(request.query.q, request.query.limit) }),
    );
  };
