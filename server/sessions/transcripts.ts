/**
 * The transcript of a session: one right list of rows from the stores, cached as serialised bytes.
 *
 * A read proves first that nothing changed (identity of the sidecar file, data version of the state DB) and answers
 * from memory; otherwise the work is done once, whoever asks (single flight). Only the holder of the lease saves;
 * a save extends what is there and never shrinks it (SC3), and memory changes only after it succeeded (SC2).
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { appended, bytesOf, listOf, plainRow, type RowList, sizeOf } from '../../db/files/sidecar-rows.ts';
import {
  type FileIdentity,
  type FoundRow,
  type Sidecar,
  type SidecarHeader,
  type SidecarRead,
  type SidecarRow,
  type SidecarStore,
  toSidecarRow,
} from '../../db/files/sidecar-store.ts';
import { lazyTail, type Tail, toSidecar } from '../../db/files/sidecar-text.ts';
import type { Healing, SessionRow, StateIndex, Stores } from '../../db/stores.ts';
import { isMarker } from '../core/marker.ts';
import { type Retry, retryField } from '../core/retry-rules.ts';
import type { Message } from '../core/terms.ts';
import { type Assembled, assemble } from './assemble.ts';

export interface Transcript {
  rows: readonly SidecarRow[];
  /** Whether a store lacks something of it, or the sidecar still names a turn that has ended. */
  behind: boolean;
  /** Tells this state of the transcript from every other: a part of its ETag. */
  tag: string;
  /** The fields of the sidecar beside its rows, as they were found. */
  header: SidecarHeader | null;
  /** Fields that stand behind the rows in the file, such as the context that another program gave its model. */
  tail: Readonly<Record<string, unknown>>;
  /** All rows as JSON texts with commas between them: the very bytes in which they are kept, with the file's line breaks. */
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

/** A change of the rows themselves, by recovery: what stands where afterwards, and what the state DB must know of it. */
export interface Rewrite {
  rows: readonly SidecarRow[];
  /** Null when it is nothing that people see. */
  healing: (Pick<Healing, 'rows' | 'inactive'> & { flag?: string }) | null;
  /** Whether the turn that the sidecar calls pending has ended with it. */
  ended: boolean;
}

export interface Transcripts {
  read(sessionId: string): Promise<Transcript>;
  /**
   * Saves the sidecar with these rows added (those that it has already, by id, stay as they are), and with the fields
   * of the running turn. The caller holds the lease, and calls one at a time for a session.
   */
  save(
    sessionId: string,
    change: { rows: readonly Message[]; pending: PendingTurn | null; now: number; retry?: Retry },
  ): Promise<void>;
  /**
   * Brings every store to what the transcript says: ids for rows of other programs, rows that one of them lacks. Under the
   * lease and the lock, like `save`. `moved` when the file changed under it: nothing of it was written, the next read
   * tries again.
   */
  heal(sessionId: string, now: number): Promise<'healed' | 'moved'>;
  /** Changes the rows by what recovery found out, in the state DB and then in the file. Under the lease and the lock. */
  rewrite(sessionId: string, change: (transcript: Transcript) => Rewrite | null, now: number): Promise<void>;
  forget(sessionId: string): void;
}

interface Entry {
  list: RowList;
  header: SidecarHeader | null;
  /** The fields behind the rows of the file, as it has them. */
  fields: Tail;
  identity: FileIdentity | null;
  dataVersion: number;
  damaged: boolean;
  /** Whether the file has these rows and nothing else: then it need not be read again while it stays as it is. */
  isFile: boolean;
  /** Whether the file is not what a save would make of it. */
  sidecarBehind: boolean;
  /** What the state DB lacks; null when it lacks nothing. */
  healing: Pick<Healing, 'names' | 'rows' | 'inactive'> | null;
}

const NO_FIELDS: Tail = { tail: {} };

