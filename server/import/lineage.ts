/**
 * A conversation that went through compressions: as its last session shows it, with what was said in those before (R100).
 * Its model is given what it was given there: the rows of the last one alone.
 */
import type { SourceSession } from '../../db/import-source.ts';
import { type RowReader, stitch } from '../foreign/lineage.ts';
import type { Loaded } from './conversation.ts';
import { type ImportedRow, withId } from './transcript.ts';

/** A session alone, as its own stores have it. */
export interface Part {
  id: string;
  summary: SourceSession | null;
  loaded: Loaded;
}

/** Sessions that one conversation may go through, and are put together. */
const MOST_HOPS = 20;

const ROWS: RowReader<ImportedRow> = { id: ({ message }) => message.id, message: ({ message }) => message, withId };

/** @param find another session there; null where there is none that can be read */
export async function wholeOf(last: Part, find: (id: string) => Promise<Part | null>): Promise<Loaded> {
  const chain = [last];
  for (let at = last; chain.length <= MOST_HOPS; ) {
    const parent = await partBefore(at, find);
    if (!parent || chain.some(({ id }) => id === parent.id)) break;
    chain.unshift(parent);
    at = parent;
  }
  if (chain.length === 1) return last.loaded;
  let rows: ImportedRow[] = [];
  for (const { loaded } of chain) rows = stitch(rows, loaded.rows, ROWS).rows;
  const own = last.loaded.rows;
  const parts = chain.slice(0, -1).reverse();
  return {
    ...last.loaded,
    rows,
    before: {
      parts: parts.map(({ id, summary, loaded }) => ({ id, summary, header: loaded.header })),
      own: rows.length > own.length ? own : null,
    },
  };
}

/** The session that this one continues. Only behind a compression: any other child is a conversation of its own. */
async function partBefore({ summary, loaded }: Part, find: (id: string) => Promise<Part | null>): Promise<Part | null> {
  const named = loaded.header?.parent_session_id;
  const parent = typeof named === 'string' && named !== '' ? await find(named) : null;
  if (parent?.loaded.header?.pre_compression_snapshot === true) return parent;
  if (summary?.kind !== 'continuation' || summary.parent_session_id === null) return null;
  return summary.parent_session_id === parent?.id ? parent : find(summary.parent_session_id);
}
