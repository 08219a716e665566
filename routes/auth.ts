/**
 * /api/auth: a browser logs in and out, and whoever may everything sets the password, sees and ends logins, and makes and
 * takes back tokens (SE2, SE6).
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Attempts, Caller } from '../server/auth/attempts.ts';
import { type Credentials, type Identity, LOGIN_LIFE_S } from '../server/auth/credentials.ts';
import { tryUnder } from '../server/auth/limited-try.ts';
import type { Standing } from '../server/auth/standing.ts';
import { createTrustedPeers } from '../server/auth/trusted-peers.ts';
import type { Scope } from '../server/core/terms.ts';
import { AppError } from '../server/errors.ts';
import type { LoginCookies } from './access.ts';
import { Nullable, refusals } from './schemas.ts';

export interface AuthParts {
  credentials: Credentials;
  standing: Pick<Standing, 'look'>;
  attempts: Attempts;
  cookies: LoginCookies;
  identify(request: FastifyRequest): Promise<Identity | null>;
  /** Whether the configuration speaks of a proxy: then nobody who asks over HTTP is known to be at the machine. */
  behindProxy: boolean;
  now(): number;
}

const closed = { additionalProperties: false } as const;
const OkBody = Type.Object({ ok: Type.Literal(true) });
const OK = { ok: true as const };
const ScopeName = Type.Enum(['read', 'prompt', 'admin'] satisfies Scope[]);
const Password = Type.String({ minLength: 8, maxLength: 1024 });

const LoginView = Type.Object({
  login_id: Type.String(),
  scope: ScopeName,
  address: Type.String(),
  agent: Type.String(),
  created_at: Type.Number(),
  seen_at: Type.Number(),
  expires_at: Type.Number(),
  /** Whether it is the login of whoever asks. */
  current: Type.Boolean(),
});

const TokenView = Type.Object({
  token_id: Type.String(),
  name: Type.String(),
  scope: ScopeName,
  created_at: Type.Number(),
  used_at: Nullable(Type.Number()),
  expires_at: Nullable(Type.Number()),
});

/** Signs of a proxy between us and whoever asks. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

const isThisMachine = createTrustedPeers(['loopback']);

/** Whether somebody at this machine asks, and not a proxy on it for somebody else. */
const isHere = ({ socket, headers }: FastifyRequest): boolean =>
  isThisMachine(socket.remoteAddress) && !FORWARDED.some((name) => headers[name] !== undefined);

