/**
 * Who may ask: the Host (against DNS rebinding), the Origin (against foreign pages), the credential. Checked for every
 * request before anything else; a route says in its own declaration that it is public (SE1 to SE3).
 */
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Attempts } from '../server/auth/attempts.ts';
import type { Credentials, Identity } from '../server/auth/credentials.ts';
import { tryUnder } from '../server/auth/limited-try.ts';
import type { Scope } from '../server/core/terms.ts';
import { AppError } from '../server/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers without a credential. */
    public?: boolean;
    /** Answers whatever the Host is. */
    anyHost?: boolean;
    /** Takes the token in its query as well: a browser cannot send headers with an upgrade. */
    queryToken?: boolean;
    /** A stream: a foreign page must not open it, although it is a GET. */
    stream?: boolean;
    /** What its caller's credential must be good for: by default `read` for a GET, `prompt` for what changes something. */
    scope?: Scope;
  }
  interface FastifyRequest {
    /** Who asks; null on what is public, for a caller without a credential. */
    identity: Identity | null;
  }
}

export interface AccessParts {
  credentials: Credentials;
  /** Where the server listens. */
  host: string;
  loopback: boolean;
  allowedHosts: readonly string[];
  allowedOrigins: readonly string[];
  /** The header in which an authenticating proxy names who asks, in small letters; null for none. */
  userHeader: string | null;
  isTrustedPeer(address: string | undefined): boolean;
  /** Guesses at TURNKEEP_TOKEN in headers. */
  headerAttempts: Attempts;
  now(): number;
  cookies: LoginCookies;
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const LOOPBACK_NAMES = new Set(['localhost', '127.0.0.1', '::1']);

/** The host name in a Host header or an origin, without port and brackets; null when it is none. */
function hostName(text: string): string | null {
  try {
    return new URL(`http://${text}`).hostname.replace(/^\[|\]$/g, '').toLowerCase();
  } catch {
    return null;
  }
}

/** The value of a cookie. */
function readCookie(header: string | undefined, name: string): string | null {
  for (const part of header?.split(';') ?? []) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return null;
}

/**
 * The cookie of a login. Over https its name binds it to this host and to https, which needs the path `/`. A browser tells
 * cookies apart neither by port nor, then, by path: both are in the name, so that two servers on one host do not take each
 * other's. Source: RFC 6265bis, sections 4.1.3.2 and 8.5.
 */
export interface LoginCookies {
  read(request: FastifyRequest): string | null;
  /** The Set-Cookie that gives it, or with null takes it away. @param maxAge seconds */
  write(request: FastifyRequest, value: string | null, maxAge: number): string;
}

export function createLoginCookies(basePath: string): LoginCookies {
  const below = basePath.replaceAll('/', '_');
  const nameFor = ({ protocol, port }: FastifyRequest): string =>
    `${protocol === 'https' ? '__Host-' : ''}turnkeep_login${port === null ? '' : `_${port}`}${below}`;
  return {
    read: (request) => readCookie(request.headers.cookie, nameFor(request)),
    write(request, value, maxAge) {
      const secure = request.protocol === 'https';
      const path = secure ? '/' : `${basePath}/`;
      const attributes = `Path=${path}; Max-Age=${value === null ? 0 : maxAge}; HttpOnly; SameSite=Strict`;
      return `${nameFor(request)}=${value ?? ''}; ${attributes}${secure ? '; Secure' : ''}`;
    },
  };
}

const RANK: Record<Scope, number> = { read: 0, prompt: 1, admin: 2 };

/** Letters that a name from a proxy may have; it goes into logs and lists. */
const USER = /^[\w.@+\- ]{1,128}$/;

/** @returns `identify`, for what is public and wants to know all the same */
export function registerAccess(
  app: FastifyInstance,
  parts: AccessParts,
): { identify(request: FastifyRequest): Promise<Identity | null> } {
  const { credentials, cookies, userHeader } = parts;
  // Written with a port or in capitals they mean the same; a bare IPv6 address is no host of a URL.
  const names = new Set([parts.host, ...parts.allowedHosts].map((name) => hostName(name) ?? name.toLowerCase()));
  const origins = new Set(parts.allowedOrigins.map((origin) => new URL(origin).origin));

  const acceptsHost = (header: string | undefined): boolean => {
    const name = header === undefined ? null : hostName(header);
    if (name === null) return false;
    if (LOOPBACK_NAMES.has(name) || names.has(name)) return true;
    // An address cannot be rebound by DNS; a server on the network is reached by its addresses.
    return !parts.loopback && isIP(name) !== 0;
  };

  const acceptsOrigin = (request: FastifyRequest): boolean => {
    const { origin } = request.headers;
    if (origin === undefined) {
      const site = request.headers['sec-fetch-site'];
      return site === undefined || site === 'same-origin' || site === 'none';
    }
    if (origins.has(origin)) return true;
    // A page of the same name without TLS has another scheme, which the Host does not tell.
    const said = request.headers['sec-fetch-site'];
    if (said === 'cross-site' || said === 'same-site') return false;
    try {
      return new URL(origin).host === request.headers.host?.toLowerCase();
    } catch {
      return false;
    }
  };

  /** Tokens of ours cannot be guessed; TURNKEEP_TOKEN is what somebody thought of. @throws AppError too_many_attempts */
  const ofGiven = async ({ ip }: FastifyRequest, token: string): Promise<Identity | null> => {
    if (!credentials.isGuessable(token)) return credentials.ofToken(token);
    const caller = { address: ip, known: false };
    return tryUnder(parts.headerAttempts, caller, parts.now, () => credentials.ofToken(token));
  };

  /** Whoever gives a credential is judged by it alone: a wrong one is not made good by another. */
  const identify = async (request: FastifyRequest): Promise<Identity | null> => {
    const { token } = request.query as { token?: unknown };
    const inQuery = request.routeOptions.config.queryToken && typeof token === 'string' ? token : undefined;
    const bearer = /^bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const given = inQuery ?? bearer?.trim();
    if (given !== undefined) return (await ofGiven(request, given)) ?? credentials.ofNobody();
    const user = userHeader === null ? undefined : request.headers[userHeader];
    // From anybody but the proxy it is a header like others.
    if (typeof user === 'string' && USER.test(user) && parts.isTrustedPeer(request.socket.remoteAddress)) {
      return { key: `proxy:${user}`, scope: 'admin', share: `proxy:${user}` };
    }
    const cookie = cookies.read(request);
    return (cookie === null ? null : await credentials.ofCookie(cookie)) ?? credentials.ofNobody();
  };

  app.decorateRequest('identity', null);
  app.addHook('onRequest', async (request: FastifyRequest, _reply: FastifyReply) => {
    const { public: open = false, anyHost = false, stream = false, scope } = request.routeOptions.config;
    if (!anyHost && !acceptsHost(request.headers.host)) {
      throw new AppError(
        'forbidden_host',
        'The Host of this request is not one of this server. If it is yours, set server.public_url to the address that people open, or add the name to server.allowed_hosts, in config.yaml.',
      );
    }
    if ((stream || !SAFE.has(request.method)) && !acceptsOrigin(request)) {
      throw new AppError(
        'forbidden_origin',
        'A page of another origin may not do this. If it is the one of this server, set server.public_url to the address that people open; if it is another one of yours, add it to server.allowed_origins, in config.yaml.',
      );
    }
    if (open) return;
    request.identity = await identify(request);
    if (request.identity === null) throw new AppError('unauthorized');
    const needed = scope ?? (SAFE.has(request.method) ? 'read' : 'prompt');
    if (RANK[request.identity.scope] < RANK[needed]) {
      throw new AppError('insufficient_scope', undefined, { needed, scope: request.identity.scope });
    }
  });

  // A body may take its time: whoever may everything must still be who they were when it is here.
  app.addHook('preHandler', async ({ identity, routeOptions }) => {
    if (routeOptions.config.scope !== 'admin' || identity === null) return;
    if (!(await credentials.stands(identity.key))) throw new AppError('unauthorized');
  });

  return { identify };
}
