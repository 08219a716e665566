/**
 * The transcript of a session: one right list of rows from the stores, cached as serialised text.
 *
 * A read proves first that nothing changed (identity of the sidecar file, data version of the state DB) and answers
 * from memory; otherwise the work is done once, whoever asks (single flight). Only the holder of the lease saves;
 * a save extends what is there and never shrinks it (SC3), and memory changes only after it succeeded (SC2).
 */
import {
  type FileIdentity,
  type Sidecar,
  type SidecarHeader,
  type SidecarRow,
  type SidecarStore,
  toSidecarRow,
} from '../../db/files/sidecar-store.ts';
import type { SessionRow, Stores } from '../../db/stores.ts';
import { reconcileById } from '../core/reconcile/by-id.ts';
import type { Message } from '../core/terms.ts';

export interface Transcript {
  rows: readonly SidecarRow[];
  /** Whether the sidecar lacks rows that another store has, or still names a turn that has ended. */
  behind: boolean;
  /** All rows as JSON texts with commas between them, in bytes: made once, however often it is read. */
  body(): Buffer;
}

export interface TranscriptsParts {
  stores: Pick<Stores, 'messages' | 'sessions' | 'dataVersion'>;
  sidecars: SidecarStore;
  /** The run that is live in this process, if any: of it only the prompt is shown. */
  liveRunId(sessionId: string): string | null;
  /** A damaged file was found; it is moved aside when the transcript is next saved. */
  onDamaged(sessionId: string, reason: string): void;
  /** Most bytes of rows that are kept in memory. */
  cacheBytes: number;
}

export interface PendingTurn {
  runId: string;
  text: string;
  attachments: string[];
  /** Epoch seconds. */
  startedAt: number;
}

export interface Transcripts {
  read(sessionId: string): Promise<Transcript>;
  /**
   * Saves the sidecar with these rows added (those that it has already, by id, stay as they are), and with the fields
   * of the running turn. The caller holds the lease, and calls one at a time for a session.
   */
  save(
    sessionId: string,
    change: { rows: readonly Message[]; pending: PendingTurn | null; now: number },
  ): Promise<void>;
  forget(sessionId: string): void;
}

interface Entry {
  rows: readonly SidecarRow[];
  header: SidecarHeader | null;
  tail: Record<string, unknown>;
  identity: FileIdentity | null;
  dataVersion: number;
  damaged: boolean;
  behind: boolean;
  /** All rows joined, once somebody has asked for it. */
  body: Buffer | null;
  bytes: number;
}