export const authRoutes =
  ({ credentials, standing, attempts, cookies, identify, behindProxy, now }: AuthParts): FastifyPluginAsyncTypebox =>
  async (app) => {
    const callerOf = async ({ ip }: FastifyRequest): Promise<Caller> => ({
      address: ip,
      known: await credentials.knowsAddress(ip),
    });

    /** Runs a check of a secret under the limit of attempts. @throws AppError too_many_attempts, bad_credentials */
    const limited = async (
      request: FastifyRequest,
      check: () => Promise<Identity | 'busy' | null>,
    ): Promise<Identity> => {
      const identity = await tryUnder(attempts, await callerOf(request), now, check);
      if (identity === null) throw new AppError('bad_credentials');
      return identity;
    };

    const giveCookie = async (request: FastifyRequest, reply: FastifyReply, identity: Identity): Promise<void> => {
      const browser = { address: request.ip, agent: request.headers['user-agent'] ?? '' };
      const secret = await credentials.logIn(identity, browser);
      reply.header('set-cookie', cookies.write(request, secret, LOGIN_LIFE_S));
    };

    app.get(
      '/api/auth/status',
      {
        config: { public: true },
        schema: {
          summary: 'Whether a credential is needed, which kinds there are, and whether this request bears one',
          security: [],
          response: {
            200: Type.Object({
              auth_required: Type.Boolean(),
              logged_in: Type.Boolean(),
              password: Type.Boolean(),
              token: Type.Boolean(),
              scope: Nullable(ScopeName),
              can_set_password: Type.Boolean(),
            }),
          },
        },
      },
      async (request) => {
        const { required, password, token } = await credentials.offered();
        const identity = await identify(request);
        return {
          auth_required: required,
          logged_in: identity !== null,
          password,
          token,
          scope: identity?.scope ?? null,
          can_set_password: identity !== null && maySetPassword(request, identity),
        };
      },
    );

    app.post(
      '/api/auth/login',
      {
        config: { public: true },
        schema: {
          summary: 'Get a cookie for a credential',
          security: [],
          body: Type.Union([
            Type.Object({ token: Type.String({ maxLength: 4096 }) }, closed),
            Type.Object({ password: Type.String({ maxLength: 4096 }) }, closed),
          ]),
          response: { 200: OkBody, ...refusals(400, 401, 429) },
        },
      },
      async (request, reply) => {
        if (!(await credentials.offered()).required) return OK;
        const { body } = request;
        const identity = await limited(request, async () => {
          if ('token' in body) return credentials.ofToken(body.token);
          const checked = await credentials.checkPassword(body.password);
          return checked === 'wrong' ? null : checked;
        });
        await giveCookie(request, reply, identity);
        return OK;
      },
    );

    app.post(
      '/api/auth/logout',
      {
        config: { public: true },
        schema: {
          summary: 'Give the cookie back: its login ends',
          security: [],
          body: Type.Optional(Type.Object({}, closed)),
          response: { 200: OkBody, ...refusals(400) },
        },
      },
      async (request, reply) => {
        const cookie = cookies.read(request);
        const identity = cookie === null ? null : await credentials.ofCookie(cookie);
        if (identity !== null) {
          await credentials.endLogin(identity.key.slice('login:'.length));
          await standing.look();
        }
        reply.header('set-cookie', cookies.write(request, null, 0));
        return OK;
      },
    );

    /** Where nobody can be told from anybody only who sits at the machine may be the first to set one. */
    const maySetPassword = (request: FastifyRequest, { key, scope }: Identity): boolean =>
      scope === 'admin' && (key !== 'open' || (!behindProxy && isHere(request)));

    app.post(
      '/api/auth/password',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'Set the password, or with null take it away; everybody is logged out but whoever does it',
          description:
            'Where a password is set it must be given as `current`, unless the request bears TURNKEEP_TOKEN. The first one ' +
            'is set from this machine.',
          body: Type.Object(
            { password: Nullable(Password), current: Type.Optional(Type.String({ maxLength: 4096 })) },
            closed,
          ),
          response: { 200: OkBody, ...refusals(400, 401, 403, 429) },
        },
      },
      async (request, reply) => {
        const identity = request.identity!;
        if (!maySetPassword(request, identity)) {
          throw new AppError(
            'insufficient_scope',
            'The first password is set at the machine itself: with `turnkeep password`, or in a browser that runs there.',
          );
        }
        const { password: isSet } = await credentials.offered();
        if (isSet && identity.key !== 'env') {
          const { current = '' } = request.body;
          await limited(request, async () => {
            const checked = await credentials.checkPassword(current);
            return checked === 'wrong' ? null : checked;
          });
        }
        if (request.body.password === null && !(await credentials.offered()).token) {
          throw new AppError(
            'insufficient_scope',
            'Without this password the server would be open. That is done at the machine itself, with `turnkeep password --remove`.',
          );
        }
        const owner = await credentials.setPassword(request.body.password);
        await standing.look();
        const isBrowser = identity.key.startsWith('login:') || identity.key === 'open';
        if (owner !== null && isBrowser) await giveCookie(request, reply, owner);
        return OK;
      },
    );

    app.get(
      '/api/auth/logins',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'The browsers that are logged in, last used first',
          response: { 200: Type.Object({ logins: Type.Array(LoginView) }) },
        },
      },
      async ({ identity }) => ({
        logins: (await credentials.logins()).map(({ secret_hash: _hash, basis: _basis, ...login }) => ({
          ...login,
          current: identity?.key === `login:${login.login_id}`,
        })),
      }),
    );

    app.delete(
      '/api/auth/logins/:id',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'Log a browser out; its streams end',
          params: Type.Object({ id: Type.String() }),
          response: { 204: Type.Null(), ...refusals(404) },
        },
      },
      async (request, reply) => {
        if (!(await credentials.endLogin(request.params.id))) throw new AppError('login_not_found');
        await standing.look();
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/api/auth/tokens',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'The tokens for programs; their secrets are kept nowhere',
          response: { 200: Type.Object({ tokens: Type.Array(TokenView) }) },
        },
      },
      async () => ({ tokens: (await credentials.tokens()).map(({ secret_hash: _hash, ...token }) => token) }),
    );

    app.post(
      '/api/auth/tokens',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'Make a token; its secret is told here and never again',
          body: Type.Object(
            {
              name: Type.String({ minLength: 1, maxLength: 100 }),
              scope: Type.Enum(['read', 'prompt', 'admin'] satisfies Scope[], { default: 'prompt' }),
              days: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 3650 }))),
            },
            closed,
          ),
          response: { 201: Type.Object({ token: TokenView, secret: Type.String() }), ...refusals(400, 403) },
        },
      },
      async (request, reply) => {
        // The first token closes an open server: not from afar.
        if (!maySetPassword(request, request.identity!)) {
          throw new AppError(
            'insufficient_scope',
            'The first token is made at the machine itself, with `turnkeep token`.',
          );
        }
        const { name, scope, days = null } = request.body;
        const { token, secret } = await credentials.createToken({ name, scope, days });
        const { secret_hash: _hash, ...view } = token;
        return reply.code(201).send({ token: view, secret });
      },
    );

    app.delete(
      '/api/auth/tokens/:id',
      {
        config: { scope: 'admin' },
        schema: {
          summary: 'Take a token back; logins that were got with it and its streams end',
          params: Type.Object({ id: Type.String() }),
          response: { 204: Type.Null(), ...refusals(404) },
        },
      },
      async (request, reply) => {
        if (!(await credentials.removeToken(request.params.id))) throw new AppError('token_not_found');
        await standing.look();
        return reply.code(204).send(null);
      },
    );
  };
