/**
 * A conversation that went through several sessions as one transcript (R100): each part begins where the one before it was
 * compressed. A part may begin with what its writer carried over; nothing is shown twice for that.
 */
import type { SidecarRow } from '../../db/files/sidecar-store.ts';
import { isSummary } from '../core/reconcile/context.ts';
import type { Message } from '../core/terms.ts';

/** Rows at the seam that are looked at for what was carried over. */
const SEAM = 400;

/** How rows are read, whatever they are kept as. */
export interface RowReader<Row> {
  id(row: Row): string;
  message(row: Row): Message;
  withId(row: Row, id: string): Row;
}

export const SIDECAR_ROWS: RowReader<SidecarRow> = {
  id: (row) => row.id,
  message: (row) => JSON.parse(row.json) as Message,
  withId: ({ runId, role, json }, id) => ({ id, runId, role, json: JSON.stringify({ ...JSON.parse(json), id }) }),
};

/** Rows of a child that stand behind those of its parents. */
export interface Stitched<Row> {
  rows: Row[];
  /** New ids of rows of the child, by the old ones: two sessions may have given the same one. */
  renamed: ReadonlyMap<string, string>;
}

export function stitch<Row>(parent: readonly Row[], child: readonly Row[], reader: RowReader<Row>): Stitched<Row> {
  const none = { rows: [...child], renamed: new Map<string, string>() };
  if (parent.length === 0 || isWhole(parent, child, reader)) return none;
  // What was carried over may stand behind the summary of what was before it.
  const [from, to] = carriedOver(parent, child, reader);
  const taken = new Set(parent.map(reader.id));
  const renamed = new Map<string, string>();
  const added = [...child.slice(0, from), ...child.slice(to)].map((row) => {
    const id = reader.id(row);
    const free = taken.has(id) ? freeName(id, taken) : id;
    taken.add(free);
    if (free === id) return row;
    renamed.set(id, free);
    return reader.withId(row, free);
  });
  return { rows: [...parent, ...added], renamed };
}

/** Names of rows count how many there are of a kind: the next one that is free. */
function freeName(id: string, taken: ReadonlySet<string>): string {
  const [, name = id, count = '1'] = /^(.*)\.(\d+)$/.exec(id) ?? [];
  for (let next = Number(count) + 1; ; next += 1) if (!taken.has(`${name}.${next}`)) return `${name}.${next}`;
}

/** What tells a row from others, whoever wrote it when. */
function keyOf({ role, content, tool_call_id, tool_calls }: Message): string {
  const calls = tool_calls?.map((call) => call.id) ?? [];
  return JSON.stringify([role, content.replaceAll(/\s+/g, ' ').trim(), tool_call_id ?? '', ...calls]);
}

/** Whether the child has all that its parents say already. */
function isWhole<Row>(parent: readonly Row[], child: readonly Row[], { message }: RowReader<Row>): boolean {
  if (child.length < parent.length) return false;
  return parent.every((row, at) => keyOf(message(row)) === keyOf(message(child[at]!)));
}

/** Which rows of the child are the last ones of its parent, from and to: at its beginning, or behind its summaries. */
function carriedOver<Row>(
  parent: readonly Row[],
  child: readonly Row[],
  { message }: RowReader<Row>,
): [from: number, to: number] {
  const end = parent.slice(-SEAM).map(message);
  const begin = child.slice(0, SEAM).map(message);
  const [ends, begins] = [end.map(keyOf), begin.map(keyOf)];
  const summaries = begin.findIndex((row) => !isSummary(row));
  for (const from of new Set([0, Math.max(0, summaries)])) {
    for (let count = Math.min(ends.length, begins.length - from); count > 0; count -= 1) {
      const isSame = ends.slice(-count).every((key, at) => key === begins[from + at]);
      // One short word may well be said twice.
      if (isSame && (count > 1 || end.at(-1)!.timestamp === begin[from]!.timestamp)) return [from, from + count];
    }
  }
  return [0, 0];
}
