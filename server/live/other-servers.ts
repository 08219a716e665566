/**
 * Other servers on this home. What they change is told to the readers here within a second, and what they leave behind
 * when they die goes on here without any client.
 *
 * Nothing is looked at while nobody reads but, now and then, whether a queue has lost its owner; and of that only one
 * number of SQLite as long as no other process has been seen and the state DB is as it was.
 */
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { ChangedSession, Stores } from '../../db/stores.ts';
import type { Leases } from '../lease/leases.ts';
import { plainLiveEvent } from './live-event.ts';
import type { LiveRegistry, ReaderWatcher } from './registry.ts';

export interface OtherServersParts {
  stores: Pick<Stores, 'sessions' | 'changes' | 'dataVersion'>;
  leases: Pick<Leases, 'abandoned'>;
  registry: Pick<LiveRegistry, 'read' | 'counts' | 'peek' | 'publishList'>;
  /** The queue of a session may have to be moved by this process. */
  wake(sessionId: string): void;
  onChange(sessionId: string, reason: string): void;
  /** Epoch seconds. */
  now(): number;
  log: { warn(fields: object, message: string): void };
}

export interface OtherServers extends ReaderWatcher {
  /** Looks for queues without an owner from now on. */
  start(): void;
  stop(): void;
  /** A request came: looks for such queues now, at most once a second. */
  asked(): void;
  /** Readers of a session are given what was made of it elsewhere, or by recovery. */
  look(sessionId: string): Promise<void>;
}

/** How often readers are told of what others changed, in milliseconds. */
const TELL_EVERY_MS = 1_000;
/** How often a queue without an owner is looked for, in milliseconds, when nobody asks. */
const SWEEP_EVERY_MS = 5_000;
/** A change has the time of its beginning and may have waited for the database: longer than any request does. */
const MARGIN_S = 60;
/** More changes at once than this are told as one: read the list again. */
const MOST_TOLD = 50;

export function createOtherServers(parts: OtherServersParts): OtherServers {
  const { stores, registry, now, log } = parts;
  let telling: NodeJS.Timeout | null = null;
  let sweeping: NodeJS.Timeout | null = null;
  let resting: NodeJS.Timeout | null = null;
  let stopped = false;

  /** Data version at which readers knew everything; NaN before there is one. */
  let told = Number.NaN;
  let since = 0;
  /** Revisions that readers know of what changed lately, and the sessions that they know to be deleted. */
  let known = new Map<string, number>();
  let gone = new Set<string>();
  /** Sessions that had an open prompt when it was last looked. */
  let open: string[] = [];

  /** Data version of the last sweep, and whether another process had a session then. */
  let swept = Number.NaN;
  let othersRun = true;

  /** Work that comes again by itself: one at a time, and not now is no failure. */
  function recurring(what: string, work: () => Promise<void>): () => Promise<void> {
    let isBusy = false;
    let isTroubled = false;
    return async () => {
      if (isBusy || stopped) return;
      isBusy = true;
      try {
        await work();
        isTroubled = false;
      } catch (error) {
        // What lasts is said once.
        if (!stopped && !(isTroubled && storageTroubleKind(error) !== null)) log.warn({ err: error }, what);
        isTroubled = true;
      } finally {
        isBusy = false;
      }
    };
  }

  /** What may have changed since it was last asked, and is now taken for known. */
  async function remember(): Promise<{ changed: ChangedSession[]; deleted: string[] }> {
    const readers = registry.read().sessions.map((session) => session.sessionId);
    const version = stores.dataVersion();
    const time = now();
    // A clock that was put back meanwhile has stamped what is new with times before.
    const found = await stores.changes.since(Math.min(since, time) - MARGIN_S, [...new Set([...open, ...readers])]);
    told = version;
    since = time;
    known = new Map(found.changed.map((one) => [one.session_id, one.revision]));
    gone = new Set(found.deleted);
    open = found.changed.filter((one) => one.open).map((one) => one.session_id);
    return found;
  }

  /** Who has just come reads how things stand: what is so already is not told. */
  const begin = recurring('what other servers changed before could not be read', async () => {
    await remember();
  });

  const tell = recurring('what another server changed could not be told', async () => {
    if (registry.counts().subscribers === 0) {
      if (telling) clearInterval(telling);
      telling = null;
      return;
    }
    const { list, sessions } = registry.read();
    if ((!list && sessions.length === 0) || stores.dataVersion() === told) return;
    const before = { known, gone, since };
    const { changed, deleted } = await remember();
    const fresh = changed.filter((one) => before.known.get(one.session_id) !== one.revision);
    if (fresh.length > MOST_TOLD) registry.publishList(null, 'changed');
    for (const { session_id, created_at } of fresh) {
      if (fresh.length > MOST_TOLD && !sessions.some((one) => one.sessionId === session_id)) continue;
      const isCreated = !before.known.has(session_id) && created_at > before.since - MARGIN_S;
      parts.onChange(session_id, isCreated ? 'created' : 'changed');
    }
    for (const sessionId of deleted) {
      if (before.gone.has(sessionId)) continue;
      registry.peek(sessionId)?.publish(plainLiveEvent('session.deleted', sessionId, {}));
      registry.publishList(sessionId, 'deleted');
    }
    for (const { sessionId } of sessions) await look(sessionId);
  });

  async function look(sessionId: string): Promise<void> {
    const session = await stores.sessions.get(sessionId);
    const live = registry.peek(sessionId);
    if (!session || !live) return;
    if (live.editSeen !== null && live.editSeen !== session.edit_number) live.edited(session.edit_number);
    live.editSeen = session.edit_number;
    // A turn of unknown fate has no end yet either.
    const isOpen = session.open.some((one) => one.status !== 'queued');
    live.ended(isOpen ? session.generation - 1 : session.generation);
  }

  const sweep = recurring('no queue without an owner could be looked for', async () => {
    const version = stores.dataVersion();
    if (!othersRun && version === swept) return;
    const found = await parts.leases.abandoned();
    swept = version;
    othersRun = found.othersRun;
    for (const sessionId of found.sessions) if (!registry.peek(sessionId)?.run) parts.wake(sessionId);
  });

  return {
    came() {
      if (telling || stopped) return;
      told = Number.NaN;
      since = now();
      known = new Map();
      gone = new Set();
      void begin();
      telling = setInterval(() => void tell(), TELL_EVERY_MS);
      telling.unref();
    },

    told(sessionId, revision) {
      if (!telling) return;
      if (revision === null) gone.add(sessionId);
      else known.set(sessionId, revision);
    },

    asked() {
      if (resting || stopped || !sweeping) return;
      resting = setTimeout(() => {
        resting = null;
      }, TELL_EVERY_MS);
      resting.unref();
      void sweep();
    },

    look,

    start() {
      sweeping = setInterval(() => void sweep(), SWEEP_EVERY_MS);
      sweeping.unref();
    },

    stop() {
      stopped = true;
      for (const timer of [telling, sweeping]) if (timer) clearInterval(timer);
      if (resting) clearTimeout(resting);
      telling = sweeping = resting = null;
    },
  };
}
