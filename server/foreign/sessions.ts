/**
 * Sessions with those of another program beside them: read as ours are, and never written. One of ours with the same id
 * comes first: it was imported. Whoever has configured no such home has no part of this.
 */
import type { OwnSessions } from '../../db/foreign/own-sessions.ts';
import { AppError } from '../errors.ts';
import { pageOf } from '../sessions/page.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { ReadSettled } from '../sessions/settled.ts';
import { type SessionView, toSessionView } from '../sessions/view.ts';
import { createForeignList } from './list.ts';
import { type ForeignPlaces, foreignHome } from './refusal.ts';
import type { ForeignSession } from './session.ts';
import type { ForeignSources } from './sources.ts';
import type { ForeignTranscripts } from './transcripts.ts';

export interface ForeignSessionsParts {
  own: Sessions;
  ownSessions: OwnSessions;
  sources: ForeignSources;
  transcripts: ForeignTranscripts;
  places: ForeignPlaces;
}

export interface ForeignSessions extends Sessions {
  /** Refuses what would change a session of another program. @throws AppError foreign_home */
  assertOwn(sessionId: string): Promise<void>;
  /** The same session as a source of copies, or null when it is not one of another program. */
  readSettled(own: ReadSettled): ReadSettled;
}

export function createForeignSessions(parts: ForeignSessionsParts): ForeignSessions {
  const { own, sources, transcripts } = parts;

  /** What ours has, or else what another program has; ours says that there is none. */
  async function either<T>(
    sessionId: string,
    ours: () => Promise<T>,
    theirs: (session: ForeignSession) => Promise<T> | T,
  ): Promise<T> {
    try {
      return await ours();
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const session = await sources.find(sessionId);
      if (!session) throw error;
      return theirs(session);
    }
  }

  const refused = () => {
    throw foreignHome(parts.places);
  };

  const viewOf = (session: ForeignSession): SessionView => {
    const view = toSessionView(session.row, null);
    const count = transcripts.countOf(session);
    return count === null ? view : { ...view, message_count: count };
  };

  return {
    ...own,
    list: createForeignList({ own, ownSessions: parts.ownSessions, sources }),
    get: (sessionId) => either(sessionId, () => own.get(sessionId), viewOf),

    messages: (sessionId, query) =>
      either(
        sessionId,
        () => own.messages(sessionId, query),
        async (session) => {
          const transcript = await transcripts.read(session);
          const named = (id: string | undefined) => (id === undefined ? id : shownId(id, transcript.ids));
          const page = pageOf(transcript, { ...query, before: named(query.before), after: named(query.after) });
          return { ...page, session: viewOf(session), tag: transcript.tag };
        },
      ),

    patch: (sessionId, patch, revision) => either(sessionId, () => own.patch(sessionId, patch, revision), refused),
    remove: (sessionId, stop) => either(sessionId, () => own.remove(sessionId, stop), refused),
    // A reader is given a snapshot; nothing of ours will ever happen in it.
    assertStreamable: (sessionId) =>
      either(
        sessionId,
        () => own.assertStreamable(sessionId),
        () => {},
      ),
    describe: (sessionId) =>
      either(
        sessionId,
        () => own.describe(sessionId),
        (session) => ({ session: { ...viewOf(session) }, queue: [] }),
      ),

    assertOwn: (sessionId) =>
      either(
        sessionId,
        async () => {
          await own.get(sessionId);
        },
        refused,
      ),

    readSettled: (ours) => (sessionId) =>
      either(
        sessionId,
        () => ours(sessionId),
        async (session) => ({ session: session.row, rows: (await transcripts.read(session)).rows }),
      ),
  };
}

const isNotFound = (error: unknown): boolean => error instanceof AppError && error.code === 'session_not_found';

/** A row that a search has named by its number, by the id under which it is shown. */
function shownId(id: string, ids: ReadonlyMap<number, string>): string {
  const row = /^row\.(\d+)$/.exec(id)?.[1];
  return (row === undefined ? undefined : ids.get(Number(row))) ?? id;
}
