/** /api/settings: what is chosen for the whole server in place of config.yaml (SE9). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { BUSY_MODES } from '../server/core/server-settings.ts';
import type { SettingsOfServer } from '../server/sessions/server-settings.ts';
import { Nullable, refusals } from './schemas.ts';

const BusyMode = Type.Enum([...BUSY_MODES]);
const ModelName = Type.String({ minLength: 1, maxLength: 300 });

const SettingsBody = Type.Object({
  default_model: Nullable(Type.String()),
  busy_input_mode: Nullable(BusyMode),
  /** What holds where nothing is chosen. */
  configured: Type.Object({ default_model: Type.String(), busy_input_mode: BusyMode }),
});

export const settingsRoutes =
  (settings: Pick<SettingsOfServer, 'view' | 'change'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/api/settings',
      {
        schema: {
          summary: 'What is chosen for the whole server; null is as configured',
          response: { 200: SettingsBody, ...refusals(503) },
        },
      },
      async () => settings.view(),
    );

    app.patch(
      '/api/settings',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'Choose for the whole server; null goes back to the configuration, what is left out stays',
          description:
            'default_model: of sessions that name none. busy_input_mode: what a prompt does that comes while a turn runs and ' +
            'has no mode of its own. Other servers on the home obey within a second.',
          body: Type.Object(
            {
              default_model: Type.Optional(Nullable(ModelName)),
              busy_input_mode: Type.Optional(Nullable(BusyMode)),
            },
            { additionalProperties: false },
          ),
          response: { 200: SettingsBody, ...refusals(400, 422, 503) },
        },
      },
      async (request) => settings.change(request.body),
    );
  };
