/**
 * A folder of sidecars that another program writes (hermes-webui, `sessions/`): its files are read, and nothing in it or
 * beside it is ever written. Of a session the live file counts, or its `.bak` where that holds what the live one has
 * lost (`backup-rule`). What was deleted there is not shown; its `_index.json` is no more than a hint of what changed.
 */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { isSessionId } from '../../../server/core/ids.ts';
import { isMissing } from '../atomic.ts';
import { createJournalStore, type JournalStore } from '../journal.ts';
import { createPaths } from '../paths.ts';
import {
  createSidecarStore,
  type FileIdentity,
  type FoundRow,
  type MergedRows,
  type MergeInput,
  type Sidecar,
  type SidecarRead,
} from '../sidecar-store.ts';
import { backupCounts } from './backup-rule.ts';
import { createFolderScan } from './folder-scan.ts';
import { readLoosely } from './loose-sidecar.ts';
import type { SidecarSummary } from './summary.ts';
import { createTurnJournals, type OpenTurn } from './turn-journal.ts';

/** A sidecar as it stands, and which of its files it is. */
export interface ForeignSidecar {
  from: 'live' | 'backup';
  sidecar: Sidecar<FoundRow>;
  identity: FileIdentity;
}

/** A file that was attached to a session. */
export interface ForeignAttachment {
  name: string;
  /** Absolute. */
  path: string;
  bytes: number;
}

export interface ForeignFolder {
  /** Absolute path of the folder. */
  readonly path: string;
  /**
   * What each session's files say in their headers, by id; deleted ones are left out. Costs a few looks at the folder while
   * nothing in it changed. An empty map where there is no such folder.
   */
  summaries(): Promise<ReadonlyMap<string, SidecarSummary>>;
  /** Ids that were deleted there: the same set while nothing was. One of them that has a summary was saved again since. */
  deleted(): Promise<ReadonlySet<string>>;
  /** Another text whenever a file of the session changed. */
  identity(sessionId: string): Promise<string>;
  /** The sidecar that counts; null where neither file can be read. */
  read(sessionId: string): Promise<ForeignSidecar | null>;
  /** Makes one list of the rows of a sidecar and those of a state.db, in a thread of its own when they are many. */
  merge(sessionId: string, from: ForeignSidecar['from'], input: MergeInput): Promise<MergedRows>;
  /** Run journals of version 1, `_run_journal/<session>/<run>.jsonl`. */
  readonly journals: Pick<JournalStore, 'readForeign' | 'read'>;
  /** A prompt of the session that was accepted and has no end, by the turn journals. */
  openTurn(sessionId: string): Promise<OpenTurn | null>;
  /** Files that were uploaded to a session: `attachments/<session>/` beside the folder. */
  attachments(sessionId: string): Promise<ForeignAttachment[]>;
}

/** @param folder absolute path; it may come and go */
export function openForeignFolder(folder: string): ForeignFolder {
  const paths = createPaths(path.dirname(folder), folder);
  const backupPaths = { ...paths, sidecar: (id: string) => `${paths.sidecar(id)}.bak` };
  const stores = { live: createSidecarStore(paths), backup: createSidecarStore(backupPaths) };
  const scan = createFolderScan(folder, stores);
  const turns = createTurnJournals(folder);

  async function read(sessionId: string): Promise<ForeignSidecar | null> {
    const [live, backup] = [await stores.live.read(sessionId), await stores.backup.readHeader(sessionId)];
    // A row that is none, or fields in another order, make no difference to its own program.
    const found = live.kind === 'damaged' ? await readLoosely(paths.sidecar(sessionId), sessionId) : foundOf(live);
    const told = backup?.message_count;
    // Its header tells what it would have: mostly it need not be read.
    if (backup && (!found || typeof told !== 'number' || told > found.sidecar.rows.length)) {
      const older = await stores.backup.read(sessionId);
      if (older.kind === 'found' && (!found || backupCounts(candidate(found.sidecar), candidate(older.sidecar)))) {
        return { from: 'backup', sidecar: older.sidecar, identity: older.identity };
      }
    }
    return found && { from: 'live', sidecar: found.sidecar, identity: found.identity };
  }

  return {
    path: folder,
    summaries: () => scan.summaries(),
    deleted: () => scan.deleted(),

    async identity(sessionId) {
      const [live, backup] = await Promise.all([stores.live.identity(sessionId), stores.backup.identity(sessionId)]);
      return `${live ?? '-'} ${backup ?? '-'}`;
    },

    read,
    merge: (sessionId, from, input) => stores[from].merge(sessionId, input),
    journals: createJournalStore(paths),
    openTurn: (sessionId) => turns.openTurn(sessionId),

    async attachments(sessionId) {
      if (!isSessionId(sessionId)) return [];
      const place = path.join(path.dirname(folder), 'attachments', sessionId);
      const names = await entriesOf(place);
      const found = await Promise.all(
        names.map(async (name): Promise<ForeignAttachment[]> => {
          const file = path.join(place, name);
          const stats = await stat(file).catch(() => null);
          return stats?.isFile() ? [{ name, path: file, bytes: stats.size }] : [];
        }),
      );
      return found.flat();
    },
  };
}

const foundOf = (read: SidecarRead) => (read.kind === 'found' ? read : null);

const candidate = ({ header, rows, tail }: Sidecar<FoundRow>) => ({ header, rows: rows.length, tail });

async function entriesOf(place: string): Promise<string[]> {
  try {
    return (await readdir(place)).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
