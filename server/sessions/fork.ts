/** Fork: a new session that begins with what is displayed of another one, which it never touches (ED4). */
import type { ContextSummary } from '../../db/stores.ts';
import { keptUpTo } from '../core/edit-rules.ts';
import type { Message } from '../core/terms.ts';
import { wellFormed } from '../core/text.ts';
import { AppError } from '../errors.ts';
import type { Copy, MakeCopy } from './copies.ts';
import { coveredBy } from './model-context.ts';
import type { ReadSettled } from './settled.ts';
import type { SessionView } from './view.ts';

export interface ForkParts {
  readSettled: ReadSettled;
  /** The summary that a session's model is given of its beginning: a copy that has all of that may have it too. */
  summaryOf(sessionId: string): Promise<ContextSummary | null>;
  makeCopy: MakeCopy;
}

/**
 * @param at.atMessage the last row that is copied, with the tool block that it is in; null for all that is settled
 * @param at.title null for the title of the original with ` (fork)` behind it
 * @throws AppError session_not_found; unknown_message also for a row of a turn that has not ended
 */
export type Fork = (sessionId: string, at: { atMessage: string | null; title: string | null }) => Promise<SessionView>;

/** Longest title, as everywhere. */
const MAX_TITLE = 500;
const SUFFIX = ' (fork)';

export function createFork({ readSettled, makeCopy, summaryOf }: ForkParts): Fork {
  return async (sessionId, { atMessage, title }) => {
    const { session, rows } = await readSettled(sessionId);
    const kept = atMessage === null ? rows.length : keptUpTo(rows, atMessage);
    if (atMessage !== null && kept === 0) throw new AppError('unknown_message');
    const copied = rows.slice(0, kept);
    const summary = await summaryOf(sessionId);
    const named = title === null || title.trim() === '' ? titleOfFork(session.title) : wellFormed(title);
    const copy: Copy = {
      parent_session_id: sessionId,
      title: named,
      // It tells the two apart: a better title for the conversation would not.
      title_source: named === null ? null : 'user',
      source: 'fork',
      model: session.model,
      workspace: session.workspace,
      project_id: session.project_id,
      created_at: null,
      usage: null,
      rows: copied.map((row) => JSON.parse(row.json) as Message),
      summary: summary && coveredBy(summary, copied) > 0 ? summary : null,
    };
    return makeCopy(copy, sessionId);
  };
}

const titleOfFork = (title: string | null): string | null =>
  title === null ? null : wellFormed(title.slice(0, MAX_TITLE - SUFFIX.length)) + SUFFIX;
