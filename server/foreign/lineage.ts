/**
 * A conversation that went through several sessions as one transcript (R100): each part begins where the one before it was
 * compressed. A part may begin with what its writer carried over; nothing is shown twice for that.
 */
import type { SidecarRow } from '../../db/files/sidecar-store.ts';
import type { Message } from '../core/terms.ts';

/** Rows at the seam that are looked at for what was carried over. */
const SEAM = 400;

/** What tells a row from others, whoever wrote it when. */
function keyOf(row: SidecarRow): string {
  const { role, content, tool_call_id, tool_calls } = JSON.parse(row.json) as Message;
  const calls = tool_calls?.map((call) => call.id) ?? [];
  return JSON.stringify([role, content.replaceAll(/\s+/g, ' ').trim(), tool_call_id ?? '', ...calls]);
}

/** Rows of a child that stand behind those of its parents. */
export interface Stitched {
  rows: SidecarRow[];
  /** New ids of rows of the child, by the old ones: two sessions may have given the same one. */
  renamed: ReadonlyMap<string, string>;
}

export function stitch(parent: readonly SidecarRow[], child: readonly SidecarRow[]): Stitched {
  if (parent.length === 0) return { rows: [...child], renamed: new Map() };
  const from = isWhole(parent, child) ? null : carriedOver(parent, child);
  if (from === null) return { rows: [...child], renamed: new Map() };
  const taken = new Set(parent.map((row) => row.id));
  const renamed = new Map<string, string>();
  const added = child.slice(from).map((row) => {
    if (!taken.has(row.id)) {
      taken.add(row.id);
      return row;
    }
    const id = freeName(row.id, taken);
    taken.add(id);
    renamed.set(row.id, id);
    const { runId, role, json } = row;
    return { id, runId, role, json: JSON.stringify({ ...JSON.parse(json), id }) };
  });
  return { rows: [...parent, ...added], renamed };
}

/** Names of rows count how many there are of a kind: the next one that is free. */
function freeName(id: string, taken: ReadonlySet<string>): string {
  const [, name = id, count = '1'] = /^(.*)\.(\d+)$/.exec(id) ?? [];
  for (let next = Number(count) + 1; ; next += 1) if (!taken.has(`${name}.${next}`)) return `${name}.${next}`;
}

/** Whether the child has all that its parents say already. */
function isWhole(parent: readonly SidecarRow[], child: readonly SidecarRow[]): boolean {
  if (child.length < parent.length) return false;
  return parent.every((row, at) => row.role === child[at]!.role && keyOf(row) === keyOf(child[at]!));
}

/** How many rows the child begins with that are the last ones of its parent; behind a summary, say, of what was before. */
function carriedOver(parent: readonly SidecarRow[], child: readonly SidecarRow[]): number {
  const end = parent.slice(-SEAM).map(keyOf);
  const begin = child.slice(0, SEAM).map(keyOf);
  for (let count = Math.min(end.length, begin.length); count > 0; count -= 1) {
    const isSame = end.slice(-count).every((key, at) => key === begin[at]);
    // One short word may well be said twice.
    if (isSame && (count > 1 || timeOf(parent.at(-1)!) === timeOf(child[0]!))) return count;
  }
  return 0;
}

const timeOf = (row: SidecarRow): number => (JSON.parse(row.json) as Message).timestamp;
