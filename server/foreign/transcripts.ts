/**
 * Transcripts of another program's sessions: the rows of its sidecar and of its state.db as one list by the same rules as
 * ours (`reconcile`), with the sessions that the conversation went through before, and an open turn as it ended. All of it
 * in memory: nothing is healed or saved there.
 */
import { createHash } from 'node:crypto';
import type { ForeignFolder, ForeignSidecar } from '../../db/files/foreign/folder.ts';
import { bytesOf, listOf, sizeOf } from '../../db/files/sidecar-rows.ts';
import type { SidecarHeader, SidecarRow, SidecarStore } from '../../db/files/sidecar-store.ts';
import type { ForeignStateDb } from '../../db/foreign/state-db.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import { fencesOf } from '../core/reconcile/fences.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import { SIDECAR_ROWS, stitch } from './lineage.ts';
import { openPrompt, withEnd } from './pending.ts';
import type { ForeignSession } from './session.ts';
import type { ForeignSources } from './sources.ts';

export interface ForeignTranscript {
  rows: readonly SidecarRow[];
  /** Tells this state of the transcript from every other. */
  tag: string;
  /** Under which id a row of the state.db is shown, by its number. */
  ids: ReadonlyMap<number, string>;
  /** All rows as JSON texts with commas between them. */
  body(): Buffer;
}

export interface ForeignTranscriptsParts {
  sources: ForeignSources;
  stateDb: ForeignStateDb | null;
  folder: ForeignFolder | null;
  /** Merges rows of a state.db that have no file. */
  merge: SidecarStore['merge'];
  /** Epoch seconds. */
  now(): number;
  /** A stable id of 32 hexadecimal digits for a turn that has none. */
  runIdFor(text: string): string;
  /** Most bytes of rows that are kept in memory. */
  cacheBytes: number;
}

export interface ForeignTranscripts {
  read(session: ForeignSession): Promise<ForeignTranscript>;
  /** How many rows it had when it was last read, if it has not changed since in what a list knows; else null. */
  countOf(session: ForeignSession): number | null;
}

/** One session alone, as its stores stood. */
interface Part {
  /** State of its files, of the database, and of its rows in that. */
  files: string;
  version: string | null;
  mark: string;
  rows: readonly SidecarRow[];
  ids: ReadonlyMap<number, string>;
  header: SidecarHeader | null;
  bytes: number;
}

interface Whole {
  /** Whether an open turn was given an end in it, which is looked for anew at each read. */
  settled: boolean;
  parts: readonly Part[];
  session: ForeignSession;
  transcript: ForeignTranscript;
  bytes: number;
}

/** Up to here all rows are read again when anything in the database changed: that costs no more than to prove it. */
const FEW_ROWS = 500;
/** What a row takes beside its text, about. */
const ROW_BYTES = 200;

