/** /api/projects: names and colours for groups of sessions. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Projects } from '../server/sessions/projects.ts';
import { Nullable, refusals } from './schemas.ts';

const Name = Type.String({ minLength: 1, maxLength: 128, pattern: '\\S' });
const Color = Nullable(Type.String({ pattern: '^#[0-9a-fA-F]{6}$' }));
const Project = Type.Object({ project_id: Type.String(), name: Type.String(), color: Nullable(Type.String()) });
const Params = Type.Object({ id: Type.String({ minLength: 1, maxLength: 128 }) });

export const projectRoutes =
  (projects: Projects): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/projects',
      {
        schema: {
          summary: 'List projects',
          response: { 200: Type.Object({ projects: Type.Array(Project) }), ...refusals(503) },
        },
      },
      async () => ({ projects: await projects.list() }),
    );

    app.post(
      '/api/projects',
      {
        schema: {
          summary: 'Create a project',
          body: Type.Object({ name: Name, color: Type.Optional(Color) }, { additionalProperties: false }),
          response: { 201: Type.Object({ project: Project }), ...refusals(400, 503) },
        },
      },
      async (request, reply) => reply.code(201).send({ project: await projects.create(request.body) }),
    );

    app.patch(
      '/api/projects/:id',
      {
        schema: {
          summary: 'Rename or recolour a project',
          params: Params,
          body: Type.Object(
            { name: Type.Optional(Name), color: Type.Optional(Color) },
            { additionalProperties: false },
          ),
          response: { 200: Type.Object({ project: Project }), ...refusals(400, 404, 503) },
        },
      },
      async (request) => ({ project: await projects.patch(request.params.id, request.body) }),
    );

    app.delete(
      '/api/projects/:id',
      {
        schema: {
          summary: 'Delete a project; its sessions stay, un-assigned',
          params: Params,
          body: Type.Optional(Type.Object({}, { additionalProperties: false })),
          response: { 204: Type.Null(), ...refusals(404, 503) },
        },
      },
      async (request, reply) => {
        await projects.remove(request.params.id);
        return reply.code(204).send(null);
      },
    );
  };
