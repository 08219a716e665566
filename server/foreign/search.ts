/**
 * Search in another program's sessions, behind the hits of our own: in its state.db, and in the files of sessions that
 * are nowhere else, newest first and up to a bound. Only what the list shows is found.
 */
import type { ForeignFolder } from '../../db/files/foreign/folder.ts';
import type { OwnSessions } from '../../db/foreign/own-sessions.ts';
import { snippetOf, wordsOf } from '../../db/foreign/snippet.ts';
import type { ForeignStateDb } from '../../db/foreign/state-db.ts';
import { storageTroubleKind } from '../../db/storage-trouble.ts';
import type { SearchHit } from '../../db/stores.ts';
import type { Message } from '../core/terms.ts';
import type { Search } from '../sessions/search.ts';
import type { ForeignSession } from './session.ts';
import type { ForeignMap, ForeignSources } from './sources.ts';
import type { ForeignTranscripts } from './transcripts.ts';

export interface ForeignSearchParts {
  own: Search;
  ownSessions: OwnSessions;
  sources: ForeignSources;
  transcripts: ForeignTranscripts;
  stateDb: ForeignStateDb | null;
  folder: ForeignFolder | null;
  log: { warn(fields: object, message: string): void };
}

/** Sessions that are in files alone and are looked through for one search, and rows of them in all. */
const MOST_FILES = 200;
const MOST_ROWS = 20_000;

export function createForeignSearch(parts: ForeignSearchParts): Search {
  const { own, ownSessions, sources, transcripts, stateDb, log } = parts;

  /** The listed session that a row is shown in: that of its conversation's newest session. */
  function shownIn(map: ForeignMap): (sessionId: string) => ForeignSession | null {
    const next = new Map<string, string>();
    for (const { row, continues, listed } of map.sessions.values()) {
      if (continues !== null && listed) next.set(continues, row.session_id);
    }
    const listed = new Map(map.listed.map((session) => [session.row.session_id, session]));
    return (sessionId) => {
      let at: string | undefined = sessionId;
      for (let hops = 0; at !== undefined && hops <= 20; hops += 1) {
        const found = listed.get(at);
        if (found) return found;
        at = next.get(at);
      }
      return null;
    };
  }

  async function inStateDb(q: string, limit: number, find: ReturnType<typeof shownIn>): Promise<SearchHit[]> {
    if (!stateDb) return [];
    // Some of them are hidden: a few more are asked for.
    const hits = await stateDb.search(q, limit * 2 + 20);
    return hits.flatMap(({ session_id, row, role, snippet, timestamp }): SearchHit[] => {
      const session = find(session_id);
      if (!session) return [];
      const { row: shown } = session;
      return [{ session_id: shown.session_id, title: shown.title, message_id: `row.${row}`, role, snippet, timestamp }];
    });
  }

  async function inFiles(q: string, limit: number, listed: readonly ForeignSession[]): Promise<SearchHit[]> {
    const words = wordsOf(q);
    if (words.length === 0) return [];
    const hits: SearchHit[] = [];
    let rows = 0;
    const alone = listed.filter((session) => session.state === null).slice(0, MOST_FILES);
    for (const session of alone) {
      if (hits.length >= limit || rows >= MOST_ROWS) break;
      const transcript = await transcripts.read(session);
      rows += transcript.rows.length;
      for (const { json } of transcript.rows) {
        // Before it is parsed: what is in the text is in the row too.
        const lower = json.toLowerCase();
        if (!words.every((word) => lower.includes(word))) continue;
        const { id, role, content, timestamp } = JSON.parse(json) as Message;
        const said = content.toLowerCase();
        if (!words.every((word) => said.includes(word))) continue;
        const { session_id, title } = session.row;
        hits.push({ session_id, title, message_id: id, role, snippet: snippetOf(content, words), timestamp });
      }
    }
    return hits.slice(0, limit);
  }

  return async (q, limit) => {
    const ours = await own(q, limit);
    if (ours.length >= limit) return ours;
    const map = await sources.all();
    const imported = await ownSessions.among(map.ids);
    const find = shownIn(map);
    const theirs = (hits: readonly SearchHit[]) => hits.filter(({ session_id }) => !imported.has(session_id));
    const found = [...ours];
    for (const look of [
      () => inStateDb(q, limit, find),
      () =>
        inFiles(
          q,
          limit - found.length,
          map.listed.filter(({ row }) => !imported.has(row.session_id)),
        ),
    ]) {
      if (found.length >= limit) break;
      try {
        found.push(...theirs(await look()));
      } catch (error) {
        if (storageTroubleKind(error) === null) throw error;
        log.warn({ err: error }, "a search could not look into another program's home");
      }
    }
    return found.slice(0, limit);
  };
}
