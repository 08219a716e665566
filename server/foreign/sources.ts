/**
 * The sessions of another program's home: what its state.db and its sidecars say, as one map by id. It is made anew only
 * when one of them changed, once for whoever asks. A home that cannot be read right now costs our own list nothing.
 */
import type { ForeignFolder } from '../../db/files/foreign/folder.ts';
import type { SidecarSummary } from '../../db/files/foreign/summary.ts';
import type { ForeignStateDb, StateSummary } from '../../db/foreign/state-db.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { type ForeignSession, toForeignSession } from './session.ts';

export interface ForeignSourcesParts {
  stateDb: ForeignStateDb | null;
  folder: ForeignFolder | null;
  log: { warn(fields: object, message: string): void };
}

export interface ForeignSources {
  /** All sessions by id, unlisted ones included: the same map while nothing changed. */
  all(): Promise<ForeignMap>;
  /** One of them as it stands now; null when it is not there. */
  find(sessionId: string): Promise<ForeignSession | null>;
  /** From the first session of a conversation to this one, which continues it, as last seen: at most 20 hops. */
  lineage(session: ForeignSession): ForeignSession[];
}

export interface ForeignMap {
  sessions: ReadonlyMap<string, ForeignSession>;
  ids: ReadonlySet<string>;
  /** Those that are shown in a list, in its order: pinned first, then newest activity. */
  listed: readonly ForeignSession[];
}

/** Sessions that one conversation may go through, and are put together. */
const MOST_HOPS = 20;

const NO_FILES: ReadonlyMap<string, SidecarSummary> = new Map();
const NO_IDS: ReadonlySet<string> = new Set();

export function createForeignSources({ stateDb, folder, log }: ForeignSourcesParts): ForeignSources {
  let rows: { version: string | null; summaries: StateSummary[] } = { version: null, summaries: [] };
  let made: { rows: StateSummary[]; files: unknown; deleted: unknown; map: ForeignMap } | null = null;
  let making: Promise<ForeignMap> | null = null;
  /** What was said already: once for each kind of trouble is enough. */
  const told = new Set<string>();

  /** What a source says, or what stands for it while it cannot be read. */
  async function orElse<T>(what: string, read: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      const found = await read();
      told.delete(what);
      return found;
    } catch (error) {
      if (storageTroubleKind(error) === null) throw error;
      if (!told.has(what)) log.warn({ err: error }, `${what} of another program cannot be read now`);
      told.add(what);
      return otherwise;
    }
  }

  async function readRows(): Promise<StateSummary[]> {
    if (!stateDb) return rows.summaries;
    const version = await stateDb.version();
    if (version === null) rows = { version, summaries: [] };
    else if (version !== rows.version) rows = { version, summaries: await stateDb.summaries() };
    return rows.summaries;
  }

  async function make(): Promise<ForeignMap> {
    const [summaries, files, deleted] = await Promise.all([
      orElse('the state.db', readRows, rows.summaries),
      folder ? orElse('the sidecars', () => folder.summaries(), NO_FILES) : NO_FILES,
      folder ? orElse('the deletions', () => folder.deleted(), NO_IDS) : NO_IDS,
    ]);
    if (made && made.rows === summaries && made.files === files && made.deleted === deleted) return made.map;
    const map = join(summaries, files, deleted);
    made = { rows: summaries, files, deleted, map };
    return map;
  }

  const all = (): Promise<ForeignMap> => {
    making ??= make().finally(() => {
      making = null;
    });
    return making;
  };

  return {
    all,

    async find(sessionId) {
      // What was under way when this was asked may have begun before the session did.
      return (await all()).sessions.get(sessionId) ?? (await all()).sessions.get(sessionId) ?? null;
    },

    lineage(session) {
      const sessions = made?.map.sessions ?? new Map<string, ForeignSession>();
      const chain = [session];
      for (let at = session; at.continues !== null && chain.length <= MOST_HOPS; ) {
        const parent = sessions.get(at.continues);
        if (!parent || chain.includes(parent)) break;
        chain.unshift(parent);
        at = parent;
      }
      return chain;
    },
  };
}

/** Both stores as one map. */
function join(
  rows: readonly StateSummary[],
  files: ReadonlyMap<string, SidecarSummary>,
  deleted: ReadonlySet<string>,
): ForeignMap {
  const sessions = new Map<string, ForeignSession>();
  for (const state of rows) {
    const file = files.get(state.session_id) ?? null;
    // What was deleted in the program that writes sidecars may have left its row.
    if (!file && deleted.has(state.session_id) && state.source === 'webui') continue;
    const session = toForeignSession(file, state);
    if (session) sessions.set(state.session_id, session);
  }
  for (const [id, file] of files) {
    if (sessions.has(id)) continue;
    const session = toForeignSession(file, null);
    if (session) sessions.set(id, session);
  }
  for (const session of sessions.values()) {
    const parent = session.sidecar?.parent_session_id;
    // Only behind a record of what was before a compression: any other child of a sidecar is a conversation of its own.
    if (parent && sessions.get(parent)?.sidecar?.snapshot) session.continues = parent;
  }
  return { sessions, ids: new Set(sessions.keys()), listed: listedOf(sessions) };
}

function listedOf(sessions: ReadonlyMap<string, ForeignSession>): ForeignSession[] {
  const next = new Map<string, ForeignSession>();
  for (const session of sessions.values()) {
    if (session.continues !== null && session.listed && sessions.has(session.continues)) {
      next.set(session.continues, session);
    }
  }
  /** Whether the conversation goes on elsewhere; sessions that name each other in a circle go on nowhere. */
  const goesOn = ({ row }: ForeignSession): boolean => {
    const seen = new Set([row.session_id]);
    for (let at = next.get(row.session_id); at; at = next.get(at.row.session_id)) {
      if (seen.has(at.row.session_id)) return false;
      seen.add(at.row.session_id);
    }
    return seen.size > 1;
  };
  const listed = [...sessions.values()].filter((session) => session.listed && !goesOn(session));
  for (const session of listed) carryOver(session, sessions);
  return listed.sort(compareListed);
}

/** What a conversation has from the sessions that it went through: its title and its beginning. */
function carryOver(session: ForeignSession, sessions: ReadonlyMap<string, ForeignSession>): void {
  const seen = new Set([session]);
  const { row } = session;
  for (let at = session; at.continues !== null && seen.size <= MOST_HOPS; ) {
    const parent = sessions.get(at.continues);
    if (!parent || seen.has(parent)) return;
    seen.add(parent);
    row.title ??= parent.row.title;
    row.created_at = Math.min(row.created_at, parent.row.created_at);
    at = parent;
  }
}

/** Pinned first, then newest activity, then the greater id. */
export const compareListed = (a: ForeignSession, b: ForeignSession): number =>
  Number(b.row.pinned) - Number(a.row.pinned) ||
  b.activity - a.activity ||
  (a.row.session_id < b.row.session_id ? 1 : a.row.session_id > b.row.session_id ? -1 : 0);
