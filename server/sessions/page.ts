/** A page of a transcript: the last rows, or those before or after a row. */
import { AppError } from '../errors.ts';

export interface PageQuery {
  limit: number;
  /** Id of the row behind the page, or of the one before it. */
  before?: string | undefined;
  after?: string | undefined;
}

export interface Page {
  /** Rows as JSON texts with commas between them, oldest first. */
  rows: string | Buffer;
  hasMore: boolean;
}

interface Pageable {
  rows: readonly { id: string; json: string }[];
  body(): Buffer;
}

/** From how many rows on a whole transcript is worth keeping in one piece. */
const WHOLE_FROM = 200;

/** @throws AppError unknown_message */
export function pageOf({ rows, body }: Pageable, { limit, before, after }: PageQuery): Page {
  const place = (id: string): number => {
    const index = rows.findIndex((message) => message.id === id);
    if (index < 0) throw new AppError('unknown_message');
    return index;
  };
  const from = after === undefined ? 0 : place(after) + 1;
  const to = before === undefined ? rows.length : place(before);
  // With `after` a page goes forward from there, otherwise it ends where it ends.
  const start = after === undefined ? Math.max(from, to - limit) : from;
  const end = Math.max(start, after === undefined ? to : Math.min(to, from + limit));
  const whole = start === 0 && end === rows.length && end > WHOLE_FROM;
  return {
    rows: whole ? body() : slice(rows, start, end),
    hasMore: after === undefined ? start > 0 : end < to,
  };
}

function slice(rows: readonly { json: string }[], start: number, end: number): string {
  let text = '';
  for (let at = start; at < end; at += 1) text += at === start ? rows[at]!.json : `,${rows[at]!.json}`;
  return text;
}
