/**
 * How much of a long conversation is held: its end, and when a person is far from it a piece elsewhere (`past`), which
 * grows at one side and is cut at the other. Pure functions over an open conversation.
 */

/** More rows than this are never held in one piece. */
const MOST = 800;
/** What stays of a piece that became too long. */
const KEPT = 600;
/** More rows than this are not held while a person is at the end: each one there costs every frame a little. */
const MOST_AT_END = 240;
/** What is kept at the end of the conversation then, and while a person is elsewhere. */
const TAIL = 100;

/** A piece of the conversation. */
export const pieceOf = (rows, hasOlder) => ({ rows, hasOlder });

/** The rows on the screen, and whether there are more before and behind them. */
export const shownRows = (open) =>
  open.past === null ? { rows: open.rows, hasOlder: open.hasOlder, hasNewer: false } : { ...open.past, hasNewer: true };

/** Rows before the first one that is shown have come. @param action.before the row that they were asked for by */
export function olderLoaded(open, { before, messages, has_more: hasMore }) {
  const { rows } = shownRows(open);
  if (rows[0]?.id !== before) return open;
  const longer = [...messages, ...rows];
  const piece = pieceOf(longer.length > MOST ? longer.slice(0, KEPT) : longer, hasMore);
  if (open.past !== null) return { ...open, past: piece };
  if (longer.length <= MOST) return { ...open, rows: longer, hasOlder: hasMore };
  return { ...open, past: piece, rows: open.rows.slice(-TAIL), hasOlder: true };
}

/** Rows behind the last one of the piece have come. @param action.after the row that they were asked for by */
export function newerLoaded(open, { after, messages, has_more: hasMore }) {
  if (open.past?.rows.at(-1)?.id !== after) return open;
  const tail = new Set(open.rows.map((row) => row.id));
  const between = messages.slice(
    0,
    firstIndex(messages, (row) => tail.has(row.id)),
  );
  const longer = [...open.past.rows.filter((row) => !tail.has(row.id)), ...between];
  const reached = !hasMore || between.length < messages.length;
  const cut = longer.length > MOST;
  const rows = cut ? longer.slice(-KEPT) : longer;
  const hasOlder = open.past.hasOlder || cut;
  if (!reached) return { ...open, past: pieceOf(rows, hasOlder) };
  return { ...open, past: null, rows: [...rows, ...open.rows], hasOlder };
}

const firstIndex = (rows, test) => {
  const at = rows.findIndex(test);
  return at < 0 ? rows.length : at;
};

/** A piece that is long, while a person is at the end of the conversation: its beginning is let go. */
export function trimmed(open) {
  if (open.past !== null || open.rows.length <= MOST_AT_END) return open;
  return { ...open, rows: open.rows.slice(-TAIL), hasOlder: true };
}