export function createTranscripts(parts: TranscriptsParts): Transcripts {
  const { stores, sidecars, liveRunId } = parts;
  /** Least recently used first. */
  const cache = new Map<string, Entry>();
  /** What each of them takes of the memory. */
  const kept = new Map<string, number>();
  const loading = new Map<string, Promise<Entry>>();
  /** Reads that were under way when their session was forgotten. */
  const voided = new WeakSet<Promise<Entry>>();
  let cachedBytes = 0;

  const drop = (sessionId: string): void => {
    cachedBytes -= kept.get(sessionId) ?? 0;
    kept.delete(sessionId);
    cache.delete(sessionId);
  };

  const keep = (sessionId: string, entry: Entry): void => {
    drop(sessionId);
    cache.set(sessionId, entry);
    const bytes = sizeOf(entry.list) + (entry.fields.tailText?.text.length ?? 0);
    kept.set(sessionId, bytes);
    cachedBytes += bytes;
    for (const oldest of cache.keys()) {
      if (cachedBytes <= parts.cacheBytes || cache.size === 1) break;
      if (liveRunId(oldest) === null) drop(oldest);
      else break;
    }
  };

  /** The file as it stands: from memory where that has all of it, which after a change of the state DB alone it has. */
  const readFile = async (sessionId: string, meanwhile: () => void): Promise<SidecarRead> => {
    const entry = cache.get(sessionId);
    if (entry?.isFile && entry.header && entry.identity === (await sidecars.identity(sessionId))) {
      const { list, header, fields } = entry;
      const rows = list.rows as readonly SidecarRow[] as readonly FoundRow[];
      return { kind: 'found', sidecar: toSidecar(header, rows, fields), identity: entry.identity! };
    }
    return sidecars.read(sessionId, meanwhile);
  };

  /** The file, and where the rows of the state DB stood when it had been read. */
  const readStores = async (sessionId: string) => {
    const dataVersion = stores.dataVersion();
    const session = await stores.sessions.get(sessionId);
    let early: Promise<StateIndex> | null = null;
    const read = await readFile(sessionId, () => {
      early ??= nextTurn().then(() => stores.messages.index(sessionId));
      early.catch(() => {}); // Seen below, unless the file fails first.
    });
    if (early === null) return { dataVersion, session, read, index: await stores.messages.index(sessionId) };
    // What was committed while the file was read may be in the file already, and is to be in the index too.
    const isStill = dataVersion === stores.dataVersion() && isUntouched(session, await stores.sessions.get(sessionId));
    return { dataVersion, session, read, index: await (isStill ? early : stores.messages.index(sessionId)) };
  };

  const load = async (sessionId: string): Promise<Entry> => {
    const { dataVersion, session, read, index } = await readStores(sessionId);
    // By the state DB, not by memory: a run that has settled is in the rows, and `read` hides it until it is published.
    const live = session?.open.find((open) => open.status === 'started')?.run_id ?? null;
    const found = read.kind === 'found' ? read.sidecar : null;
    if (read.kind === 'damaged') parts.onDamaged(sessionId, read.reason);
    const assembled = await assemble({
      found:
        read.kind === 'found'
          ? { header: read.sidecar.header, rows: read.sidecar.rows, identity: read.identity }
          : null,
      session,
      index,
      messages: stores.messages,
      sidecars,
      sessionId,
      live,
    });
    const { rows, names, missing, inactive } = assembled;
    // What a running turn has said is counted when it settles.
    const miscounted = session?.open.every(isWaiting) && session.message_count !== rows.length;
    const lacks = names.length + missing.length + inactive.length > 0 || miscounted === true;
    return {
      list: listOf(rows),
      header: found?.header ?? null,
      fields: found?.tailText ? lazyTail(found.tailText) : NO_FIELDS,
      identity: read.kind === 'found' ? read.identity : null,
      dataVersion,
      damaged: read.kind === 'damaged',
      isFile: isFileOf(found, assembled),
      sidecarBehind: assembled.sidecarBehind || read.kind === 'damaged' || (found === null && rows.length > 0),
      healing: lacks && session !== null ? { names, rows: missing, inactive } : null,
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
    const shared = loading.get(sessionId) ?? load(sessionId);
    loading.set(sessionId, shared);
    try {
      const fresh = await shared;
      // Forgotten meanwhile, for what it read is not what is there any more.
      if (voided.has(shared)) return await current(sessionId);
      keep(sessionId, fresh);
      return fresh;
    } finally {
      if (loading.get(sessionId) === shared) loading.delete(sessionId);
    }
  };

  const viewOf = (sessionId: string, entry: Entry): Transcript => {
    const { list, fields } = entry;
    const rows = withoutOutputOf(liveRunId(sessionId), list.rows);
    return {
      rows,
      behind: entry.sidecarBehind || entry.healing !== null,
      tag: `${entry.identity ?? '-'}:${rows.length}`,
      header: entry.header,
      get tail() {
        return fields.tail;
      },
      body: () => bytesOf(list, rows.length),
    };
  };

  /** Writes the file, then changes memory: in this order only (SC2). */
  const write = async (
    sessionId: string,
    entry: Entry,
    change: { rows: readonly SidecarRow[]; pending: PendingTurn | null | 'keep'; now: number },
    listOfSaved: () => RowList,
  ): Promise<void> => {
    const session = await stores.sessions.get(sessionId);
    if (!session) return; // Deleted meanwhile: nothing of it is written again.
    const header = headerOf(session, entry.header, change.pending);
    if (entry.damaged) await sidecars.moveAside(sessionId, change.now);
    const identity = await sidecars.save(sessionId, toSidecar(header, change.rows, entry.fields));
    const list = listOfSaved();
    const isFile = entry.isFile && list.rows.every((row) => row.stored === undefined);
    keep(sessionId, { ...entry, list, header, identity, damaged: false, isFile, sidecarBehind: false });
  };

  const healStateDb = async (sessionId: string, entry: Entry, now: number): Promise<void> => {
    if (!entry.healing) return;
    await stores.messages.heal(sessionId, { ...entry.healing, ...countOf(entry.list.rows), now });
    // Once is enough, also when the file cannot be saved behind it.
    entry.healing = null;
  };

  return {
    read: async (sessionId) => viewOf(sessionId, await current(sessionId)),

    async save(sessionId, { rows: wanted, pending, now, retry }) {
      const entry = await current(sessionId);
      const { list } = entry;
      const there = new Set(wanted.map((row) => row.id));
      const known = new Set(list.rows.flatMap((row) => (there.has(row.id) ? [row.id] : [])));
      const added = wanted.filter((row) => !known.has(row.id)).map((row) => toStoredRow(row, retry));
      const rows = [...list.rows, ...added];
      await write(sessionId, entry, { rows, pending, now }, () => appended(list, added));
    },

    async heal(sessionId, now) {
      const entry = await current(sessionId);
      await healStateDb(sessionId, entry, now);
      if (!entry.sidecarBehind) return 'healed';
      // Another program may have saved the file meanwhile: what it wrote is read first.
      if ((await sidecars.identity(sessionId)) !== entry.identity && !entry.damaged) return 'moved';
      await write(sessionId, entry, { rows: entry.list.rows, pending: 'keep', now }, () => entry.list);
      return 'healed';
    },

    async rewrite(sessionId, change, now) {
      const entry = await current(sessionId);
      const view = viewOf(sessionId, entry);
      // What is changed is made of copies, as of any rows.
      const rewritten = change({ ...view, rows: view.rows.map(plainRow) });
      if (!rewritten) return;
      const { rows, healing, ended } = rewritten;
      if (healing) {
        const { names, rows: missing, inactive } = entry.healing ?? { names: [], rows: [], inactive: [] };
        await stores.messages.heal(sessionId, {
          names,
          rows: [...missing, ...healing.rows],
          inactive: [...inactive, ...healing.inactive],
          ...countOf(rows),
          ...(healing.flag === undefined ? {} : { flag: healing.flag }),
          now,
        });
      }
      const rest = healing ? null : entry.healing;
      const pending = ended ? null : 'keep';
      await write(sessionId, { ...entry, healing: rest, isFile: false }, { rows, pending, now }, () => listOf(rows));
    },

    forget(sessionId) {
      drop(sessionId);
      const shared = loading.get(sessionId);
      if (shared) voided.add(shared);
      loading.delete(sessionId);
    },
  };
}

/** A marker that waits for its output is stored with what its retry needs. */
function toStoredRow(message: Message, retry?: Retry): SidecarRow {
  const row = toSidecarRow(message);
  if (!retry || !isMarker(message)) return row;
  return { ...row, stored: JSON.stringify({ ...message, ...retryField(retry) }) };
}

const isWaiting = (open: { status: string }): boolean => open.status === 'queued';

/** What the session's row counts of its transcript. */
function countOf(rows: readonly SidecarRow[]): Pick<Healing, 'count' | 'lastMessageAt'> {
  const last = rows.at(-1);
  const { timestamp } = last ? (JSON.parse(last.json) as Message) : { timestamp: null };
  return { count: rows.length, lastMessageAt: timestamp || null };
}

/** Whether nothing was written of a session between two reads of its row, and no turn of it runs. */
function isUntouched(before: SessionRow | null, after: SessionRow | null): boolean {
  if (!before || !after) return before === after;
  const isSame = before.revision === after.revision && before.generation === after.generation;
  return isSame && after.open.every(isWaiting) && before.open.every(isWaiting);
}

/** Whether a file has these rows as they are, so that they can stand for it. */
const isFileOf = (found: Sidecar<FoundRow> | null, { rows, sidecarBehind }: Assembled): boolean =>
  found !== null &&
  !sidecarBehind &&
  (rows as readonly unknown[]) === found.rows &&
  found.rows.every((row) => row.plain);

/** Hides what the live run has said: readers have it from its events, and would see it twice. */
function withoutOutputOf(runId: string | null, rows: readonly SidecarRow[]): readonly SidecarRow[] {
  if (runId === null) return rows;
  const end = rows.findLastIndex((row) => row.runId !== runId || row.role === 'user') + 1;
  return end === rows.length ? rows : rows.slice(0, end);
}

/** The scalar fields of a sidecar: copies of the row, the fields of the running turn, and what another program wrote. */
function headerOf(row: SessionRow, old: SidecarHeader | null, pending: PendingTurn | null | 'keep'): SidecarHeader {
  const turn = pending === 'keep' ? turnOf(old) : turnFields(pending);
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
    ...turn,
    edit_number: row.edit_number,
    message_count: 0,
  };
}

const TURN_FIELDS = [
  'active_stream_id',
  'pending_user_message',
  'pending_attachments',
  'pending_started_at',
  'pending_user_source',
] as const;

type TurnFields = Pick<SidecarHeader, (typeof TURN_FIELDS)[number]>;

/** The fields of the running turn. */
const turnFields = (pending: PendingTurn | null): TurnFields => ({
  active_stream_id: pending?.runId ?? null,
  pending_user_message: pending?.text ?? null,
  pending_attachments: pending?.attachments ?? [],
  pending_started_at: pending?.startedAt ?? null,
  pending_user_source: null,
});

/** The same as they stand: whether that turn still lives is not for a save to judge. */
const turnOf = (old: SidecarHeader | null): TurnFields =>
  old ? (Object.fromEntries(TURN_FIELDS.map((field) => [field, old[field] ?? null])) as TurnFields) : turnFields(null);
