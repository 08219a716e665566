/**
 * Names of rows that came without an id (RC5): made of what a row says and of how many rows before it say the same, so that
 * every reader gives the same row the same name until it is saved.
 */
import { canonical } from './keys.ts';
import { contentText, idOf, type RawRow, withoutWorkspaceTag } from './row.ts';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What a name is made of. A time is no part of it: programs re-stamp rows. */
function shapeOf(row: RawRow): string {
  const said = contentText(row.content);
  const calls = Array.isArray(row.tool_calls) && row.tool_calls.length > 0 ? row.tool_calls : null;
  const tool = [text(row.tool_call_id), text(row.name) || text(row.tool_name)];
  return canonical([row.role, row.role === 'user' ? withoutWorkspaceTag(said) : said, calls, ...tool]);
}

/**
 * The id of each row: its own, or `x<16 hex>.<k>` for the k-th row of its kind, counted from 1.
 * @param hash a hexadecimal digest of at least 16 digits
 * @param given ids that rows have or had which are not among these
 * @returns ids in the order of the rows, no made one equal to any other
 */
export function nameRows(
  rows: readonly RawRow[],
  hash: (text: string) => string,
  given: Iterable<string> = [],
): string[] {
  const taken = new Set<string>(given);
  for (const row of rows) {
    const id = idOf(row);
    if (id !== null) taken.add(id);
  }
  const counts = new Map<string, number>();
  return rows.map((row) => {
    const own = idOf(row);
    if (own !== null) return own;
    const name = `x${hash(shapeOf(row)).slice(0, 16)}`;
    let count = counts.get(name) ?? 0;
    let id: string;
    do {
      count += 1;
      id = `${name}.${count}`;
    } while (taken.has(id));
    counts.set(name, count);
    taken.add(id);
    return id;
  });
}
