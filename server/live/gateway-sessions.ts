/**
 * What gateway clients have of live sessions: who is attached, the numbered events that they are given, sessions that
 * have no row yet, and the time after which a session that everybody has left is given back.
 *
 * At most one of these stands for a session (GW1). While it does, the session is held: its lease stays here although it
 * is idle, and it is not deleted. A client that leaves stops nothing (GW6).
 */
import type { Draft } from '../authority/admit.ts';
import { formatSessionId } from '../core/ids.ts';
import { AppError } from '../errors.ts';
import { createSessionLock } from '../sessions/session-lock.ts';
import type { Attach } from './attach.ts';
import { afterAwake } from './awake.ts';
import type { EventWindow, EventWindows } from './event-window.ts';
import { createFeed } from './feed.ts';
import { type LiveEvent, plainLiveEvent } from './live-event.ts';
import type { LiveSession, OpenRequest } from './live-session.ts';
import type { LiveRegistry } from './registry.ts';
import type { Subscriber } from './subscriber.ts';

/** One connection. */
export interface GatewayClient {
  readonly subscriber: Subscriber;
  /** Shows it a question of an agent, if it can answer. */
  ask(runtimeId: string, request: OpenRequest): void;
}

export interface GatewaySession {
  readonly sessionId: string;
  /** Eight hexadecimal digits: what requests and events call this session. Never used again. */
  readonly runtimeId: string;
  readonly live: LiveSession;
  /** Epoch seconds. */
  readonly startedAt: number;
  readonly window: EventWindow;
  readonly clients: ReadonlySet<GatewayClient>;
  /** What it will be stored with when its first prompt is accepted; null when it is stored. */
  draft: Draft | null;
  /** Epoch seconds of the last event or request. */
  lastActive: number;
  /** Whether all that was published of the session has been numbered: false while what others did is caught up with. */
  isCurrent(): boolean;
}

export type ReclaimReason = 'ws_orphan_reap' | 'idle_timeout' | 'lru_evict' | 'closed' | 'deleted';

