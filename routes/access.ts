/**
 * Who may ask: the Host (against DNS rebinding), the Origin (against foreign pages), the credential. Checked for every
 * request before anything else; a route says in its own declaration that it is public (SE1 to SE3).
 */
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Credentials } from '../server/auth/credentials.ts';
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
  }
}

export interface AccessParts {
  credentials: Credentials;
  /** Where the server listens. */
  host: string;
  loopback: boolean;
  allowedHosts: readonly string[];
  allowedOrigins: readonly string[];
  now(): number;
}

export const COOKIE_NAME = 'turnkeep_login';

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

/** Whether a request bears the credential: in its header or in the cookie of a login. */
export function isAuthorised(request: FastifyRequest, credentials: Credentials, now: number): boolean {
  if (!credentials.required) return true;
  const { token } = request.query as { token?: unknown };
  if (request.routeOptions.config.queryToken && typeof token === 'string') return credentials.isToken(token);
  const bearer = /^bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return credentials.isToken(bearer.trim());
  const cookie = readCookie(request.headers.cookie, COOKIE_NAME);
  return cookie !== null && credentials.isCookie(cookie, now);
}

export function registerAccess(app: FastifyInstance, parts: AccessParts): void {
  const { credentials } = parts;
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
    try {
      return new URL(origin).host === request.headers.host?.toLowerCase();
    } catch {
      return false;
    }
  };

  app.addHook('onRequest', async (request: FastifyRequest, _reply: FastifyReply) => {
    const { public: open = false, anyHost = false, stream = false } = request.routeOptions.config;
    if (!anyHost && !acceptsHost(request.headers.host)) {
      throw new AppError(
        'forbidden_host',
        'The Host of this request is not one of this server. If it is yours, add it to server.allowed_hosts in config.yaml.',
      );
    }
    if ((stream || !SAFE.has(request.method)) && !acceptsOrigin(request)) {
      throw new AppError(
        'forbidden_origin',
        'A page of another origin may not do this. If it is yours, add it to server.allowed_origins in config.yaml.',
      );
    }
    if (!open && !isAuthorised(request, credentials, parts.now())) throw new AppError('unauthorized');
  });
}
