/** The HTTP server: limits, validation, refusals, headers, and every resource as a plugin under the base path. */
import helmet from '@fastify/helmet';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Attachments } from '../server/attachments/attachments.ts';
import type { Attempts } from '../server/auth/attempts.ts';
import type { Credentials } from '../server/auth/credentials.ts';
import type { Standing } from '../server/auth/standing.ts';
import { AppError } from '../server/errors.ts';
import type { Load } from '../server/limits/load.ts';
import type { McpServers } from '../server/mcp/mcp-servers.ts';
import type { Metrics } from '../server/metrics/metrics.ts';
import type { Catalog } from '../server/runners/catalog.ts';
import type { Projects } from '../server/sessions/projects.ts';
import type { Search } from '../server/sessions/search.ts';
import type { SettingsOfServer } from '../server/sessions/server-settings.ts';
import type { ListFolder } from '../server/workspace/folder-choice.ts';
import { type AccessParts, createLoginCookies, registerAccess } from './access.ts';
import { attachmentRoutes } from './attachments.ts';
import { authRoutes } from './auth.ts';
import { UPLOAD_ROUNDS, watchBodies } from './bodies.ts';
import { endConnectionsOnClose } from './connections.ts';
import { docsRoutes, registerOpenApi } from './docs.ts';
import { type EditRoutesParts, editRoutes } from './edits.ts';
import { eventRoutes } from './events.ts';
import { type ExportRoutesParts, exportRoutes } from './exports.ts';
import { handleClientError, handleError } from './failures.ts';
import { folderRoutes } from './folders.ts';
import { type ForeignGuardParts, guardForeignSessions } from './foreign.ts';
import { type GatewayParts, gatewayRoutes, registerGateway } from './gateway/gateway.ts';
import { type HealthParts, healthRoutes } from './health.ts';
import { shedLoad, wantRoom } from './limits.ts';
import { mcpRoutes } from './mcp.ts';
import { watchMethods } from './methods.ts';
import { metricsRoutes } from './metrics.ts';
import { modelRoutes } from './models.ts';
import { pageRoutes } from './page.ts';
import { projectRoutes } from './projects.ts';
import { type PromptRoutesParts, promptRoutes } from './prompts.ts';
import { searchRoutes } from './search.ts';
import { sessionRoutes } from './sessions.ts';
import { settingsRoutes } from './settings.ts';
import { createValidatorCompiler, serializerCompiler } from './validation.ts';

export interface ServerParts
  extends PromptRoutesParts,
    EditRoutesParts,
    ExportRoutesParts,
    HealthParts,
    ForeignGuardParts {
  log: FastifyBaseLogger;
  access: Omit<AccessParts, 'credentials' | 'cookies' | 'now'>;
  /** Whether the configuration speaks of a proxy. */
  behindProxy: boolean;
  credentials: Credentials;
  standing: Standing;
  metrics: Metrics;
  load: Load;
  attempts: Attempts;
  attachments: Attachments;
  search: Search;
  projects: Projects;
  catalog: Pick<Catalog, 'list'>;
  folders: ListFolder;
  mcp: Pick<McpServers, 'view'>;
  settings: Pick<SettingsOfServer, 'view' | 'change'>;
  gateway: Omit<
    GatewayParts,
    | 'registry'
    | 'limits'
    | 'standing'
    | 'frameBytes'
    | 'sessions'
    | 'prompts'
    | 'stop'
    | 'requests'
    | 'busyMode'
    | 'intake'
    | 'edits'
    | 'fork'
    | 'version'
  >;
  bodyBytes: number;
  /** Without a slash at its end; empty for the root. */
  basePath: string;
  trustedProxies: readonly string[];
  /** Folder of the web page. */
  page: string;
  now(): number;
  /** Milliseconds in which a request must have arrived. */
  requestTimeoutMs: number;
}