export function createTranscripts(parts: TranscriptsParts): Transcripts {
  const { stores, sidecars, liveRunId } = parts;
  /** Least recently used first. */
  const cache = new Map<string, Entry>();
  const loading = new Map<string, Promise<Entry>>();
  let cachedBytes = 0;

  const drop = (sessionId: string): void => {
    cachedBytes -= cache.get(sessionId)?.bytes ?? 0;
    cache.delete(sessionId);
  };

  const keep = (sessionId: string, entry: Entry): void => {
    drop(sessionId);
    cache.set(sessionId, entry);
    cachedBytes += entry.bytes;
    for (const oldest of cache.keys()) {
      if (cachedBytes <= parts.cacheBytes || cache.size === 1) break;
      if (liveRunId(oldest) === null) drop(oldest);
      else break;
    }
  };

  const load = async (sessionId: string): Promise<Entry> => {
    const dataVersion = stores.dataVersion();
    const session = await stores.sessions.get(sessionId);
    // By the state DB, not by memory: a run that has settled is in the rows, and `read` hides it until it is published.
    const live = session?.open.find((open) => open.status === 'started')?.run_id ?? null;
    const read = await sidecars.read(sessionId);
    const state = await stores.messages.list(sessionId);
    const found: Sidecar | null = read.kind === 'found' ? read.sidecar : null;
    if (read.kind === 'damaged') parts.onDamaged(sessionId, read.reason);
    const merged = mergeRows(found?.rows ?? [], state, live);
    const stalePending =
      found !== null && found.header.active_stream_id !== null && found.header.active_stream_id !== live;
    return {
      rows: merged.rows,
      header: found?.header ?? null,
      tail: found?.tail ?? {},
      identity: read.kind === 'found' ? read.identity : null,
      dataVersion,
      damaged: read.kind === 'damaged',
      behind: merged.behind || stalePending || read.kind === 'damaged',
      body: null,
      bytes: bytesOf(merged.rows),
    };
  };

  const current = async (sessionId: string): Promise<Entry> => {
    const entry = cache.get(sessionId);
    if (
      entry &&
      entry.dataVersion === stores.dataVersion() &&
      !entry.damaged &&
      entry.identity === (await sidecars.identity(sessionId))
    ) {
      return entry;
    }
    let load_ = loading.get(sessionId);
    if (!load_) {
      load_ = load(sessionId).finally(() => loading.delete(sessionId));
      loading.set(sessionId, load_);
    }
    const fresh = await load_;
    keep(sessionId, fresh);
    return fresh;
  };

  return {
    async read(sessionId) {
      const entry = await current(sessionId);
      const rows = withoutOutputOf(liveRunId(sessionId), entry.rows);
      const body = (): Buffer => {
        if (rows !== entry.rows) return joined(rows);
        if (!entry.body) {
          entry.body = joined(rows);
          entry.bytes += entry.body.length;
          if (cache.get(sessionId) === entry) cachedBytes += entry.body.length;
        }
        return entry.body;
      };
      return { rows, behind: entry.behind, body };
    },

    async save(sessionId, { rows: added, pending, now }) {
      const entry = await current(sessionId);
      const known = new Set(entry.rows.map((row) => row.id));
      const rows = [...entry.rows, ...added.filter((row) => !known.has(row.id)).map(toSidecarRow)];
      const session = await stores.sessions.get(sessionId);
      if (!session) return; // Deleted meanwhile: nothing of it is written again.
      const header = headerOf(session, entry.header, pending);
      if (entry.damaged) await sidecars.moveAside(sessionId, now);
      const identity = await sidecars.save(sessionId, { header, rows, tail: entry.tail });
      keep(sessionId, {
        ...entry,
        rows,
        header,
        identity,
        damaged: false,
        behind: false,
        body: null,
        bytes: bytesOf(rows),
      });
    },

    forget: drop,
  };
}

const joined = (rows: readonly SidecarRow[]): Buffer => Buffer.from(rows.map((row) => row.json).join(','));

const bytesOf = (rows: readonly SidecarRow[]): number => rows.reduce((sum, row) => sum + row.json.length, 0);

/** Hides what the live run has said: readers have it from its events, and would see it twice. */
function withoutOutputOf(runId: string | null, rows: readonly SidecarRow[]): readonly SidecarRow[] {
  if (runId === null) return rows;
  const end = rows.findLastIndex((row) => row.runId !== runId || row.role === 'user') + 1;
  return end === rows.length ? rows : rows.slice(0, end);
}

/** Reconciles serialised sidecar rows with state rows; a row that is in both is not touched. */
function mergeRows(sidecar: readonly SidecarRow[], state: readonly Message[], live: string | null) {
  const ids = new Map(sidecar.map((row) => [row.id, row]));
  const shell = (row: SidecarRow): Message => {
    const bare: Message = { id: row.id, role: row.role as Message['role'], content: '', timestamp: 0 };
    if (row.runId !== null) bare.run_id = row.runId;
    return bare;
  };
  const { rows, sidecarBehind } = reconcileById({ sidecar: sidecar.map(shell), state, liveRunId: live });
  return { rows: rows.map((row) => ids.get(row.id) ?? toSidecarRow(row)), behind: sidecarBehind };
}

/** The scalar fields of a sidecar: copies of the row, the fields of the running turn, and what another program wrote. */
function headerOf(row: SessionRow, old: SidecarHeader | null, pending: PendingTurn | null): SidecarHeader {
  return {
    ...old,
    session_id: row.session_id,
    title: row.title ?? 'Untitled',
    workspace: row.workspace,
    model: row.model,
    project_id: row.project_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    pinned: row.pinned,
    archived: row.archived,
    manual_title: row.title_source === 'user',
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    estimated_cost: row.cost_usd,
    context_length: row.context_length,
    active_stream_id: pending?.runId ?? null,
    pending_user_message: pending?.text ?? null,
    pending_attachments: pending?.attachments ?? [],
    pending_started_at: pending?.startedAt ?? null,
    pending_user_source: null,
    edit_number: row.edit_number,
    message_count: 0,
  };
}
