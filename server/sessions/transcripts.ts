/**
 * The transcript of a session: one right list of rows from the stores, cached as serialised bytes.
 *
 * A read proves first that nothing changed (identity of the sidecar file, data version of the state DB, and when that moved
 * one probe of the session's rows) and answers from memory; otherwise the work is done once, whoever asks. Only the holder
 * of the lease saves; a save extends what is there and never shrinks it (SC3), and memory changes only after it
 * succeeded (SC2).
 */
import { createHash } from 'node:crypto';
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
import { type Tail, toSidecar } from '../../db/files/sidecar-text.ts';
import { StorageTrouble } from '../../db/storage-trouble.ts';
import type { Healing, SessionRow, StateIndex, Stores } from '../../db/stores.ts';
import { isMarkerId, isPromptId } from '../core/ids.ts';
import { isMarker } from '../core/marker.ts';
import { type Retry, retryField } from '../core/retry-rules.ts';
import type { Message } from '../core/terms.ts';
import { type Assembled, assemble } from './assemble.ts';
import { fieldsAfter } from './context-field.ts';
import { editOf, headerOf, type PendingTurn } from './sidecar-header.ts';
import { createBoundedCache } from './transcript-cache.ts';

export interface Transcript {
  rows: readonly SidecarRow[];
  /** Whether a store lacks something of it, or the sidecar still names a turn that has ended. */
  behind: boolean;
  /** Tells this state of the transcript from every other: a part of its ETag. */
  readonly tag: string;
  /** The fields of the sidecar beside its rows, as they were found. */
  header: SidecarHeader | null;
  /** Fields that stand behind the rows in the file, such as the context that another program gave its model. */
  tail: Readonly<Record<string, unknown>>;
  /** Whether a marker in it waits for output that may still appear. */
  readonly armed: boolean;
  /** All rows as JSON texts with commas between them: the very bytes in which they are kept, with the file's line breaks. */
  body(): Buffer;
}

export interface TranscriptsParts {
  stores: Pick<Stores, 'messages' | 'sessions' | 'dataVersion'>;
  sidecars: SidecarStore;
  /** The run that is live in this process, if any: of it only the prompt is shown. */
  liveRunId(sessionId: string): string | null;
  /** A damaged file was found; it, or a copy of it, is put aside when the transcript is next saved. */
  onDamaged(sessionId: string, reason: string): void;
  /** Most bytes of rows that are kept in memory. */
  cacheBytes: number;
}

/** A change of the rows themselves, by recovery: what stands where afterwards, and what the state DB must know of it. */
export interface Rewrite {
  rows: readonly SidecarRow[];
  /** Null when it is nothing that people see. */
  healing: Pick<Healing, 'rows' | 'inactive' | 'flags'> | null;
  /** Whether the turn that the sidecar calls pending has ended with it. */
  ended: boolean;
}

export interface Transcripts {
  read(sessionId: string): Promise<Transcript>;
  /**
   * Saves the sidecar with these rows added (those that it has already, by id, stay as they are), and with the fields
   * of the running turn; with a run they end with it, but not those of another. The caller holds the lease, and calls one at a time for a session.
   */
  save(
    sessionId: string,
    change: { rows: readonly Message[]; pending: PendingTurn | null; now: number; runId?: string; retry?: Retry },
  ): Promise<void>;
  /**
   * Brings every store to what the transcript says: ids for rows of other programs, rows that one of them lacks. Under the
   * lease and the lock, like `save`. When the file or a claim changed under it nothing is written, and the next read tries
   * again.
   */
  heal(sessionId: string, now: number): Promise<void>;
  /** Changes the rows by what recovery found out, in the state DB and then in the file. Under the lease and the lock. */
  rewrite(sessionId: string, change: (transcript: Transcript) => Rewrite | null, now: number): Promise<void>;
  /** This process wrote rows of the session to the state DB: the next read looks whether there is something new. */
  recheck(sessionId: string): void;
  forget(sessionId: string): void;
}

