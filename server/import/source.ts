/**
 * Where conversations come from, in all forms in which an import takes them: a home of Hermes, of hermes-webui or of
 * Turnkeep, a state.db alone, a folder of sidecars, one sidecar, one exported document. Nothing of them is ever written.
 */
import path from 'node:path';
import { namesIn } from '../../db/files/absent.ts';
import { lookAtDatabase } from '../../db/files/foreign/database-place.ts';
import { type ForeignFolder, openForeignFolder } from '../../db/files/foreign/folder.ts';
import {
  filesOf,
  isUnreadable,
  journalsIn,
  lookAtImport,
  readJson,
  realPlace,
  type SourceFile,
  sidecarsIn,
} from '../../db/files/import-files.ts';
import type { Tail } from '../../db/files/sidecar-text.ts';
import { type ImportSource, openImportSource, type SourceSession } from '../../db/import-source.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { Project } from '../../db/stores.ts';
import { isSessionId } from '../core/ids.ts';
import { fencesOf } from '../core/reconcile/fences.ts';
import { idOf, type RawRow } from '../core/reconcile/row.ts';
import type { Conversation, Loaded, Source } from './conversation.ts';
import { type Part, wholeOf } from './lineage.ts';
import { openFile } from './one-file.ts';
import { withJournaledTurn } from './open-turn.ts';
import type { SourceHeader } from './session-fields.ts';
import { toTranscript } from './transcript.ts';

export interface SourceParts {
  /** A folder of our own for a private copy of a database. */
  copies: string;
  sleep(ms: number): Promise<void>;
}

const NO_TAIL: Tail = { tail: {} };
const nothing = async (): Promise<never[]> => [];

/** @returns a string when there is nothing that can be imported: why */
export async function openSource(place: string, parts: SourceParts): Promise<Source | string> {
  const found = await lookAtImport(place);
  if (found.kind === 'missing') return `${place} is not there.`;
  if (found.kind === 'neither') return `${place} is neither a folder nor a file.`;
  if (found.kind === 'folder') return openHome(await realPlace(place), await lookAtReal(place), parts);
  if (found.beginning.toString('latin1').startsWith('SQLite format 3')) {
    const file = await realPlace(place);
    return openHome(path.dirname(file), { stateDb: file, sidecars: null, base: path.dirname(file) }, parts);
  }
  return openFile(await realPlace(place));
}

interface HomePlaces {
  stateDb: string | null;
  sidecars: string | null;
  base: string;
}

async function lookAtReal(place: string): Promise<HomePlaces> {
  const found = await lookAtImport(await realPlace(place));
  if (found.kind !== 'folder') throw new Error(`${place} was replaced while it was looked at`);
  return found;
}

async function openHome(home: string, places: HomePlaces, parts: SourceParts): Promise<Source | string> {
  const { stateDb, sidecars, base } = places;
  const db = stateDb === null ? null : openImportSource(stateDb, parts.copies, parts.sleep);
  try {
    const owner = (await db?.owner()) ?? 'none';
    const folder = sidecars === null ? null : openForeignFolder(sidecars);
    const names = sidecars === null ? [] : await sidecarsIn(sidecars);
    if (owner === 'none' && names.length === 0) {
      await db?.close();
      return `${home} holds no conversations that can be read: no state.db with sessions, and no sidecars.`;
    }
    const sessions = (await db?.sessions()) ?? new Map<string, SourceSession>();
    const waiting = (await db?.waiting()) ?? new Set<string>();
    const withFile = new Set(names);
    const ids = new Set([...sessions.keys(), ...names]);
    const conversations: Conversation[] = [];
    const deleted = await deletedIn(folder);
    const isOurs = owner === 'turnkeep';
    const inFolder = (id: string) => (folder && withFile.has(id) ? folder : null);
    const partOf = async (id: string): Promise<Part | string | null> => {
      const summary = sessions.get(id) ?? null;
      const loaded = await load(id, summary, db, inFolder(id), isOurs);
      return loaded === null || typeof loaded === 'string' ? loaded : { id, summary, loaded };
    };
    const find = async (id: string): Promise<Part | null> => {
      const found = ids.has(id) && !deleted.has(id) ? await partOf(id) : null;
      return typeof found === 'string' ? null : found;
    };
    for (const id of ids) {
      if (deleted.has(id)) continue;
      const summary = sessions.get(id) ?? null;
      const files = inFolder(id);
      conversations.push({
        id,
        keepsId: isSessionId(id),
        seen: JSON.stringify(await seenOf(id, summary, files)),
        summary,
        createdAt: summary?.created_at ?? Number.POSITIVE_INFINITY,
        waits: waiting.has(id),
        async load() {
          const part = await partOf(id);
          // A session of ours has what was before it already.
          return part === null || typeof part === 'string' ? part : isOurs ? part.loaded : wholeOf(part, find);
        },
        attachments: (before) => attachmentsIn(path.join(base, 'attachments'), [...before].reverse().concat(id)),
        journals: () => (sidecars === null ? nothing() : journalsIn(sidecars, id)),
      });
    }
    // A parent comes before what continues it.
    conversations.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    return {
      home,
      label: path.basename(home) || home,
      conversations,
      projects: new Map(
        [...((await db?.projects()) ?? []), ...(await projectsOf(base))].map((one) => [one.project_id, one]),
      ),
      roots: [path.join(base, 'attachments')],
      profiles: await profilesIn(home),
      close: async () => db?.close(),
    };
  } catch (error) {
    await db?.close();
    throw error;
  }
}

