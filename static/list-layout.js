/**
 * What the list shows, line by line, and which lines are in sight: pure, so that ten thousand conversations cost
 * one pass over an array. Every line is equally high; what needs two lines takes two places, the second is null.
 */
import { activityOf } from './list-store.js';

/** With words to look for, this many titles are shown before the messages that have them. */
const FEW_TITLES = 5;

/** The beginning of the day that is some days before or behind a time. @returns epoch seconds */
function dayStart(now, days) {
  const date = new Date(now * 1000);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime() / 1000;
}

/**
 * Names the group of a time: Today, Yesterday, Previous 7 days, or a month.
 * @param now epoch seconds
 * @param locale for the names of months; undefined for the reader's own
 * @returns a function from epoch seconds to `{key, title}`; it is quick for times that come in order
 */
export function createGrouping(now, locale = undefined) {
  const today = dayStart(now, 0);
  const yesterday = dayStart(now, -1);
  const week = dayStart(now, -7);
  const thisYear = new Date(now * 1000).getFullYear();
  let month = { from: 0, to: 0, group: null };
  return (seconds) => {
    if (seconds >= today) return TODAY;
    if (seconds >= yesterday) return YESTERDAY;
    if (seconds >= week) return WEEK;
    if (seconds < month.from || seconds >= month.to) {
      const date = new Date(seconds * 1000);
      const year = date.getFullYear();
      const words = { month: 'long', ...(year === thisYear ? {} : { year: 'numeric' }) };
      month = {
        from: new Date(year, date.getMonth()).getTime() / 1000,
        to: new Date(year, date.getMonth() + 1).getTime() / 1000,
        group: { key: `${year}-${date.getMonth() + 1}`, title: date.toLocaleDateString(locale, words) },
      };
    }
    return month.group;
  };
}

const PINNED = { key: 'pinned', title: 'Pinned' };
const TODAY = { key: 'today', title: 'Today' };
const YESTERDAY = { key: 'yesterday', title: 'Yesterday' };
const WEEK = { key: 'week', title: 'Previous 7 days' };

const heading = ({ key, title }) => ({ kind: 'heading', key: `group ${key}`, title });

/**
 * The lines of the list.
 * @param list the state of the list (list-store.js)
 * @param groupOf see `createGrouping`
 * @returns `lines`, each `{kind, key, …}` (`heading` with its title, `session` with its place, `hit`, `expand` which shows
 * all titles or some) or null for the second place of the one before it; `pending`, how many more the server has; `total`, how many
 * conversations there are
 */
export function layOut(list, groupOf) {
  const { view, removing } = list;
  const isGone = removing.length === 0 ? () => false : (session) => removing.includes(session.session_id);
  const total = list.total - (removing.length === 0 ? 0 : list.sessions.filter(isGone).length);
  if (view.q !== '')
    return layOutFound(
      list,
      list.sessions.filter((session) => !isGone(session)),
      total,
    );
  const lines = [];
  let group = null;
  let place = 0;
  for (const session of list.sessions) {
    if (isGone(session)) continue;
    const its = session.pinned ? PINNED : groupOf(activityOf(session));
    if (its !== group) lines.push(heading(its));
    group = its;
    place += 1;
    lines.push({ kind: 'session', key: session.session_id, session, place });
  }
  return { lines, pending: Math.max(0, total - place), total };
}

/** What a search found: some titles and then messages, or all titles and nothing else. */
function layOutFound({ hits, removing, expanded }, sessions, total) {
  const lines = [];
  const isCut = total > FEW_TITLES && !expanded;
  if (sessions.length) lines.push(heading({ key: 'titles', title: 'Titles' }));
  if (expanded) lines.push({ kind: 'expand', key: 'expand', total, isCut });
  for (const [at, session] of (isCut ? sessions.slice(0, FEW_TITLES) : sessions).entries()) {
    lines.push({ kind: 'session', key: session.session_id, session, place: at + 1 });
  }
  if (expanded) return { lines, pending: total - sessions.length, total };
  if (isCut) lines.push({ kind: 'expand', key: 'expand', total, isCut });
  const found = (hits ?? []).filter((hit) => !removing.includes(hit.session_id));
  if (found.length) lines.push(heading({ key: 'hits', title: 'In messages' }));
  for (const hit of found) lines.push({ kind: 'hit', key: `${hit.session_id}/${hit.message_id}`, hit }, null);
  return { lines, pending: 0, total };
}

/**
 * The lines in sight, and some around them.
 * @param count how many lines there are
 * @param lineHeight of each, in pixels
 * @param top what is scrolled away above, in pixels
 * @param height of the window onto the list, in pixels
 * @param around lines to add above and below
 * @returns the first, and the one behind the last
 */
export function inSight({ count, lineHeight, top, height, around }) {
  const first = Math.floor(top / lineHeight) - around;
  const end = Math.ceil((top + height) / lineHeight) + around;
  const clamp = (line) => Math.min(count, Math.max(0, line));
  return { first: clamp(first), end: clamp(end) };
}

/**
 * Where the focus goes from a line by a key.
 * @param canStop whether a line can have the focus
 * @param page lines in sight
 * @returns a line, or null where the key leads nowhere
 */
export function lineAfter(lines, from, key, page) {
  const last = lines.length - 1;
  const [start, step] = {
    ArrowDown: [from + 1, 1],
    ArrowUp: [from - 1, -1],
    PageDown: [Math.min(last, from + page), -1],
    PageUp: [Math.max(0, from - page), 1],
    Home: [0, 1],
    End: [last, -1],
  }[key] ?? [-1, 1];
  for (let at = start; at >= 0 && at <= last; at += step) {
    if (lines[at] !== null && lines[at].kind !== 'heading') return at;
  }
  return null;
}

/** A text in pieces, those that begin with a word of a query marked. @returns `{text, isMarked}[]` */
export function markWords(text, q) {
  const words = q.match(/[\p{L}\p{N}\p{M}_]+/gu);
  if (!words) return [{ text, isMarked: false }];
  const longestFirst = words.sort((a, b) => b.length - a.length).join('|');
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}_])(${longestFirst})`, 'giu');
  return text
    .split(pattern)
    .map((piece, at) => ({ text: piece, isMarked: at % 2 === 1 }))
    .filter((piece) => piece.text !== '');
}
