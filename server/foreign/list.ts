/** The list of our sessions with those of another program between them: one order, one cursor, one total. */
import type { OwnSessions } from '../../db/foreign/own-sessions.ts';
import type { SessionListCursor, SessionListQuery } from '../../db/stores.ts';
import { hasWords } from '../../db/words.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { type SessionView, toSessionView } from '../sessions/view.ts';
import type { ForeignSession } from './session.ts';
import type { ForeignSources } from './sources.ts';

export interface ForeignListParts {
  own: Pick<Sessions, 'list'>;
  ownSessions: OwnSessions;
  sources: ForeignSources;
}

/** A place in the list. */
type Place = [pinned: number, activity: number, id: string];

/** Whether a place is before another one: each of its parts descends. */
function isBefore(a: Place, b: Place): boolean {
  for (const at of [0, 1, 2] as const) if (a[at] !== b[at]) return a[at] > b[at];
  return false;
}

const placeOf = ({ row, activity }: ForeignSession): Place => [Number(row.pinned), activity, row.session_id];

export function createForeignList({ own, ownSessions, sources }: ForeignListParts): Sessions['list'] {
  return async (query) => {
    const [page, { listed, ids }] = await Promise.all([own.list(query), sources.all()]);
    const ours = await ownSessions.among(ids);
    // One that is in both was imported: ours is the one that goes on.
    const fitting = listed.filter(({ row }) => fits(row, query) && !ours.has(row.session_id));
    const total = page.total + fitting.length;
    const { cursor, limit } = query;
    const from: Place | null = cursor && [Number(cursor.pinned), cursor.activity, cursor.session_id];
    const start = from ? fitting.findIndex((one) => isBefore(from, placeOf(one))) : 0;
    const theirs = start < 0 ? [] : fitting.slice(start, start + limit + 1);
    if (theirs.length === 0) return { ...page, total };
    const activities = await ownSessions.activities(page.sessions.map(({ session_id }) => session_id));
    const all: { place: Place; view: SessionView }[] = [];
    const rest = theirs.values();
    let next = rest.next().value;
    for (const view of page.sessions) {
      const place: Place = [Number(view.pinned), activities.get(view.session_id) ?? 0, view.session_id];
      for (; next && isBefore(placeOf(next), place); next = rest.next().value) all.push(entryOf(next));
      all.push({ place, view });
    }
    // Where more of ours follow these are behind the end of the page in any case, for ours alone fill it.
    for (; next; next = rest.next().value) all.push(entryOf(next));
    const shown = all.slice(0, limit);
    const last = shown.at(-1);
    const isMore = all.length > limit || page.next !== null;
    return { sessions: shown.map(({ view }) => view), next: isMore && last ? cursorOf(last.place) : null, total };
  };
}

const entryOf = (session: ForeignSession) => ({ place: placeOf(session), view: toSessionView(session.row, null) });

const cursorOf = ([pinned, activity, session_id]: Place): SessionListCursor => ({
  pinned: pinned === 1,
  activity,
  session_id,
});

function fits(row: ForeignSession['row'], { archived, project_id, source, q }: SessionListQuery): boolean {
  if (archived !== 'yes' && row.archived !== (archived === 'only')) return false;
  if (project_id !== null || (source !== null && row.source !== source)) return false;
  return q === null || hasWords(row.title, q);
}