interface Entry {
  list: RowList;
  header: SidecarHeader | null;
  /** The fields behind the rows of the file, as it has them. */
  fields: Tail;
  identity: FileIdentity | null;
  dataVersion: number;
  /** What the state DB had of the session then; null when it had no row of it. */
  seen: string | null;
  /** Digest of all rows, once somebody has asked while the stores differed. */
  contentTag?: string;
  /** Generation of the session then. */
  generation: number;
  /** Whether a marker waits for output, once somebody has asked. */
  armed?: boolean;
  /** `wholly`: nothing of the file can be read; `partly`: what stands among its rows and is no message is left out. */
  damaged: 'no' | 'partly' | 'wholly';
  /** Whether the file has these rows and nothing else: then it need not be read again while it stays as it is. */
  isFile: boolean;
  /** Whether the file is not what a save would make of it. */
  sidecarBehind: boolean;
  /** What the state DB lacks; null when it lacks nothing. */
  healing: Pick<Healing, 'names' | 'rows' | 'inactive' | 'flags' | 'edit'> | null;
}

const NO_FIELDS: Tail = { tail: {} };

export function createTranscripts(parts: TranscriptsParts): Transcripts {
  const { stores, sidecars, liveRunId } = parts;
  const cache = createBoundedCache<Entry>(
    parts.cacheBytes,
    (entry) => sizeOf(entry.list) + (entry.fields.tailText?.text.length ?? 0),
    (sessionId) => liveRunId(sessionId) !== null,
  );
  const loading = new Map<string, Promise<Entry>>();
  /** Reads that were under way when their session was forgotten. */
  const voided = new WeakSet<Promise<Entry>>();
  /** The file as it stands: from memory where that has all of it, which after a change of the state DB alone it has. */
  const readFile = async (sessionId: string, meanwhile: () => void): Promise<SidecarRead> => {
    const entry = cache.get(sessionId);
    if (entry?.isFile && entry.header && entry.identity === (await sidecars.identity(sessionId))) {
      const { list, header, fields } = entry;
      const rows = list.rows as readonly SidecarRow[] as readonly FoundRow[];
      return { kind: 'found', sidecar: toSidecar(header, rows, fields), identity: entry.identity!, damage: null };
    }
    return sidecars.read(sessionId, meanwhile);
  };

  /** The file, and where the rows of the state DB stood when it had been read. */
  const readStores = async (sessionId: string) => {
    const dataVersion = stores.dataVersion();
    const before = await stores.sessions.get(sessionId);
    let early: Promise<StateIndex> | null = null;
    const read = await readFile(sessionId, () => {
      early ??= nextTurn().then(() => stores.messages.index(sessionId));
      early.catch(() => {}); // Seen below, unless the file fails first.
    });
    // An edit that was made while the file was read is in the file and in the row, and no late one.
    const isEdited = read.kind === 'found' && before && editOf(read.sidecar.header) > before.edit_number;
    const session = isEdited ? await stores.sessions.get(sessionId) : before;
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
    const damage = read.kind === 'damaged' ? read.reason : read.kind === 'found' ? read.damage : null;
    if (damage !== null) parts.onDamaged(sessionId, damage);
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
    const { rows, names, missing, inactive, edit } = assembled;
    // What a running turn has said is counted when it settles.
    const miscounted = session?.open.every(isWaiting) && session.message_count !== rows.length;
    const flags = damage === null || session?.flags.includes(DAMAGED) ? [] : [DAMAGED];
    const isOpen = names.length + missing.length + inactive.length + flags.length > 0 || edit !== null;
    const lacks = isOpen || miscounted === true;
    return {
      list: listOf(rows),
      header: found?.header ?? null,
      fields: found?.tailText ? fieldsAfter(assembled, found.tailText) : NO_FIELDS,
      identity: read.kind === 'missing' ? null : read.identity,
      dataVersion,
      seen: session && (await seenOf(session)),
      generation: session?.generation ?? 0,
      damaged: damage === null ? 'no' : read.kind === 'found' ? 'partly' : 'wholly',
      isFile: damage === null && isFileOf(found, assembled),
      sidecarBehind: assembled.sidecarBehind || damage !== null || (found === null && rows.length > 0),
      healing: lacks && session !== null ? { names, rows: missing, inactive, flags, edit } : null,
    };
  };

  /** What tells whether another connection wrote of this session: its row, and how many rows it has up to which. */
  const seenOf = async (session: SessionRow): Promise<string> => {
    const { count, last } = await stores.messages.extent(session.session_id);
    const open = session.open.map((row) => `${row.run_id} ${row.status}`).join();
    return `${session.revision} ${session.generation} ${count} ${last} ${open}`;
  };

  /** Whether nothing of the session changed since it was read, although something in the state DB did. */
  const isAsSeen = async (sessionId: string, entry: Entry): Promise<boolean> => {
    const dataVersion = stores.dataVersion();
    if (entry.dataVersion === dataVersion) return true;
    const session = await stores.sessions.get(sessionId);
    if (!session || entry.seen !== (await seenOf(session))) return false;
    entry.dataVersion = dataVersion;
    return true;
  };

  const current = async (sessionId: string): Promise<Entry> => {
    const entry = cache.get(sessionId);
    const isThere = entry?.damaged === 'no' && entry.identity === (await sidecars.identity(sessionId));
    if (isThere && (await isAsSeen(sessionId, entry))) return entry;
    const shared = loading.get(sessionId) ?? load(sessionId);
    loading.set(sessionId, shared);
    try {
      const fresh = await shared;
      // Forgotten meanwhile, for what it read is not what is there any more.
      if (voided.has(shared)) return await current(sessionId);
      cache.set(sessionId, fresh);
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
      behind: isBehind(entry),
      // While the stores differ, what the file alone says is not all that is shown.
      get tag() {
        if (!isBehind(entry)) return `${entry.identity ?? '-'}:${rows.length}`;
        entry.contentTag ??= createHash('sha256').update(bytesOf(list, rows.length)).digest('base64url');
        return entry.contentTag;
      },
      get armed() {
        entry.armed ??= list.rows.some(waitsForOutput);
        return entry.armed;
      },
      header: entry.header,
      get tail() {
        return fields.tail;
      },
      body: () => bytesOf(list, rows.length),
    };
  };

  /**
   * Writes the file, then changes memory: in this order only (SC2). `moved` when the file is no longer the one that was read:
   * then nothing is written, and it is read anew.
   */
  const write = async (
    sessionId: string,
    entry: Entry,
    change: { rows: readonly SidecarRow[]; pending: PendingTurn | null | 'keep'; now: number },
    listOfSaved: () => RowList,
  ): Promise<'saved' | 'moved' | 'deleted'> => {
    const session = await stores.sessions.get(sessionId);
    if (!session) return 'deleted'; // Nothing of it is written again.
    const header = headerOf(session, entry.header, change.pending);
    // What nobody can read makes room; what has good rows stays until they are in the new file.
    const isNone = entry.damaged === 'wholly';
    const isStill = isNone && (await sidecars.identity(sessionId)) === entry.identity;
    if (isStill) await sidecars.moveAside(sessionId, change.now);
    const sidecar = toSidecar(header, change.rows, entry.fields);
    const copiedAt = entry.damaged === 'partly' ? change.now : undefined;
    const identity = await sidecars.saveOver(sessionId, sidecar, isNone ? null : entry.identity, copiedAt);
    if (identity === null) {
      cache.delete(sessionId);
      return 'moved';
    }
    const list = listOfSaved();
    const isFile = entry.isFile && list.rows.every((row) => row.stored === undefined);
    const seen = await seenOf(session);
    const { armed: _armed, contentTag: _tag, ...same } = entry;
    const { generation } = session;
    const saved = { list, header, identity, seen, generation, damaged: 'no', isFile, sidecarBehind: false } as const;
    cache.set(sessionId, { ...same, ...saved });
    return 'saved';
  };

  /** @returns whether the state DB is as the transcript wants it; a claim that came in between is not written over */
  const healStateDb = async (sessionId: string, entry: Entry, now: number): Promise<boolean> => {
    if (!entry.healing) return true;
    const { generation } = entry;
    const healing = { ...entry.healing, ...countOf(entry.list.rows), generation, now };
    if ((await stores.messages.heal(sessionId, healing)) === 'moved') {
      cache.delete(sessionId);
      return false;
    }
    // Once is enough, also when the file cannot be saved behind it.
    entry.healing = null;
    return true;
  };

  return {
    read: async (sessionId) => viewOf(sessionId, await current(sessionId)),

    async save(sessionId, { rows: wanted, pending, now, runId, retry }) {
      // The end of a turn of ours ends no other that the file names since.
      const ended = ({ header }: Entry) =>
        pending === null && runId !== undefined && header?.active_stream_id && header.active_stream_id !== runId
          ? 'keep'
          : pending;
      // Another program that saves the same file meanwhile is read first, so that nothing of it is lost.
      for (let round = 0; ; round += 1) {
        const entry = await current(sessionId);
        const { list } = entry;
        const there = new Set(wanted.map((row) => row.id));
        const known = new Set(list.rows.flatMap((row) => (there.has(row.id) ? [row.id] : [])));
        const added = wanted.filter((row) => !known.has(row.id)).map((row) => toStoredRow(row, retry));
        const rows = [...list.rows, ...added];
        const saved = await write(sessionId, entry, { rows, pending: ended(entry), now }, () => appended(list, added));
        if (saved !== 'moved') return;
        if (round === ROUNDS) throw new StorageTrouble('busy', `the sidecar of ${sessionId} changes all the time`);
      }
    },

    async heal(sessionId, now) {
      const entry = await current(sessionId);
      if (!(await healStateDb(sessionId, entry, now)) || !entry.sidecarBehind) return;
      await write(sessionId, entry, { rows: entry.list.rows, pending: 'keep', now }, () => entry.list);
    },

    async rewrite(sessionId, change, now) {
      const entry = await current(sessionId);
      const view = viewOf(sessionId, entry);
      // What is changed is made of copies, as of any rows.
      const rewritten = change({
        ...view,
        tag: view.tag,
        armed: view.armed,
        tail: view.tail,
        rows: view.rows.map(plainRow),
      });
      if (!rewritten || (await sidecars.identity(sessionId)) !== entry.identity) return;
      const { rows, healing, ended } = rewritten;
      if (healing) {
        const {
          names,
          rows: missing,
          inactive,
          flags = [],
          edit = null,
        } = entry.healing ?? { names: [], rows: [], inactive: [] };
        const healed = await stores.messages.heal(sessionId, {
          names,
          rows: [...missing, ...inOrder(healing.rows, rows)],
          inactive: [...inactive, ...healing.inactive],
          ...countOf(rows),
          generation: entry.generation,
          flags: [...flags, ...(healing.flags ?? [])],
          edit,
          now,
        });
        if (healed === 'moved') {
          cache.delete(sessionId);
          return;
        }
      }
      const rest = healing ? null : entry.healing;
      const pending = ended ? null : 'keep';
      await write(sessionId, { ...entry, healing: rest, isFile: false }, { rows, pending, now }, () => listOf(rows));
    },

    recheck(sessionId) {
      const entry = cache.get(sessionId);
      if (entry) entry.dataVersion = Number.NaN;
    },

    forget(sessionId) {
      cache.delete(sessionId);
      const shared = loading.get(sessionId);
      if (shared) voided.add(shared);
      loading.delete(sessionId);
    },
  };
}