export interface GatewaySessionsParts {
  registry: LiveRegistry;
  attach: Attach;
  windows: EventWindows;
  /** Whether the session's queue is being moved. */
  works(sessionId: string): boolean;
  /** The lease may be given back. */
  releaseLease(live: LiveSession): Promise<void>;
  /** Seconds after which a session that nobody is attached to is given back; 0 is never. */
  graceS: number;
  /** Seconds without an event after which it is reported that a turn goes on for nobody. */
  staleS: number;
  /** Seconds without an event after which an unattended session is given back, whatever the grace. */
  idleS: number;
  /** How many may be held at once before the longest unused are given back. */
  most: number;
  /** Epoch seconds. */
  now(): number;
  /** Eight hexadecimal digits, new each time. */
  newRuntimeId(): string;
  /** Six hexadecimal digits, new each time. */
  newIdSuffix(): string;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

export interface GatewaySessions {
  /** A new session without a row. */
  create(draft: Draft, options?: OpenOptions): Promise<GatewaySession>;
  /** Holds a stored session, or the draft of that id. The caller has made sure that it may be read here. */
  open(sessionId: string, options?: OpenOptions): Promise<GatewaySession>;
  /** What was made with this key in the last five minutes, as long as it is held. */
  byKey(key: string): GatewaySession | null;
  /** Somebody works with it. @throws AppError runtime_not_live */
  get(runtimeId: string): GatewaySession;
  find(runtimeId: string): GatewaySession | null;
  bySession(sessionId: string): GatewaySession | null;
  /** In the order in which they came. */
  list(): GatewaySession[];
  /** One after the other while it has no row: its fields are not changed while its first prompt stores them. */
  inTurn<T>(session: GatewaySession, work: () => Promise<T>): Promise<T>;
  /** While this works somebody is about to join: that nobody is attached is then no reason to give it back. */
  keptDuring<T>(session: GatewaySession, work: () => Promise<T>): Promise<T>;
  /** From now on the client gets the session's events. Nobody is displaced. */
  join(session: GatewaySession, client: GatewayClient): void;
  /** A connection that gets what concerns no session. */
  connected(client: GatewayClient): void;
  /** It is gone: it leaves every session. */
  disconnected(client: GatewayClient): void;
  /** Gives a session back, whoever is attached; its turn, if one runs, goes on. Idempotent. */
  end(session: GatewaySession, reason: ReclaimReason): Promise<void>;
  /** Frees the timers: the server stops. */
  stop(): void;
}

export interface OpenOptions {
  /** It is given back as soon as its last client has left. Not for one that is held already. */
  closeOnDisconnect?: boolean;
  /** `byKey` finds it by this. */
  key?: string | null;
}

interface Held extends GatewaySession {
  readonly clients: Set<GatewayClient>;
  /** Resolves when its events are numbered; rejects when that could not begin. */
  ready: Promise<void>;
  readonly feed: Subscriber;
  readonly release: () => void;
  readonly closeOnDisconnect: boolean;
  /** How many are about to join. */
  kept: number;
  /** Cancels its grace. */
  grace: (() => void) | null;
}

const KEY_LIFE_S = 300;
const SWEEP_EVERY_S = 60;

export function createGatewaySessions(parts: GatewaySessionsParts): GatewaySessions {
  const { registry, windows, now, log } = parts;
  const held = new Map<string, Held>();
  const byRuntime = new Map<string, Held>();
  const connections = new Set<GatewayClient>();
  const keys = new Map<string, { held: Held; at: number }>();
  const drafts = createSessionLock();
  let sweeping: NodeJS.Timeout | null = null;
  let stopped = false;

  const isHeld = (session: GatewaySession): boolean => byRuntime.has(session.runtimeId);
  const isWorking = ({ live, sessionId }: GatewaySession): boolean => live.run !== null || parts.works(sessionId);

  function hold(
    sessionId: string,
    draft: Draft | null,
    { closeOnDisconnect = false, key = null }: OpenOptions = {},
  ): Held {
    const runtimeId = parts.newRuntimeId();
    const at = now();
    const live = registry.open(sessionId);
    const release = registry.hold(sessionId);
    live.held = true;
    const session: Held = {
      sessionId,
      runtimeId,
      live,
      startedAt: at,
      lastActive: at,
      window: windows.open(runtimeId),
      clients: new Set(),
      draft,
      feed: createFeed(
        (events) => deliver(session, events),
        () => failed(session),
      ),
      release,
      closeOnDisconnect,
      kept: 1,
      grace: null,
      ready: Promise.resolve(),
      isCurrent: () => [...live.attachments].some((one) => one.subscriber === session.feed && one.live),
    };
    held.set(sessionId, session);
    byRuntime.set(runtimeId, session);
    if (key !== null) keys.set(key, { held: session, at });
    session.ready = parts.attach({ sessionId, subscriber: session.feed, cursor: null, from: draft ? 'draft' : 'now' });
    if (!stopped) sweeping ??= setInterval(sweep, SWEEP_EVERY_S * 1000).unref();
    // Whoever opens it cannot join before that.
    const free = (): void => {
      session.kept -= 1;
    };
    session.ready.then(free, free);
    waitForClients(session);
    return session;
  }

  /** Numbers events once and gives them to all who are attached. */
  function deliver(session: Held, events: readonly LiveEvent[]): void {
    if (!isHeld(session)) return;
    session.lastActive = now();
    session.draft = null; // Of what is not stored nothing is told.
    const numbered = events.map((event) => session.window.stamp(event));
    const asked = events.filter((event) => event.type === 'request.open').map(requestOf);
    for (const client of session.clients) {
      client.subscriber.offer(numbered);
      for (const request of asked) client.ask(session.runtimeId, request);
    }
    if (events.some((event) => event.type === 'session.deleted')) endQuietly(session, 'deleted');
  }

  /** Its events cannot be followed any more: whoever was attached comes again and is told anew where it stands. */
  function failed(session: Held): void {
    if (!isHeld(session)) return;
    log.warn({ session_id: session.sessionId }, 'the events of a session could not be followed');
    const clients = [...session.clients];
    endQuietly(session, 'closed');
    for (const client of clients) client.subscriber.close('shutdown');
  }

  function endQuietly(session: GatewaySession, reason: ReclaimReason): void {
    end(session, reason).catch((error) => {
      log.warn({ err: error, session_id: session.sessionId }, 'a lease could not be given back');
    });
  }

  async function end(session: GatewaySession, reason: ReclaimReason): Promise<void> {
    const one = byRuntime.get(session.runtimeId);
    if (!one) return;
    byRuntime.delete(one.runtimeId);
    held.delete(one.sessionId);
    for (const [key, made] of keys) if (made.held === one) keys.delete(key);
    one.grace?.();
    if (sweeping && held.size === 0) {
      clearInterval(sweeping);
      sweeping = null;
    }
    one.clients.clear();
    one.live.held = false;
    one.feed.gone();
    one.window.close();
    const payload = { session_id: one.runtimeId, stored_session_id: one.sessionId, reason };
    // To everybody, so by name: it is an event of no session for whoever was not attached.
    const event = plainLiveEvent('session.reclaimed', '', payload);
    for (const client of connections) client.subscriber.offer([event]);
    try {
      if (one.draft === null) await parts.releaseLease(one.live);
    } finally {
      one.release();
    }
  }

  /** Begins the grace of a session that nobody is attached to. */
  function waitForClients(session: Held): void {
    if (session.clients.size > 0 || stopped || parts.graceS <= 0) return;
    session.grace = afterAwake(parts.graceS, () => {
      session.grace = null;
      expire(session);
    });
  }

  function expire(session: Held): void {
    if (!isHeld(session) || session.clients.size > 0) return;
    if (isIdleAlone(session)) {
      endQuietly(session, 'ws_orphan_reap');
      return;
    }
    // Absence stops no turn, however long it is; it is only said.
    const silentS = now() - session.lastActive;
    if (isWorking(session) && silentS > parts.staleS) {
      log.info({ session_id: session.sessionId, silent_s: Math.round(silentS) }, 'a turn goes on that nobody looks at');
    }
    waitForClients(session);
  }

  const isIdleAlone = (session: Held): boolean =>
    session.clients.size === 0 && session.kept === 0 && !isWorking(session);

  function sweep(): void {
    const before = now() - parts.idleS;
    for (const session of [...held.values()]) {
      if (isIdleAlone(session) && session.lastActive < before) endQuietly(session, 'idle_timeout');
    }
    for (const [key, { at }] of keys) if (at < now() - KEY_LIFE_S) keys.delete(key);
  }

  /** The longest unused are given back when there are too many. */
  function makeRoom(): void {
    if (held.size < parts.most) return;
    const idle = [...held.values()].filter(isIdleAlone).sort((a, b) => a.lastActive - b.lastActive);
    for (const session of idle.slice(0, held.size - parts.most + 1)) endQuietly(session, 'lru_evict');
  }

  /** Waits until its events are numbered; null when it was given back meanwhile. */
  async function whenReady(session: Held): Promise<Held | null> {
    try {
      await session.ready;
    } catch (error) {
      endQuietly(session, 'closed');
      throw error;
    }
    return isHeld(session) ? session : null;
  }

  return {
    async create(draft, options) {
      makeRoom();
      let sessionId = formatSessionId(now(), parts.newIdSuffix());
      while (registry.peek(sessionId)) sessionId = formatSessionId(now(), parts.newIdSuffix());
      const session = hold(sessionId, draft, options);
      return (await whenReady(session)) ?? session;
    },

    async open(sessionId, options) {
      for (;;) {
        const known = held.get(sessionId);
        if (!known) makeRoom();
        const session = known ?? hold(sessionId, null, options);
        const ready = await whenReady(session);
        if (ready) return ready;
      }
    },

    byKey(key) {
      const made = keys.get(key);
      return made && made.at >= now() - KEY_LIFE_S ? made.held : null;
    },

    get(runtimeId) {
      const session = byRuntime.get(runtimeId);
      if (!session) throw new AppError('runtime_not_live');
      session.lastActive = now();
      return session;
    },

    find: (runtimeId) => byRuntime.get(runtimeId) ?? null,
    bySession: (sessionId) => held.get(sessionId) ?? null,
    list: () => [...held.values()],
    inTurn: (session, work) => (session.draft === null ? work() : drafts(session.sessionId, work)),

    async keptDuring(session, work) {
      const one = byRuntime.get(session.runtimeId);
      if (!one) throw new AppError('runtime_not_live');
      one.kept += 1;
      try {
        return await work();
      } finally {
        one.kept -= 1;
      }
    },

    join(session, client) {
      const one = byRuntime.get(session.runtimeId);
      if (!one) throw new AppError('runtime_not_live');
      if (client.subscriber.ended) return;
      one.clients.add(client);
      one.grace?.();
      one.grace = null;
    },

    connected(client) {
      connections.add(client);
    },

    disconnected(client) {
      connections.delete(client);
      for (const session of [...held.values()]) {
        if (!session.clients.delete(client) || session.clients.size > 0 || stopped) continue;
        if (session.closeOnDisconnect && session.kept === 0) endQuietly(session, 'closed');
        else waitForClients(session);
      }
    },

    end,

    stop() {
      stopped = true;
      if (sweeping) clearInterval(sweeping);
      for (const { grace } of held.values()) grace?.();
    },
  };
}

const requestOf = (event: LiveEvent): OpenRequest => JSON.parse(event.json).payload;
