/** All live sessions of this process, and the readers of the session list. Owns their lives and the heartbeat. */
import { type LiveEvent, plainLiveEvent } from './live-event.ts';
import { createLiveSession, type LiveSession } from './live-session.ts';
import type { CloseReason, Subscriber } from './subscriber.ts';

export interface RegistryParts {
  /** Eight hexadecimal digits, new each time. */
  newRuntimeId(): string;
  /** Epoch seconds. */
  now(): number;
  heartbeatS: number;
  watcher?: ReaderWatcher;
}

/** Who wants to know that somebody reads, and what readers have been told. */
export interface ReaderWatcher {
  /** A reader came; there may be others. */
  came(): void;
  /** A session was told as it is, or that it is deleted. */
  told(sessionId: string, revision: number | null): void;
}

export interface LiveRegistry {
  /** The live session, made if there is none. */
  open(sessionId: string): LiveSession;
  peek(sessionId: string): LiveSession | null;
  /** Forgets a live session that nobody reads and that has nothing to do. */
  reap(sessionId: string): void;
  /** Holds a live session in memory while something works on it. Returns the release. */
  hold(sessionId: string): () => void;
  /** Registers a reader for heartbeats and for `closeAll`; freed when it ends. */
  add(subscriber: Subscriber): void;
  /** Registers a reader of the session list. */
  addListReader(subscriber: Subscriber): void;
  /** Whether anybody would hear of a change of this session. */
  isWatched(sessionId: string): boolean;
  /** Live sessions that somebody reads, and whether anybody reads the list. */
  read(): { sessions: LiveSession[]; list: boolean };
  /** Tells all readers of the session list. */
  publishList(sessionId: string | null, reason: string, session?: { revision: number }): void;
  counts(): { liveSessions: number; activeRuns: number; subscribers: number };
  closeAll(reason: CloseReason): void;
}

/** The sign of life that every stream gets. @param now epoch seconds */
const heartbeatEvent = (now: number): LiveEvent => plainLiveEvent('heartbeat', '', { time: now });

export function createLiveRegistry({ newRuntimeId, now, heartbeatS, watcher }: RegistryParts): LiveRegistry {
  const sessions = new Map<string, LiveSession>();
  const holds = new Map<string, number>();
  const subscribers = new Set<Subscriber>();
  const listReaders = new Set<Subscriber>();
  let timer: NodeJS.Timeout | null = null;

  const beat = (): void => {
    const event = heartbeatEvent(now());
    for (const subscriber of subscribers) subscriber.heartbeat(event);
  };

  const reap = (sessionId: string): void => {
    const session = sessions.get(sessionId);
    if (!session || session.run || session.attachments.size > 0 || holds.has(sessionId)) return;
    // Why a queue does not move is known nowhere else.
    if (session.paused === null) sessions.delete(sessionId);
  };

  return {
    open(sessionId) {
      let session = sessions.get(sessionId);
      if (!session) {
        session = createLiveSession(sessionId, newRuntimeId());
        sessions.set(sessionId, session);
      }
      return session;
    },

    peek: (sessionId) => sessions.get(sessionId) ?? null,
    reap,

    hold(sessionId) {
      holds.set(sessionId, (holds.get(sessionId) ?? 0) + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        const left = holds.get(sessionId)! - 1;
        if (left > 0) holds.set(sessionId, left);
        else holds.delete(sessionId);
        reap(sessionId);
      };
    },

    add(subscriber) {
      subscribers.add(subscriber);
      watcher?.came();
      timer ??= setInterval(beat, heartbeatS * 1000);
      subscriber.onEnd(() => {
        subscribers.delete(subscriber);
        if (subscribers.size > 0 || !timer) return;
        clearInterval(timer);
        timer = null;
      });
    },

    addListReader(subscriber) {
      listReaders.add(subscriber);
      subscriber.onEnd(() => listReaders.delete(subscriber));
    },

    isWatched: (sessionId) => listReaders.size > 0 || (sessions.get(sessionId)?.attachments.size ?? 0) > 0,

    read: () => ({
      sessions: [...sessions.values()].filter((session) => [...session.attachments].some((one) => one.only === null)),
      list: listReaders.size > 0,
    }),

    publishList(sessionId, reason, session) {
      if (sessionId !== null) watcher?.told(sessionId, session?.revision ?? null);
      if (listReaders.size === 0) return;
      const payload =
        session === undefined ? { session_id: sessionId, reason } : { session_id: sessionId, reason, session };
      const event = plainLiveEvent('sessions.changed', '', payload);
      for (const reader of listReaders) reader.offer([event]);
    },

    counts: () => ({
      liveSessions: sessions.size,
      activeRuns: [...sessions.values()].filter((session) => session.run).length,
      subscribers: subscribers.size,
    }),

    closeAll(reason) {
      for (const subscriber of [...subscribers]) subscriber.close(reason);
    },
  };
}
