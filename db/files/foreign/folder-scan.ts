/**
 * What the headers of a folder of sidecars say, kept in memory. A list is asked for every second: while the folder, its
 * `_index.json` and its list of deletions are the same files, a few sidecars in turn are looked at and no more.
 */
import type { BigIntStats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { isSessionId } from '../../../server/core/ids.ts';
import { isMissing } from '../atomic.ts';
import { readPlainFile } from '../plain-file.ts';
import type { SidecarHeader, SidecarStore } from '../sidecar-store.ts';
import { backupCounts } from './backup-rule.ts';
import { summaryOfHeader } from './header-summary.ts';
import { readLoosely } from './loose-sidecar.ts';
import type { SidecarSummary } from './summary.ts';

const INDEX = '_index.json';
const DELETED = '_deleted_webui_sessions.json';

/** Sidecars that are looked at in turn while nothing seems to have changed, and more when something has. */
const QUIET_LOOKS = 16;
const BUSY_LOOKS = 256;
/** The newest ones are looked at each time: these are the ones that somebody writes. */
const NEWEST = 16;
/** Files that are looked at at a time. */
const AT_ONCE = 16;

interface Known {
  /** Of the live file and the backup. */
  state: string;
  summary: SidecarSummary | null;
}

interface Stores {
  live: Pick<SidecarStore, 'readHeader' | 'read'>;
  backup: Pick<SidecarStore, 'readHeader' | 'read'>;
}

export interface FolderScan {
  summaries(): Promise<ReadonlyMap<string, SidecarSummary>>;
  deleted(): Promise<ReadonlySet<string>>;
}

export function createFolderScan(folder: string, stores: Stores): FolderScan {
  const known = new Map<string, Known>();
  let names: string[] = [];
  let place = '';
  let indexState = '';
  let hinted = new Map<string, number>();
  let deleted: { state: string; ids: ReadonlySet<string>; at: bigint } = { state: '', ids: new Set(), at: 0n };
  let turn = 0;
  let view: ReadonlyMap<string, SidecarSummary> | null = null;
  let running: Promise<ReadonlyMap<string, SidecarSummary>> | null = null;

  const at = (name: string): string => path.join(folder, name);
  const fileAt = async (name: string): Promise<BigIntStats | null> => {
    const stats = await statsOf(at(name));
    return stats?.isFile() ? stats : null;
  };

  async function readDeleted(): Promise<boolean> {
    const stats = await statsOf(at(DELETED));
    const state = stateOf(stats);
    if (state === deleted.state) return false;
    const list = (await jsonOf(at(DELETED))) as { ids?: unknown } | null;
    const ids = Array.isArray(list?.ids) ? list.ids.filter((id) => typeof id === 'string') : [];
    deleted = { state, ids: new Set(ids), at: stats?.mtimeNs ?? 0n };
    return true;
  }

  /** Sessions of which the index has another time than last: it is written behind each save. */
  async function readHints(): Promise<string[]> {
    const state = stateOf(await statsOf(at(INDEX)));
    if (state === indexState) return [];
    indexState = state;
    const list = await jsonOf(at(INDEX));
    const rows = Array.isArray(list) ? list : [];
    const times = new Map<string, number>();
    for (const row of rows) {
      if (typeof row?.session_id === 'string' && typeof row.updated_at === 'number') {
        times.set(row.session_id, row.updated_at);
      }
    }
    const changed = [...times].filter(([id, time]) => hinted.get(id) !== time).map(([id]) => id);
    hinted = times;
    return changed;
  }

  /** Looks at the files of one session, and reads its header again where they are others than before. */
  async function look(id: string): Promise<void> {
    const [live, backup] = await Promise.all([fileAt(`${id}.json`), fileAt(`${id}.json.bak`)]);
    const state = `${stateOf(live)} ${stateOf(backup)} ${live && isDeletedSince(id, live) ? 'deleted' : ''}`;
    if (known.get(id)?.state === state) return;
    view = null;
    if ((!live && !backup) || isDeletedSince(id, live)) known.set(id, { state, summary: null });
    else known.set(id, { state, summary: await summaryOf(id, live, backup) });
  }

  /** A save of a deleted session takes its deletion back; a file that is older than that was left behind. */
  const isDeletedSince = (id: string, live: BigIntStats | null): boolean =>
    deleted.ids.has(id) && (live === null || live.mtimeNs <= deleted.at);

  async function summaryOf(
    id: string,
    live: BigIntStats | null,
    backup: BigIntStats | null,
  ): Promise<SidecarSummary | null> {
    const header = live && ((await stores.live.readHeader(id)) ?? (await looseHeader(id)));
    if (backup) {
      const older = await stores.backup.readHeader(id);
      const counts = (found: SidecarHeader) => typeof found.message_count === 'number';
      const isMore = older && header && counts(older) && counts(header) && older.message_count > header.message_count;
      if (older && (!header || isMore)) {
        const wins = !header || (await backupWins(id));
        if (wins) return summaryOfHeader(id, older, backup, 'backup', live === null);
      }
    }
    if (header) return summaryOfHeader(id, header, live!, 'live', false);
    return live && { ...summaryOfHeader(id, {} as SidecarHeader, live, 'damaged', false), message_count: 0 };
  }

  async function looseHeader(id: string): Promise<SidecarHeader | null> {
    const loose = await readLoosely(at(`${id}.json`), id);
    return loose && { ...loose.sidecar.header, message_count: loose.sidecar.rows.length };
  }

  async function backupWins(id: string): Promise<boolean> {
    const [live, backup] = [await stores.live.read(id), await stores.backup.read(id)];
    if (live.kind !== 'found' || backup.kind !== 'found') return backup.kind === 'found';
    const candidate = ({ header, rows, tail }: typeof live.sidecar) => ({ header, rows: rows.length, tail });
    return backupCounts(candidate(live.sidecar), candidate(backup.sidecar));
  }

  /** The next ones in turn, of all that are known. */
  function inTurn(count: number): string[] {
    if (names.length <= count) return names;
    const from = turn % names.length;
    turn += count;
    return [...names.slice(from, from + count), ...names.slice(0, Math.max(0, from + count - names.length))];
  }

  let latest: { of: unknown; ids: string[] } = { of: null, ids: [] };
  const newest = (): string[] => {
    if (view === null || latest.of !== view) latest = { of: view, ids: newestOf() };
    return latest.ids;
  };
  const newestOf = (): string[] =>
    [...known]
      .flatMap(([id, { summary }]) => (summary ? [{ id, activity: summary.activity }] : []))
      .sort((a, b) => b.activity - a.activity)
      .slice(0, NEWEST)
      .map(({ id }) => id);

  async function refresh(): Promise<ReadonlyMap<string, SidecarSummary>> {
    const now = stateOf(await statsOf(folder));
    const undeleted = await readDeleted();
    const hints = await readHints();
    const changed = now !== place;
    const wanted = new Set<string>();
    if (changed) {
      place = now;
      names = await sessionNames();
      const there = new Set(names);
      for (const id of known.keys()) {
        if (there.has(id)) continue;
        known.delete(id);
        view = null;
      }
      for (const id of names) if (!known.has(id)) wanted.add(id);
    }
    for (const id of hints) if (known.has(id)) wanted.add(id);
    for (const id of newest()) wanted.add(id);
    if (undeleted) for (const id of names) if (deleted.ids.has(id) || known.get(id)?.summary === null) wanted.add(id);
    for (const id of inTurn(changed ? BUSY_LOOKS : QUIET_LOOKS)) wanted.add(id);
    await inBatches([...wanted], look);
    view ??= new Map([...known].flatMap(([id, { summary }]) => (summary ? [[id, summary] as const] : [])));
    return view;
  }

  async function sessionNames(): Promise<string[]> {
    const found = new Set<string>();
    for (const name of await entriesOf(folder)) {
      const id = /^(.+?)\.json(\.bak)?$/.exec(name)?.[1];
      if (id !== undefined && isSessionId(id)) found.add(id);
    }
    return [...found];
  }

  return {
    summaries() {
      running ??= refresh().finally(() => {
        running = null;
      });
      return running;
    },

    async deleted() {
      await readDeleted();
      return deleted.ids;
    },
  };
}

async function inBatches(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined; id = ids[next++]) await work(id);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, ids.length) }, worker));
}

async function statsOf(file: string): Promise<BigIntStats | null> {
  try {
    return await stat(file, { bigint: true });
  } catch (error) {
    if (isNone(error)) return null;
    throw error;
  }
}

const isNone = (error: unknown): boolean =>
  isMissing(error) || (error instanceof Error && 'code' in error && error.code === 'ENOTDIR');

const stateOf = (stats: BigIntStats | null): string =>
  stats === null ? '-' : `${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isNone(error)) return [];
    throw error;
  }
}

/** What a file says; null where it is missing or no JSON. */
async function jsonOf(file: string): Promise<unknown> {
  try {
    return JSON.parse(String(await readPlainFile(file)));
  } catch (error) {
    if (error instanceof SyntaxError || isNone(error)) return null;
    throw error;
  }
}
