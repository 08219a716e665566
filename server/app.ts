/**
 * The composition root: makes the clock, ids, stores and services of one server and binds them together. Everything
 * else receives what it needs.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { createAgentOfferStore } from '../db/agent-offer-store.ts';
import { createAgentSessionStore } from '../db/agent-session-store.ts';
import { openStateDb, refuseForeign } from '../db/client.ts';
import { createAgentFolders } from '../db/files/agent-folders.ts';
import { createAttachmentStore } from '../db/files/attachment-store.ts';
import { createConfigFile } from '../db/files/config-file.ts';
import { foreignPlace } from '../db/files/foreign/home.ts';
import { freeBytes } from '../db/files/free-space.ts';
import { createJournalStore } from '../db/files/journal.ts';
import { createPaths } from '../db/files/paths.ts';
import { createRunningCommands } from '../db/files/running-commands.ts';
import { createSidecarStore } from '../db/files/sidecar-store.ts';
import { createOwnSessions } from '../db/foreign/own-sessions.ts';
import { APPLICATION_ID } from '../db/our-schema.ts';
import { createSqliteStores } from '../db/sqlite-stores.ts';
import { createServer } from '../routes/server.ts';
import { createAttachments } from './attachments/attachments.ts';
import { createAttempts, createHeaderAttempts } from './auth/attempts.ts';
import { createCredentials } from './auth/credentials.ts';
import { createPasswords } from './auth/passwords.ts';
import { createStanding } from './auth/standing.ts';
import { createTrustedPeers } from './auth/trusted-peers.ts';
import { createAdmit } from './authority/admit.ts';
import { createCompletions } from './authority/completions.ts';
import type { ReachCrashPoint } from './authority/crash-points.ts';
import { createDoubts } from './authority/doubts.ts';
import { createDrain, type PreclaimCheck } from './authority/drain.ts';
import { createOwnedStop } from './authority/owned-stop.ts';
import { createPersist } from './authority/persist.ts';
import { createResolveUnknown } from './authority/resolve-unknown.ts';
import { createRunTurn } from './authority/run-turn.ts';
import { createStop } from './authority/stop.ts';
import { type Config, ConfigError, isLoopback } from './config.ts';
import { runOfPrompt } from './core/ids.ts';
import type { Message } from './core/terms.ts';
import { openForeign } from './foreign/foreign.ts';
import { packageRoot, readVersion } from './installation.ts';
import { createLeases } from './lease/leases.ts';
import { identityOf, isAlive, ownIdentity } from './lease/process-identity.ts';
import { createIntake } from './limits/intake.ts';
import { createLoad, watchEventLoop } from './limits/load.ts';
import { createPromptRate } from './limits/prompt-rate.ts';
import { createAttach } from './live/attach.ts';
import { createEventWindows } from './live/event-window.ts';
import { createGatewaySessions } from './live/gateway-sessions.ts';
import { createEnter } from './live/gateway-standing.ts';
import { createOtherServers } from './live/other-servers.ts';
import { createLiveRegistry } from './live/registry.ts';
import { createRequests } from './live/requests.ts';
import { mcpServersForAgents } from './mcp/for-agents.ts';
import { createMcpServers } from './mcp/mcp-servers.ts';
import { createMetrics } from './metrics/metrics.ts';
import { createAdoption } from './recovery/adopt.ts';
import { createForeignTurns } from './recovery/foreign-turn.ts';
import { createJournalRetries } from './recovery/journal-retry.ts';
import { createPruning } from './recovery/prune.ts';
import { createRecovery } from './recovery/recovery.ts';
import { rescuePlaces, rescueStateDb } from './recovery/rescue.ts';
import { createAcpRunner } from './runners/acp/acp-runner.ts';
import { createAgentList } from './runners/acp/agent-list.ts';
import { KNOWN_AGENTS, type KnownAgent } from './runners/acp/known-agents.ts';
import { createAllowList } from './runners/allow-list.ts';
import { createApprovals } from './runners/approvals.ts';
import { createBuiltinRunner } from './runners/builtin/runner.ts';
import { createCatalog } from './runners/catalog.ts';
import { createClarifyTool } from './runners/clarify.ts';
import { configuredProviders } from './runners/configured.ts';
import type { DiscoveryTarget } from './runners/discover.ts';
import { type BriefQuestion, createBriefAnswer } from './runners/model/brief-answer.ts';
import { createModelRunner } from './runners/model/model-runner.ts';
import { createRouterRunner } from './runners/router.ts';
import type { Runner } from './runners/runner.ts';
import { createAnnounce } from './sessions/announce.ts';
import { createCompaction } from './sessions/compaction.ts';
import { createCopies } from './sessions/copies.ts';
import { createEdits } from './sessions/edits.ts';
import { createExport } from './sessions/export.ts';
import { createFork } from './sessions/fork.ts';
import { createImport } from './sessions/import.ts';
import { createProjects } from './sessions/projects.ts';
import { createPrompts } from './sessions/prompts.ts';
import { createSearch } from './sessions/search.ts';
import { createSeed } from './sessions/seed.ts';
import { createServerSettings } from './sessions/server-settings.ts';
import { createSessionLock } from './sessions/session-lock.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import { createReadSettled } from './sessions/settled.ts';
import { createWhyStuck } from './sessions/stuck.ts';
import { createTitled } from './sessions/titled.ts';
import { createTitles } from './sessions/titles.ts';
import { createTranscripts } from './sessions/transcripts.ts';
import { withTimeLimit } from './time-limit.ts';
import { createCommands, findShell } from './workspace/commands.ts';
import { assertWorkspace, createFolderChoice } from './workspace/folder-choice.ts';
import { createPrograms, type ProgramsParts } from './workspace/programs.ts';
import { createWorkspaceTools } from './workspace/tools.ts';
import { createWorkspaces } from './workspace/workspace.ts';

/** What a test may put in place of the real thing. */
export interface AppOverrides {
  /** Epoch seconds. */
  now?(): number;
  reached?: ReachCrashPoint;
  runner?: Runner;
  check?: PreclaimCheck;
  /** Where to look for model servers on this machine. */
  discovery?: readonly DiscoveryTarget[];
  /** Which agents to look for on PATH. */
  knownAgents?: readonly KnownAgent[];
  /** Pause between the words of the built-in agent, in milliseconds. */
  wordDelayMs?: number;
  heartbeatS?: number;
  requestTimeoutMs?: number;
  /** Requests that may be answered at once. */
  mostInFlight?: number;
  /** How long a request of the gateway waits for a compaction, in milliseconds. */
  compressWaitMs?: number;
}