/** Builds the server; the caller listens and closes. */
export async function createServer(parts: ServerParts): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: parts.trustedProxies.length ? [...parts.trustedProxies] : false,
    bodyLimit: parts.bodyBytes,
    // Bodies have a watch of their own, for an upload may take longer than this.
    requestTimeout: parts.requestTimeoutMs * UPLOAD_ROUNDS,
    http: {
      // Node looks for late requests every 30 s, which would double the time-out.
      connectionsCheckingInterval: Math.min(parts.requestTimeoutMs, 1000),
      headersTimeout: parts.requestTimeoutMs,
      // Node would refuse a missing Host in words of its own; the Host check has ours.
      requireHostHeader: false,
    },
    keepAliveTimeout: 72_000,
    // Streams are ended in `preClose`, with what they are still owed.
    forceCloseConnections: 'idle',
    clientErrorHandler: handleClientError,
    routerOptions: { maxParamLength: 300 },
    frameworkErrors: (error, request, reply) => void handleError(error, request, reply as never),
  }).withTypeProvider<TypeBoxTypeProvider>();

  watchBodies(app, parts.requestTimeoutMs);
  app.setValidatorCompiler(createValidatorCompiler());
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler((error, request, reply) => handleError(error, request, reply, parts.metrics.refused));
  app.setNotFoundHandler(() => {
    throw new AppError('not_found');
  });
  acceptJsonOnly(app);
  // Before anything that may refuse: who is refused an upgrade is left without a connection.
  await registerGateway(app, parts.bodyBytes);
  shedLoad(app, parts.load);
  const cookies = createLoginCookies(parts.basePath);
  const { identify } = registerAccess(app, {
    ...parts.access,
    credentials: parts.credentials,
    cookies,
    now: parts.now,
  });
  wantRoom(app, parts.intake);
  app.addHook('onResponse', async (request, reply) => {
    const level = request.method === 'GET' || request.method === 'HEAD' ? 'debug' : 'info';
    const fields = { method: request.method, route: request.routeOptions.url, status: reply.statusCode };
    request.log[level]({ ...fields, ms: Math.round(reply.elapsedTime) }, 'request');
    // An address that nobody serves has no pattern: all of them are one.
    const route = request.routeOptions.url ?? 'none';
    parts.metrics.answered({ ...fields, route, seconds: reply.elapsedTime / 1000 });
  });
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        'default-src': ["'none'"],
        'script-src': ["'self'"],
        'style-src': ["'self'"],
        // An address in a picture can carry what a model has read to anybody: none but ours is asked.
        'img-src': ["'self'", 'data:'],
        'connect-src': ["'self'"],
        'font-src': ["'self'"],
        'manifest-src': ["'self'"],
        'form-action': ["'self'"],
        'base-uri': ["'none'"],
        'frame-ancestors': ["'none'"],
      },
    },
    // A home server is often plain HTTP; the proxy in front says so when it is not.
    hsts: false,
    referrerPolicy: { policy: 'no-referrer' },
  });
  await registerOpenApi(app, parts.version);
  const refuseOtherMethods = watchMethods(app);
  await app.register(
    async (api) => {
      guardForeignSessions(api, parts);
      await api.register(healthRoutes(parts));
      await api.register(metricsRoutes(parts.metrics));
      await api.register(authRoutes({ ...parts, cookies, identify }));
      await api.register(sessionRoutes(parts.sessions));
      await api.register(promptRoutes(parts));
      await api.register(editRoutes(parts));
      await api.register(exportRoutes(parts));
      await api.register(attachmentRoutes(parts.attachments));
      await api.register(eventRoutes({ ...parts, start: parts.gateway.epoch }));
      await api.register(gatewayRoutes({ ...parts, ...parts.gateway, frameBytes: parts.bodyBytes }));
      await api.register(searchRoutes(parts.search));
      await api.register(projectRoutes(parts.projects));
      await api.register(modelRoutes(parts.catalog));
      await api.register(folderRoutes(parts.folders));
      await api.register(settingsRoutes(parts.settings));
      await api.register(mcpRoutes(parts.mcp));
      await api.register(docsRoutes);
      await api.register(pageRoutes(parts.page));
    },
    { prefix: parts.basePath },
  );
  if (parts.basePath) {
    app.get(parts.basePath, { config: { public: true }, schema: { hide: true } }, async (_request, reply) =>
      reply.redirect(`${parts.basePath}/`, 302),
    );
  }
  refuseOtherMethods();
  // An expectation that we do not know is nothing to refuse for, least of all in Node's words.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // Streams have no end of their own: without this `close` would wait for their clients.
  app.addHook('preClose', async () => parts.registry.closeAll('shutdown'));
  endConnectionsOnClose(app);
  return app;
}

/** JSON and nothing else; no body counts as `{}`. */
function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, {});
    else parse(request, body as string, done);
  });
  app.addHook('preValidation', async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD' && request.body == null && isBodyless(request.headers)) {
      request.body = {};
    }
  });
}

const isBodyless = (headers: Record<string, unknown>): boolean =>
  headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';