/** The session's word for a sidecar that was damaged when it was read. */
const DAMAGED = 'damaged_sidecar';

/** How often a save reads the file anew that another program keeps changing. */
const ROUNDS = 5;

/** Whether a row is a marker whose output, or more of it, may still appear. */
const waitsForOutput = (row: SidecarRow): boolean =>
  (isMarkerId(row.id) && row.json.includes('"recovery":"pending"')) || row.stored?.includes('_journal_retry') === true;

/**
 * Of rows that recovery adds, those that the state DB can keep in order: it knows no other than that of its rows, so one
 * that belongs before rows which it has stays in the sidecar, and in its journal. Rows that it has are brought up to date.
 */
function inOrder(added: readonly Message[], rows: readonly SidecarRow[]): Message[] {
  const ids = new Set(added.map((row) => row.id));
  const last = rows.findLastIndex((row) => !ids.has(row.id));
  const atEnd = new Set(rows.slice(last + 1).map((row) => row.id));
  return added.filter((row) => atEnd.has(row.id) || isMarker(row));
}

/** A marker that waits for its output is stored with what its retry needs. */
function toStoredRow(message: Message, retry?: Retry): SidecarRow {
  const row = toSidecarRow(message);
  if (!retry || !isMarker(message)) return row;
  return { ...row, stored: JSON.stringify({ ...message, ...retryField(retry) }) };
}

const isBehind = (entry: Entry): boolean => entry.sidecarBehind || entry.healing !== null;

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
  const end = rows.findLastIndex((row) => row.runId !== runId || isPromptId(row.id)) + 1;
  return end === rows.length ? rows : rows.slice(0, end);
}
