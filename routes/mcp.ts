/** /api/mcp: the MCP servers of the configuration, their state and their tools. Waits for none of them. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { McpServers } from '../server/mcp/mcp-servers.ts';

export const mcpRoutes =
  (mcp: Pick<McpServers, 'view'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/mcp',
      {
        schema: {
          summary: 'MCP servers, and the tools that they give to agents',
          response: {
            200: Type.Object({
              servers: Type.Array(
                Type.Object({
                  name: Type.String(),
                  kind: Type.Enum(['stdio', 'http']),
                  status: Type.Enum(['idle', 'connecting', 'ready', 'unavailable']),
                  error: Type.Optional(Type.String()),
                  tools: Type.Array(
                    Type.Object({ name: Type.String(), own_name: Type.String(), description: Type.String() }),
                  ),
                  left_out: Type.Array(Type.Object({ name: Type.String(), reason: Type.String() })),
                }),
              ),
            }),
          },
        },
      },
      async () => ({ servers: mcp.view() }),
    );
  };