export interface App {
  server: FastifyInstance;
  /** Listens; returns the port. */
  listen(): Promise<number>;
  /**
   * Stops in order: no new prompts, running turns may finish within `server.drain_s` and are then interrupted with
   * everything kept, streams end, the state DB is closed. Idempotent; `hurry` ends the wait.
   */
  close(): Promise<void>;
  hurry(): void;
}

/** What a session's model is asked beside its turns. */
type AskedModel = Omit<BriefQuestion, 'provider' | 'model'>;

const CACHE_BYTES = 64 * 1024 * 1024;
/** Events of a running turn that are kept in memory for readers that catch up. */
const RING_BYTES = 4 * 1024 * 1024;
/** Requests that are answered at once; a person and her devices never have as many. */
const MOST_IN_FLIGHT = 1_000;
const PATIENCE_MS = 5_000;
const PRUNE_EVERY_MS = 3_600_000;
const COMMAND_GRACE_MS = 2_000;
const TITLE_TIMEOUT_S = 15;
/** Enough for a title, and for a model that thinks a little first. */
const TITLE_TOKENS = 200;

/**
 * Opens the home and makes a server of it, not yet listening.
 * @throws StateDbRefused or a storage error when the home cannot be used
 */
export async function createApp(config: Config, log: Logger, overrides: AppOverrides = {}): Promise<App> {
  const now = overrides.now ?? (() => Date.now() / 1000);
  const reached: ReachCrashPoint = overrides.reached ?? (() => {});
  const hex = (bytes: number) => () => randomBytes(bytes).toString('hex');
  const newId = hex(16);
  const sleep = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal }).catch(() => {});
  const version = readVersion();
  const startedAt = performance.now();
  const process_ = ownIdentity();

  const theirs = await foreignPlace(config.home, APPLICATION_ID);
  if (theirs !== null) throw refuseForeign(theirs);
  await mkdir(config.home, { recursive: true, mode: 0o700 });
  const paths = createPaths(config.home);
  const sidecars = createSidecarStore(paths);
  await rescuePlaces({ paths, log });
  await rescueStateDb({ paths, sidecars, now, sleep: (ms) => delay(ms), log });
  const state = await openStateDb({
    file: paths.stateDb,
    sleep: (ms) => delay(ms),
    random: Math.random,
    monotonic: () => performance.now(),
    patienceMs: PATIENCE_MS,
    now,
  });
  const stores = createSqliteStores(state, isAlive);
  const journals = createJournalStore(paths);
  const attachmentStore = createAttachmentStore(paths);
  const epoch = await stores.epochs.begin({ instanceId: newId(), process: process_, now: now() });

  const giveUp = new AbortController();
  let draining = false;
  const isDraining = (): boolean => draining;
  const heartbeatS = overrides.heartbeatS ?? 10;
  const registry = createLiveRegistry({
    newRuntimeId: hex(4),
    now,
    heartbeatS,
    watcher: {
      came: () => {
        others.came();
        foreignWatch?.came();
      },
      told: (sessionId, revision) => others.told(sessionId, revision),
    },
  });
  const metrics = createMetrics({
    version,
    counts: () => registry.counts(),
    isDraining,
    open: () => stores.admissions.countOpen(),
  });
  const persist = createPersist({
    sleep,
    stop: giveUp.signal,
    onTrouble: metrics.storageTrouble,
    log,
  });
  const completions = createCompletions();
  const lock = createSessionLock();
  const leases = createLeases({
    store: stores.leases,
    process: process_,
    epoch,
    cap: config.max_concurrent_sessions,
    now,
    newId,
    log,
  });
  const transcripts = createTranscripts({
    stores,
    sidecars,
    liveRunId: (sessionId) => registry.peek(sessionId)?.run?.runId ?? null,
    onDamaged: (sessionId, reason) => log.warn({ session_id: sessionId, reason }, 'a sidecar is damaged'),
    cacheBytes: CACHE_BYTES,
  });

  const onChange = createAnnounce({
    registry,
    describe: (sessionId) => sessions.describe(sessionId),
    persist,
    log,
  });

  const providers = configuredProviders(config);
  const agents = await createAgentList({
    configured: config.configuredAgents,
    preferFirst: config.runner.kind === 'acp',
    known: overrides.knownAgents ?? KNOWN_AGENTS,
    taken: providers.map(({ name }) => name),
    path: config.agentEnv.PATH ?? '',
    store: createAgentOfferStore(state),
    now,
    onError: (error) => log.warn({ err: error }, 'what an agent offers could not be kept'),
  });
  const catalog = createCatalog({
    providers,
    builtin: true,
    agents,
    chosenDefault: () => settings.defaultModel(),
    now,
    ...(overrides.discovery ? { discovery: overrides.discovery } : {}),
    onStatus: (status) => log.info(status, 'model provider'),
  });
  const whyNoModel = (model: string | null): string | null => {
    const target = catalog.resolve(model);
    return target.kind === 'unknown' ? target.reason : null;
  };
  const settings = createServerSettings({
    store: stores.settings,
    dataVersion: stores.dataVersion,
    configured: { defaultModel: catalog.configuredDefault, busyMode: config.display.busy_input_mode },
    checkModel: whyNoModel,
    onChange: () => registry.publishList(null, 'settings'),
    log,
  });
  const requests = createRequests({
    now,
    newId: () => `srq-${hex(6)()}`,
    timeoutS: config.approvals.timeout,
    onChange: (sessionId) => onChange(sessionId, 'request'),
  });
  const runIdFor = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);
  const foreign =
    config.foreign.state_db || config.foreign.sessions_dir
      ? openForeign({
          places: config.foreign,
          copies: config.home,
          ownSessions: createOwnSessions(state),
          merge: sidecars.merge,
          now,
          sleep: (ms) => delay(ms),
          runIdFor,
          cacheBytes: CACHE_BYTES,
          log,
        })
      : null;
  const ownSearch = createSearch(stores.messages);
  const foreignWatch = foreign?.watch(registry) ?? null;
  const search = foreign ? foreign.search(ownSearch) : ownSearch;
  const processes: ProgramsParts = {
    notes: createRunningCommands(paths),
    server: process_,
    identityOf,
    graceMs: COMMAND_GRACE_MS,
    newMark: newId,
    onLeft: (mark) => log.warn({ mark }, 'processes of a command could not be ended'),
  };
  const commands = createCommands({ ...processes, env: config.commandEnv, shell: await findShell(), isAlive });
  const programs = createPrograms(processes);
  const mcp = createMcpServers(config.mcpServers, {
    programs,
    fetch: (address, init) => fetch(address, init),
    version,
    now,
    log,
  });
  const secrets = [
    config.token,
    config.apiKey,
    ...Object.values(config.providerKeys),
    ...config.mcpServers.flatMap(({ secrets }) => secrets),
  ].flatMap((secret) => secret ?? []);
  const approvals = createApprovals({
    mode: config.approvals.mode,
    allowed: createAllowList({ patterns: config.approvals.allow, file: createConfigFile(paths.config), log }),
    secrets,
  });
  const tools = [...createWorkspaceTools({ commands }), createClarifyTool()];
  const openWorkspace = createWorkspaces();
  let reaped: Promise<void> = Promise.resolve();
  const acp = createAcpRunner({
    ready: () => reaped,
    programs: createPrograms(processes),
    secrets,
    env: config.agentEnv,
    version,
    store: createAgentSessionStore(state),
    folders: createAgentFolders(paths),
    openWorkspace,
    approvals,
    commands,
    mcpServers: (agent) => mcpServersForAgents(config.mcpServers, agent),
    limits: config.runner,
    lastOffer: agents.lastOffer,
    offered: agents.offered,
    now,
    onBug: (error) => log.error({ err: error }, 'the runner of agents failed'),
    log,
  });
  let url = '';
  const runner =
    overrides.runner ??
    createRouterRunner({
      catalog,
      agents: acp,
      builtin: createBuiltinRunner({
        tools,
        outside: mcp,
        approvals,
        openWorkspace,
        now,
        timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        searchChats: async (q, limit) =>
          (await search(q, limit)).map((hit) => ({
            ...hit,
            title: hit.title ?? 'Untitled',
            role: hit.role as Message['role'],
          })),
        transcript: async (sessionId) => {
          if (!(await stores.sessions.get(sessionId))) return null;
          return (await transcripts.read(sessionId)).rows.map((row) => JSON.parse(row.json) as Message);
        },
        findSessionByTitle: async (title) => {
          const page = await stores.sessions.list({
            limit: 20,
            cursor: null,
            archived: 'yes',
            q: title,
            project_id: null,
            source: null,
          });
          const wanted = title.trim().toLowerCase();
          const found = page.sessions.find((one) => one.title?.toLowerCase() === wanted) ?? page.sessions[0];
          return found ? { session_id: found.session_id, title: found.title ?? 'Untitled' } : null;
        },
        listModels: async () => catalog.list().models,
        serverInfo: () => ({ version, home: config.home, url }),
        sleep,
        ...(overrides.wordDelayMs === undefined ? {} : { wordDelayMs: overrides.wordDelayMs }),
        newToolId: () => `tool_${hex(6)()}`,
      }),
      model: createModelRunner({
        providers: catalog,
        tools,
        outside: mcp,
        approvals,
        openWorkspace,
        now,
        newToolId: () => `tool_${hex(6)()}`,
        maxSteps: config.agent.max_steps,
        stallTimeoutS: config.agent.stall_timeout_s,
        maxRetries: config.agent.api_max_retries,
        compactAt: config.agent.compact_at,
        sleep,
        random: Math.random,
        onBug: (error) => log.error({ err: error }, 'the model runner failed'),
      }),
    });

  const recovery = createRecovery({
    stores,
    journals,
    transcripts,
    lock,
    leases,
    registry,
    foreignTurns: createForeignTurns({
      stores,
      journals,
      transcripts,
      now,
      runIdFor,
      log,
    }),
    retries: createJournalRetries({ journals, transcripts, now, log }),
    epoch,
    isAlive,
    now,
    onRecovered: (sessionId, admissionId) => {
      completions.settle(admissionId);
      onChange(sessionId, 'recovered');
      background('telling readers of a recovered turn', () => others.look(sessionId));
      drain.arm(sessionId); // What waits behind the dead turn runs now.
    },
    log,
  });
  const briefAnswer = createBriefAnswer({ now });
  const askModel = async (
    modelId: string | null,
    question: AskedModel,
    signal: AbortSignal,
  ): Promise<string | null> => {
    const target = catalog.resolve(modelId);
    return target.kind === 'model' ? briefAnswer({ ...target, ...question }, signal) : null;
  };
  const titles = createTitles({
    sessions: stores.sessions,
    ask: (modelId, question, signal) =>
      askModel(modelId, { ...question, maxTokens: TITLE_TOKENS, timeoutS: TITLE_TIMEOUT_S }, signal),
    onChange,
    now,
    log,
  });
  const compaction = createCompaction({
    stores,
    sessions: { get: (sessionId) => sessions.get(sessionId) },
    transcripts,
    registry,
    leases,
    ask: askModel,
    windowOf(modelId) {
      const target = catalog.resolve(modelId);
      return target.kind === 'model' ? target.provider.contextLength : null;
    },
    reached,
    now,
    onChange,
    log,
  });
  const runTurn = createRunTurn({
    stores,
    journals,
    transcripts,
    lock,
    leases,
    requests,
    runner,
    persist,
    reached,
    now,
    eagerFsync: config.journal.fsync === 'eager',
    ringBytes: RING_BYTES,
    measure: metrics,
    attachment: (sessionId, id) => attachments.forTurn(sessionId, id),
    defaultModel: () => catalog.list().default,
    onChange,
    onSettled: (admissionId) => completions.settle(admissionId),
    compaction,
    ...(overrides.runner ? {} : { titles }),
    log,
  });
  const drain = createDrain({
    stores,
    registry,
    leases,
    recover: async (sessionId) => {
      const session = await persist('read the session', () => stores.sessions.get(sessionId));
      if (session) await persist('recovery', () => recovery.ensure(session));
    },
    beforeRun: (sessionId) => persist('recovery', () => recovery.beforeRun(sessionId)),
    check: overrides.check ?? (async () => 'ok'),
    runTurn,
    persist,
    epoch,
    now,
    onPaused: (sessionId, reason) => {
      completions.wakeAll();
      registry.peek(sessionId)?.endWaiting(reason);
      onChange(sessionId, 'paused');
    },
    log,
  });
  const doubts = createDoubts({ persist, log });
  const others = createOtherServers({
    stores,
    leases,
    registry,
    wake: (sessionId) => drain.wake(sessionId),
    onChange,
    now,
    log,
  });
  const ownStop = createStop({
    stores,
    registry,
    drain,
    completions,
    doubts,
    resolveUnknown: createResolveUnknown({
      stores,
      journals,
      transcripts,
      lock,
      leases,
      registry,
      doubts,
      now,
      onResolved: (sessionId, admissionId) => {
        completions.settle(admissionId);
        onChange(sessionId, 'resolved');
        drain.arm(sessionId);
      },
      log,
    }),
    within: (event) => Promise.race([event.then(() => true), delay(PATIENCE_MS, false, { ref: false })]),
    now,
    onChange,
  });
  const stop = createOwnedStop({
    stores,
    registry,
    leases,
    drain,
    recover: (session) => recovery.ensure(session),
    stop: ownStop,
  });
  const ownSessions = createSessions({
    stores,
    sidecars,
    journals,
    attachments: attachmentStore,
    agents: acp,
    transcripts,
    registry,
    recovery,
    stop,
    drain,
    leases,
    onAsked: () => others.asked(),
    async letGo(sessionId) {
      const held = gatewaySessions.bySession(sessionId);
      if (held) await gatewaySessions.end(held, 'closed');
    },
    lock,
    checkModel: whyNoModel,
    assertWorkspace,
    now,
    newIdSuffix: hex(3),
    onChange,
    log,
  });
  const foreignSessions = foreign?.sessions(ownSessions) ?? null;
  const sessions: Sessions = foreignSessions ?? ownSessions;
  const attachments = createAttachments({
    store: attachmentStore,
    stores,
    sessions,
    lock,
    maxBytes: Math.floor(config.limits.upload_mb * 1_048_576),
    newId,
  });
  const admit = createAdmit({
    stores,
    registry,
    leases,
    drain,
    missingAttachments: attachments.missing,
    reached,
    maxQueued: config.queue.max,
    isDraining,
    now,
    newRunId: newId,
    newId,
    onChange,
  });
  const whyStuck = createWhyStuck(stores, registry);
  const prompts = createPrompts({
    stores,
    admit,
    completions,
    registry,
    sessions,
    transcripts,
    whyStuck,
    isDraining,
  });
  const edits = createEdits({
    stores,
    sessions,
    transcripts,
    recovery,
    registry,
    leases,
    lock,
    admit,
    drain,
    reached,
    now,
    onChange,
    log,
  });
  const ownSettled = createReadSettled({ stores, sessions: ownSessions, transcripts, recovery, registry });
  const readSettled = foreignSessions ? foreignSessions.readSettled(ownSettled) : ownSettled;
  const makeCopy = createCopies({
    stores,
    attachments: attachmentStore,
    recovery,
    reached,
    now,
    newIdSuffix: hex(3),
    onChange,
  });
  const prune = createPruning({ stores, journals, keepS: config.journal.keep_h * 3600, now, log });

  const attach = createAttach({
    admissions: stores.admissions,
    journals,
    registry,
    epoch,
    describe: (sessionId) => sessions.describe(sessionId),
    takenBack: async (sessionId) => {
      const ids = await stores.messages.inactiveIds(sessionId);
      return new Set(ids.map(runOfPrompt).filter((runId) => runId !== null));
    },
    whyStuck,
  });
  const windows = createEventWindows();
  const gatewaySessions = createGatewaySessions({
    registry,
    attach,
    windows,
    works: (sessionId) => drain.works(sessionId),
    releaseLease: (live) => leases.releaseIdle(live),
    graceS: config.live.orphan_reap_grace_s,
    staleS: config.live.orphan_activity_stale_s,
    idleS: config.live.idle_ttl_s,
    most: config.live.max_sessions,
    now,
    newRuntimeId: eightDigits(randomBytes(4).readUInt32BE()),
    newIdSuffix: hex(3),
    log,
  });
  const credentials = createCredentials({
    store: stores.credentials,
    passwords: createPasswords(randomBytes),
    envToken: config.token,
    closed: config.server.user_header !== null || !isLoopback(config.server.host),
    now,
    newSecret: randomBytes,
    background: (what, work) => background(what, work),
  });
  const standing = createStanding({
    credentials,
    most: config.limits.streams,
    everyMs: heartbeatS * 1000,
    log,
  });
  const { password, token } = await credentials.offered();
  if (!isLoopback(config.server.host) && !password && !token && config.server.user_header === null) {
    stores.close();
    throw new ConfigError(
      `Refusing to listen on ${config.server.host} without a credential: everybody who reaches it could use your agent. ` +
        'Set a password with `turnkeep password`, or TURNKEEP_TOKEN (in the environment or in <home>/.env), or listen on 127.0.0.1.',
    );
  }
  const load = createLoad({
    mostInFlight: overrides.mostInFlight ?? MOST_IN_FLIGHT,
    loop: watchEventLoop(() => performance.now()),
    everySecond(look) {
      const timer = setInterval(look, 1_000).unref();
      return () => clearInterval(timer);
    },
  });
  const intake = createIntake({
    rate: createPromptRate(config.limits.prompts_per_minute),
    load,
    minFreeBytes: config.limits.min_free_mb * 1_048_576,
    freeBytes: () => freeBytes(config.home),
    isRepeat: async (sessionId, requestId) =>
      (await stores.admissions.byRequest('owner', sessionId, requestId)) !== null,
    now,
    monotonic: () => performance.now(),
  });
  const fork = createFork({ readSettled, makeCopy, summaryOf: (sessionId) => stores.contexts.summary(sessionId) });
  const soon = (event: Promise<void>): Promise<void> =>
    Promise.race([event, delay(PATIENCE_MS, undefined, { ref: false })]);

  const server = await createServer({
    log,
    version,
    access: {
      host: config.server.host,
      loopback: isLoopback(config.server.host),
      allowedHosts: config.server.allowed_hosts,
      allowedOrigins: config.server.allowed_origins,
      userHeader: config.server.user_header,
      isTrustedPeer: createTrustedPeers(config.server.trusted_proxies),
      headerAttempts: createHeaderAttempts(),
    },
    credentials,
    standing,
    behindProxy: config.server.public_url !== null || config.server.trusted_proxies.length > 0,
    metrics,
    load,
    intake,
    attempts: createAttempts(),
    sessions,
    prompts,
    edits,
    compaction,
    fork,
    exportSession: createExport({ readSettled, attachmentNames: attachments.names }),
    importSession: createImport({ makeCopy }),
    assertOwn: foreignSessions?.assertOwn ?? null,
    attachments,
    stop,
    busyMode: settings.busyMode,
    settings,
    requests,
    registry,
    attach,
    search,
    projects: createProjects({
      store: stores.projects,
      now,
      newId: hex(6),
      onChange,
      onListChange: () => registry.publishList(null, 'changed'),
    }),
    catalog,
    folders: createFolderChoice(config.commandEnv.HOME ?? '/'),
    mcp,
    limits: {
      backlogEvents: config.live.backlog_events,
      backlogBytes: config.live.backlog_bytes,
      sendDeadlineS: config.live.send_deadline_s,
    },
    bodyBytes: Math.floor(config.limits.body_mb * 1_048_576),
    basePath: config.server.base_path,
    trustedProxies: config.server.trusted_proxies,
    page: path.join(packageRoot(), 'static'),
    isDraining,
    probe: () => stores.probe(),
    uptimeSeconds: () => (performance.now() - startedAt) / 1000,
    now,
    requestTimeoutMs: overrides.requestTimeoutMs ?? 30_000,
    gateway: {
      live: gatewaySessions,
      enter: createEnter({
        sessions: gatewaySessions,
        async read(sessionId, rows) {
          if (!rows) return { session: await sessions.get(sessionId), rows: '' };
          const page = await sessions.messages(sessionId, { limit: 100_000 });
          return { session: page.session, rows: page.rows.toString() };
        },
        look: (sessionId) => others.look(sessionId),
        pause: (ms) => delay(ms),
      }),
      windows,
      compress(sessionId, focus) {
        const asked = compaction.onRequest(sessionId, focus);
        asked.catch(() => {}); // Whoever asked may be gone by then.
        const wait = overrides.compressWaitMs ?? PATIENCE_MS;
        return Promise.race([asked, delay(wait, 'pending' as const, { ref: false })]);
      },
      seed: createSeed({ makeCopy, now, newRunId: newId }),
      draftOf: ({ title, model, workspace, source }) => sessions.check({ title, model, workspace, source }),
      titled: createTitled(sessions),
      assertOwn: foreignSessions?.assertOwn ?? (async () => {}),
      claimed: (sessionId) => soon(drain.claimed(sessionId)),
      turnEnded: (sessionId) => soon(drain.ended(sessionId)),
      epoch: newId(),
      heartbeatS,
      newSocketId: hex(8),
    },
  });

  await settings.start();

  const adopt = createAdoption({ stores, sidecars, recovery, now, onChange, log });

  /** What earlier starts left: dead turns are resolved and what is queued runs, without any client. */
  const resume = async (): Promise<void> => {
    const waiting = await persist('look for open prompts', () => stores.sessions.withOpenAdmissions());
    for (const sessionId of waiting) drain.arm(sessionId);
    await adopt();
    await sessions.removeLeftovers();
    const unfinished = await attachmentStore.removeUnfinished((pid) => isAlive({ pid, start: null }), now() * 1000);
    if (unfinished) log.info({ removed: unfinished }, 'uploads that never ended are removed');
    await prune();
  };
  const background = (what: string, work: () => Promise<void>): void => {
    work().catch((error) => log.warn({ err: error }, `${what} failed`));
  };
  let pruning: NodeJS.Timeout | null = null;
  let closing: Promise<void> | null = null;
  const hurry = new AbortController();

  const close = async (): Promise<void> => {
    draining = true;
    drain.stopClaiming();
    others.stop();
    settings.stop();
    foreignWatch?.stop();
    const titled = titles.close();
    const compacted = compaction.close();
    completions.wakeAll();
    if (pruning) clearInterval(pruning);
    const patience = withTimeLimit(config.server.drain_s, hurry.signal);
    await Promise.race([drain.idle(), aborted(patience)]);
    drain.interruptAll();
    // What cannot even be written now is recovered at the next start.
    await Promise.race([drain.idle(), delay(5_000, undefined, { ref: false })]);
    giveUp.abort();
    await drain.idle();
    await acp.close();
    await mcp.close();
    await Promise.all([commands.close(), programs.close()]);
    completions.wakeAll();
    gatewaySessions.stop();
    standing.stop();
    load.stop();
    await server.close();
    await titled;
    await compacted;
    await stores.epochs.end(epoch, now()).catch((error) => log.warn({ err: error }, 'the epoch could not be ended'));
    await foreign?.close();
    stores.close();
  };

  return {
    server,
    async listen() {
      await server.listen({ host: config.server.host, port: config.server.port });
      const address = server.server.address();
      const port = typeof address === 'object' && address ? address.port : config.server.port;
      url = `http://${isLoopback(config.server.host) ? '127.0.0.1' : config.server.host}:${port}${config.server.base_path}/`;
      const reaping = commands.reap().then((ended) => {
        if (ended) log.info({ commands: ended }, 'what an earlier start left running is ended');
      });
      reaped = reaping.catch(() => {});
      background('ending what an earlier start left', () => reaping);
      background('looking for models', () => catalog.refresh());
      background('resuming', resume);
      mcp.start();
      others.start();
      if (foreign) background("reading another program's home", () => foreign.warm());
      pruning = setInterval(() => background('pruning journals', prune), PRUNE_EVERY_MS);
      pruning.unref();
      return port;
    },
    close() {
      closing ??= close();
      return closing;
    },
    hurry: () => hurry.abort(),
  };
}

/** Eight hexadecimal digits; none comes again before all others came, for a step that is odd meets every number once. */
function eightDigits(first: number): () => string {
  let last = first;
  return () => {
    last = (last + 0x9e3779b1) >>> 0;
    return last.toString(16).padStart(8, '0');
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
