/** /health (public) and /ready. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { AppError } from '../server/errors.ts';
import type { LiveRegistry } from '../server/live/registry.ts';
import { refusals } from './schemas.ts';

export interface HealthParts {
  version: string;
  registry: LiveRegistry;
  isDraining(): boolean;
  /** Fails when the state DB does not answer. */
  probe(): Promise<void>;
  uptimeSeconds(): number;
}

export const healthRoutes =
  ({ version, registry, isDraining, probe, uptimeSeconds }: HealthParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/health',
      {
        config: { public: true, anyHost: true },
        schema: {
          summary: 'Whether the process answers',
          security: [],
          response: {
            200: Type.Object({
              status: Type.Literal('ok'),
              version: Type.String(),
              uptime_seconds: Type.Number(),
              live_sessions: Type.Integer(),
              active_runs: Type.Integer(),
              draining: Type.Boolean(),
            }),
          },
        },
      },
      async () => {
        const counts = registry.counts();
        return {
          status: 'ok' as const,
          version,
          uptime_seconds: Math.round(uptimeSeconds() * 1000) / 1000,
          live_sessions: counts.liveSessions,
          active_runs: counts.activeRuns,
          draining: isDraining(),
        };
      },
    );

    app.get(
      '/ready',
      {
        schema: {
          summary: 'Whether prompts are accepted: not while draining, not without storage',
          response: { 200: Type.Object({ status: Type.Literal('ready') }), ...refusals(503) },
        },
      },
      async () => {
        if (isDraining()) throw new AppError('draining');
        await probe();
        return { status: 'ready' as const };
      },
    );
  };
