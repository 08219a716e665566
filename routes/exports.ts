/** Sessions as files: export in three formats, and import of what was exported. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { DOCUMENT_FORMAT, DOCUMENT_VERSION } from '../server/core/session-document.ts';
import type { Export } from '../server/sessions/export.ts';
import type { Import, ImportedDocument } from '../server/sessions/import.ts';
import { Nullable, refusals, SessionParams, TurnError } from './schemas.ts';
import { SessionBody } from './sessions.ts';

export interface ExportRoutesParts {
  exportSession: Export;
  importSession: Import;
}

const optional = Type.Optional;
/** Epoch seconds up to the end of the year 9999. */
const Time = Type.Number({ minimum: 0, maximum: 253_402_300_799 });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Counts = Type.Object({
  input_tokens: Count,
  output_tokens: Count,
  cached_tokens: optional(Count),
  reasoning_tokens: optional(Count),
  cost_usd: optional(Type.Number({ minimum: 0 })),
  context_used: optional(Count),
  context_length: optional(Count),
  context_estimated: optional(Type.Boolean()),
});
/** Rows of other programs may have more fields, and calls of another shape. */
const DocumentMessage = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 200 }),
    role: Type.Enum(['user', 'assistant', 'tool', 'system']),
    content: Type.String(),
    timestamp: Time,
    run_id: optional(Type.String({ maxLength: 200 })),
    status: optional(Type.Enum(['complete', 'partial', 'interrupted', 'error'])),
    tool_calls: optional(
      Type.Array(
        Type.Object(
          { function: optional(Type.Object({ name: Type.String() }, { additionalProperties: true })) },
          { additionalProperties: true },
        ),
      ),
    ),
    tool_call_id: optional(Type.String()),
    name: optional(Type.String()),
    is_error: optional(Type.Boolean()),
    duration_s: optional(Type.Number()),
    reasoning: optional(Type.String()),
    attachments: optional(Type.Array(Type.String())),
    model: optional(Type.String()),
    usage: optional(Type.Partial(Counts)),
    recovered: optional(Type.Boolean()),
    error: optional(TurnError),
  },
  { additionalProperties: true },
);
const SessionDocument = Type.Object(
  {
    format: Type.Literal(DOCUMENT_FORMAT),
    version: Type.Literal(DOCUMENT_VERSION),
    session: Type.Object(
      {
        title: optional(Nullable(Type.String({ maxLength: 500 }))),
        title_source: optional(Nullable(Type.Enum(['user', 'llm', 'derived']))),
        model: optional(Nullable(Type.String({ maxLength: 500 }))),
        created_at: optional(Time),
        usage: optional(Counts),
      },
      { additionalProperties: false },
    ),
    messages: Type.Array(DocumentMessage, { maxItems: 100_000 }),
  },
  { additionalProperties: false, description: 'A session as GET …/export gives it.' },
);

const Text = { schema: Type.String() };

export const exportRoutes =
  ({ exportSession, importSession }: ExportRoutesParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/sessions/:id/export',
      {
        schema: {
          summary: 'Download a session: as JSON to be imported again, as Markdown, or as a page that stands alone',
          params: SessionParams,
          querystring: Type.Object({ format: Type.Enum(['json', 'md', 'html'], { default: 'json' }) }),
          response: {
            200: {
              description: 'The file.',
              content: { 'application/json': { schema: SessionDocument }, 'text/markdown': Text, 'text/html': Text },
            },
            ...refusals(400, 404, 503),
          },
        },
      },
      async (request, reply) => {
        const file = await exportSession(request.params.id, request.query.format);
        if (file.policy !== null) reply.header('content-security-policy', file.policy);
        reply.header('content-disposition', file.disposition).header('cache-control', 'no-store');
        // The typed reply wants an object; a text goes out as it is.
        return reply.type(file.contentType).send(file.text as never);
      },
    );

    app.post(
      '/api/sessions/import',
      {
        config: { fills: true },
        schema: {
          summary: 'Make a session of an exported one',
          body: SessionDocument,
          response: { 201: SessionBody, ...refusals(400, 413, 422, 503, 507) },
        },
      },
      async (request, reply) => {
        const session = await importSession(request.body as ImportedDocument);
        return reply.code(201).send({ session });
      },
    );
  };
