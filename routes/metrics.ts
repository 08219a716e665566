/** /metrics: what an operator watches, for Prometheus. Not public. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Metrics } from '../server/metrics/metrics.ts';

export const metricsRoutes =
  (metrics: Pick<Metrics, 'read'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/metrics',
      {
        schema: {
          summary: 'Measures of this server in the text form of Prometheus',
          response: { 200: { content: { 'text/plain': { schema: Type.String() } } } },
        },
      },
      async (_request, reply) => {
        const { type, text } = await metrics.read();
        return reply.type(type).send(text);
      },
    );
  };