/** What tells one state of a conversation from another. */
async function seenOf(id: string, summary: SourceSession | null, folder: ForeignFolder | null): Promise<unknown[]> {
  const seen = [summary?.mark, summary?.rowMark, folder ? await folder.identity(id) : null];
  const turn = await folder?.openTurn(id);
  return turn ? [...seen, turn.startedAt] : seen;
}

/** Files of these sessions; of two with one name the last. */
async function attachmentsIn(folder: string, ids: readonly string[]): Promise<SourceFile[]> {
  const found: SourceFile[] = [];
  for (const id of ids) found.push(...(await filesOf(folder, id)));
  return found;
}

/** Homes of named profiles, which Hermes keeps below its own. */
async function profilesIn(home: string): Promise<string[]> {
  const folder = path.join(home, 'profiles');
  const found: string[] = [];
  for (const name of await namesIn(folder)) {
    const place = path.join(folder, name);
    if ((await lookAtDatabase(path.join(place, 'state.db'))).file !== null) found.push(place);
  }
  return found;
}

/** Sessions that were deleted there, and not saved again since. */
async function deletedIn(folder: ForeignFolder | null): Promise<ReadonlySet<string>> {
  const deleted = (await folder?.deleted()) ?? new Set();
  if (!folder || deleted.size === 0) return deleted;
  const alive = await folder.summaries();
  return new Set([...deleted].filter((id) => !alive.has(id)));
}

/** The projects of hermes-webui. */
async function projectsOf(base: string): Promise<Project[]> {
  const read = await readJson(path.join(base, 'projects.json')).catch((error: unknown) => {
    if (isUnreadable(error)) return '';
    throw error;
  });
  if (typeof read === 'string') return [];
  const list = Array.isArray(read.value) ? read.value : ((read.value as { projects?: unknown } | null)?.projects ?? []);
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown): Project[] => {
    if (typeof one !== 'object' || one === null) return [];
    const { project_id: id, name, color } = one as Record<string, unknown>;
    if (typeof id !== 'string' || !isSessionId(id) || typeof name !== 'string' || name.trim() === '') return [];
    return [{ project_id: id, name: name.slice(0, 200), color: typeof color === 'string' ? color.slice(0, 32) : null }];
  });
}

async function load(
  id: string,
  summary: SourceSession | null,
  db: ImportSource | null,
  folder: ForeignFolder | null,
  isOurs: boolean,
): Promise<Loaded | string | null> {
  try {
    const read = folder ? await folder.read(id) : null;
    // A backup alone is what is left of a deleted one, unless the database still has the session.
    if (folder && read?.from !== 'live' && !summary) return read ? null : await problemOf(folder, id);
    const state = summary && db ? await db.rows(id) : [];
    const found = read?.sidecar.header ?? null;
    let rows = (read?.sidecar.rows ?? []).map((row) => JSON.parse(row.json) as RawRow);
    if (isOurs && summary && read && editOf(found) < summary.edit_number) {
      // Its last edit has not reached the file.
      const kept = new Set(state.map(idOf));
      rows = rows.filter((row) => kept.has(idOf(row)));
    }
    const context = read || !summary || !db ? null : await db.context(id);
    const tail = read ? { tail: read.sidecar.tail, ...tailTextOf(read.sidecar) } : NO_TAIL;
    const transcript = toTranscript(rows, state, fencesOf(found));
    const header = folder && found ? await withJournaledTurn(folder, id, found, transcript) : found;
    return { header, rows: transcript, tail, context, before: null };
  } catch (error) {
    if (isUnreadable(error)) return `it cannot be read (${error.code})`;
    // One that is locked can be read later: the next run goes on here.
    const trouble = storageTroubleKind(error);
    if (trouble !== null && trouble !== 'busy') return 'the database cannot be read';
    throw error;
  }
}

const tailTextOf = ({ tailText }: Tail) => (tailText ? { tailText } : {});
const editOf = (header: SourceHeader | null): number =>
  typeof header?.edit_number === 'number' ? header.edit_number : 0;

/** Why a file is no sidecar; null where it was never meant to be one. */
async function problemOf(folder: ForeignFolder, id: string): Promise<string | null> {
  const read = await readJson(path.join(folder.path, `${id}.json`));
  if (typeof read === 'string') return read;
  const { value } = read;
  if (typeof value !== 'object' || value === null || !('messages' in value) || !('session_id' in value)) return null;
  // What an agent keeps for itself beside its database: `session_<id>.json`.
  if (`session_${String(value.session_id)}` === id) return null;
  return value.session_id === id ? 'its messages are none' : `it is of session ${JSON.stringify(value.session_id)}`;
}