export function createForeignTranscripts(parts: ForeignTranscriptsParts): ForeignTranscripts {
  const { sources, stateDb, folder } = parts;
  const kept = createKept<Part>(parts.cacheBytes / 2);
  const wholes = createKept<Whole>(parts.cacheBytes / 2);
  const loading = new Map<string, Promise<Part>>();

  async function markOf(session: ForeignSession): Promise<{ text: string; count: number }> {
    if (!stateDb || !session.state) return { text: '', count: 0 };
    const { count, last } = await stateDb.mark(session.row.session_id);
    return { text: `${count} ${last} ${session.state.mark}`, count };
  }

  async function load(session: ForeignSession, before: Part | undefined): Promise<Part> {
    const sessionId = session.row.session_id;
    // Both before what they tell of: what comes in between is another state, and is read again.
    const files = folder ? await folder.identity(sessionId) : '';
    const version = stateDb ? await stateDb.version() : null;
    if (before && before.files === files && before.version === version) return before;
    const mark = await markOf(session);
    if (before && before.files === files && before.mark === mark.text && mark.count > FEW_ROWS) {
      before.version = version;
      return before;
    }
    const found = folder && session.sidecar ? await folder.read(sessionId) : null;
    const merged = await mergeOf(sessionId, found, mark.count).catch((error) => {
      // A database that is broken at just these rows: the file is still what its person saw.
      if (!found || storageTroubleKind(error) !== 'unavailable') throw error;
      return mergeOf(sessionId, found, 0);
    });
    return {
      files,
      version,
      mark: mark.text,
      rows: merged.rows,
      ids: new Map(merged.names.map(({ rowId, id }) => [rowId, id])),
      header: found?.sidecar.header ?? null,
      bytes: sizeOf(listOf(merged.rows)),
    };
  }

  async function* rowsOf(sessionId: string) {
    if (stateDb) yield* stateDb.rows(sessionId);
  }

  function mergeOf(sessionId: string, found: ForeignSidecar | null, stateCount: number) {
    const rules = { fences: fencesOf(found?.sidecar.header ?? null), liveRunId: null };
    const state = () => (stateCount === 0 ? noRows() : rowsOf(sessionId));
    if (!found || !folder) {
      return parts.merge(sessionId, { found: null, rows: [], stateCount, state, ...rules });
    }
    const { rows } = found.sidecar;
    return folder.merge(sessionId, found.from, {
      found: { rows, identity: found.identity },
      rows,
      stateCount,
      state,
      ...rules,
    });
  }

  async function part(session: ForeignSession): Promise<Part> {
    const id = session.row.session_id;
    // One after the other: who waited may be owed what came meanwhile, and finds it cheaply.
    for (let other = loading.get(id); other; other = loading.get(id)) await other.catch(() => {});
    const work = load(session, kept.get(id));
    loading.set(id, work);
    try {
      const fresh = await work;
      kept.set(id, fresh);
      return fresh;
    } finally {
      loading.delete(id);
    }
  }

  return {
    async read(session) {
      const id = session.row.session_id;
      const chain: Part[] = [];
      for (const one of sources.lineage(session)) chain.push(await part(one));
      const last = chain.at(-1)!;
      const before = wholes.get(id);
      const isSame =
        before && before.parts.length === chain.length && before.parts.every((one, at) => one === chain[at]);
      const { header } = last;
      const open = header && folder ? await openPrompt(folder, id, header, parts.runIdFor) : null;
      if (isSame && !open && !before.settled) return before.transcript;
      let rows: SidecarRow[] = [];
      const ids = new Map<number, string>();
      for (const one of chain) {
        const stitched = stitch(rows, one.rows, SIDECAR_ROWS);
        rows = stitched.rows;
        for (const [rowId, rowName] of one.ids) ids.set(rowId, stitched.renamed.get(rowName) ?? rowName);
      }
      const settled = open && folder ? await withEnd(folder, id, rows, open, parts.now()) : null;
      rows = settled ?? rows;
      const transcript = toTranscript(rows, ids);
      const bytes = transcript.body().length + rows.length * ROW_BYTES;
      wholes.set(id, { parts: chain, settled: settled !== null, session, transcript, bytes });
      return transcript;
    },

    countOf(session) {
      const whole = wholes.get(session.row.session_id);
      return whole && whole.session === session ? whole.transcript.rows.length : null;
    },
  };
}

async function* noRows(): AsyncGenerator<RawRow[]> {}

function toTranscript(found: readonly SidecarRow[], ids: ReadonlyMap<number, string>): ForeignTranscript {
  const list = listOf(found);
  const body = bytesOf(list);
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { rows: list.rows, tag, ids, body: () => body };
}

/** What is kept in memory, least recently used first, up to so many bytes. */
function createKept<Value extends { bytes: number }>(most: number) {
  const values = new Map<string, Value>();
  let bytes = 0;
  const drop = (id: string): void => {
    bytes -= values.get(id)?.bytes ?? 0;
    values.delete(id);
  };
  return {
    get(id: string): Value | undefined {
      const value = values.get(id);
      if (value) {
        values.delete(id);
        values.set(id, value);
      }
      return value;
    },
    set(id: string, value: Value): void {
      drop(id);
      values.set(id, value);
      bytes += value.bytes;
      for (const oldest of values.keys()) {
        if (bytes <= most || values.size === 1) break;
        drop(oldest);
      }
    },
  };
}
