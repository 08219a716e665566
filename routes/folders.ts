/** /api/folders: what a workspace can be chosen from. For whoever may make a session with one (HT13). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { ListFolder } from '../server/workspace/folder-choice.ts';
import { Nullable, refusals } from './schemas.ts';

export const folderRoutes =
  (list: ListFolder): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/folders',
      {
        config: { scope: 'prompt' },
        schema: {
          summary: 'A folder of the server, with the sub-folders that can be a workspace',
          querystring: Type.Object({
            path: Type.Optional(
              Type.String({ maxLength: 4096, description: 'Absolute; the home of who runs the server without it.' }),
            ),
          }),
          response: {
            200: Type.Object({
              path: Type.String({ description: 'Absolute, without links.' }),
              parent: Nullable(Type.String()),
              folders: Type.Array(Type.String(), { description: 'Names; those with a dot in front come last.' }),
              more: Type.Boolean({ description: 'There are more than these.' }),
            }),
            ...refusals(400, 403, 422),
          },
        },
      },
      async (request) => list(request.query.path ?? null),
    );
  };
