/** /api/auth: a browser gets a cookie for the credential, and gives it back. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Attempts } from '../server/auth/attempts.ts';
import { COOKIE_LIFE_S, type Credentials } from '../server/auth/credentials.ts';
import { AppError } from '../server/errors.ts';
import { COOKIE_NAME, isAuthorised } from './access.ts';
import { refusals } from './schemas.ts';

export interface AuthParts {
  credentials: Credentials;
  attempts: Attempts;
  /** Where the server lives, for the cookie's path. */
  basePath: string;
  now(): number;
}

const OkBody = Type.Object({ ok: Type.Literal(true) });

export const authRoutes =
  ({ credentials, attempts, basePath, now }: AuthParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const cookie = (value: string, maxAge: number, secure: boolean): string =>
      `${COOKIE_NAME}=${value}; Path=${basePath}/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;

    app.get(
      '/api/auth/status',
      {
        config: { public: true },
        schema: {
          summary: 'Whether a credential is needed, and whether this request bears one',
          security: [],
          response: { 200: Type.Object({ auth_required: Type.Boolean(), logged_in: Type.Boolean() }) },
        },
      },
      async (request) => ({
        auth_required: credentials.required,
        logged_in: isAuthorised(request, credentials, now()),
      }),
    );

    app.post(
      '/api/auth/login',
      {
        config: { public: true },
        schema: {
          summary: 'Get a cookie for the credential',
          security: [],
          body: Type.Union([
            Type.Object({ token: Type.String({ maxLength: 4096 }) }, { additionalProperties: false }),
            Type.Object({ password: Type.String({ maxLength: 4096 }) }, { additionalProperties: false }),
          ]),
          response: { 200: OkBody, ...refusals(400, 401, 429) },
        },
      },
      async (request, reply) => {
        if (!credentials.required) return { ok: true as const };
        const wait = attempts.waitFor(request.ip, now());
        if (wait > 0) throw new AppError('too_many_attempts', undefined, { retry_after: wait });
        if (!('token' in request.body) || !credentials.isToken(request.body.token)) {
          attempts.failed(request.ip, now());
          throw new AppError('bad_credentials');
        }
        const secure = request.protocol === 'https';
        reply.header('set-cookie', cookie(credentials.issueCookie(now()), COOKIE_LIFE_S, secure));
        return { ok: true as const };
      },
    );

    app.post(
      '/api/auth/logout',
      {
        config: { public: true },
        schema: {
          summary: 'Give the cookie back',
          security: [],
          body: Type.Optional(Type.Object({}, { additionalProperties: false })),
          response: { 200: OkBody, ...refusals(400) },
        },
      },
      async (request, reply) => {
        reply.header('set-cookie', cookie('', 0, request.protocol === 'https'));
        return { ok: true as const };
      },
    );
  };
