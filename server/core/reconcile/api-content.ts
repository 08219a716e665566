/**
 * The exact bytes that a provider was sent for a row (RC8). An agent keeps them beside the text, so that a provider's cache
 * still fits; a sidecar row that lacks them gets them from its row of the state DB, or from none.
 *
 * Each tier joins only what is unique on both sides. Whatever contradicts itself is set aside before any tier, and no weaker
 * tier picks it up. Bytes that are there are never replaced, and no browser ever sees any.
 */
import { createRowReader, type Keyed, rowIdsOf, rowNumber } from './keys.ts';
import type { RawRow } from './row.ts';

type KeyOf = (row: Keyed) => string | number | null;

/** From the strongest to the weakest. */
const TIERS: readonly KeyOf[] = [
  (row) => row.id,
  (row) => row.rowId,
  (row) => (row.stamp === null ? null : `${row.stamp}:${row.visible}`),
  (row) => (row.stamp === null ? null : `${Math.floor(row.stamp)}:${row.visible}`),
  (row) => row.visible,
];
const CONTENT_TIER = TIERS.length - 1;

/**
 * Gives rows of the sidecar the bytes that the state DB has for them.
 * @returns the same rows, those that got something as copies; the same array when none did
 */
export function attachApiContent(sidecar: readonly RawRow[], state: readonly RawRow[]): readonly RawRow[] {
  if (!state.some(hasBytes)) return sidecar;
  const reader = createRowReader();
  const theirs = trusted(reader.read(state, 'state'));
  const mine = trusted(reader.read(sidecar, 'sidecar'));
  const given = new Map<number, Keyed>();
  const spent = new Set<number>();
  for (const [tier, keyOf] of TIERS.entries()) {
    const left = mine.filter((row) => !given.has(row.index));
    const sources = uniqueBy(
      theirs.filter((row) => !spent.has(row.index)),
      keyOf,
    );
    for (const [key, row] of uniqueBy(left, keyOf)) {
      const source = sources.get(key);
      if (!row || !source || !fits(row, source, tier)) continue;
      given.set(row.index, source);
      spent.add(source.index);
    }
  }
  const donations = [...given].filter(([index, source]) => mineLacks(sidecar[index]!) && source.api !== '');
  if (donations.length === 0) return sidecar;
  const rows = [...sidecar];
  for (const [index, source] of donations) rows[index] = { ...rows[index]!, api_content: source.row.api_content };
  return rows;
}

const hasBytes = (row: RawRow): boolean => typeof row.api_content === 'string' && row.api_content !== '';
const mineLacks = (row: RawRow): boolean => row.api_content === undefined || row.api_content === '';

/** Rows of people and models whose ids and stamp can be believed. */
function trusted(rows: readonly Keyed[]): Keyed[] {
  const numbers = new Map<string, number>();
  for (const row of rows) if (row.rowId !== null) numbers.set(row.rowId, (numbers.get(row.rowId) ?? 0) + 1);
  return rows.filter((row) => {
    if ((row.role !== 'user' && row.role !== 'assistant') || row.bad) return false;
    const { id, message_id } = row.row;
    if (typeof id === 'string' && typeof message_id === 'string' && id !== message_id) return false;
    const said = rowIdsOf(row.row).map(rowNumber);
    if (said.length === 0) return true;
    return row.rowId !== null && numbers.get(row.rowId) === 1;
  });
}

/** The row of each key; null where several have it, for then nobody can say which. */
function uniqueBy(rows: readonly Keyed[], keyOf: KeyOf): Map<string | number, Keyed | null> {
  const found = new Map<string | number, Keyed | null>();
  for (const row of rows) {
    const key = keyOf(row);
    if (key !== null) found.set(key, found.has(key) ? null : row);
  }
  return found;
}

function fits(mine: Keyed, theirs: Keyed, tier: number): boolean {
  if (mine.visible !== theirs.visible) return false;
  if (mine.id !== null && theirs.id !== null && mine.id !== theirs.id) return false;
  if (mine.rowId !== null && theirs.rowId !== null && mine.rowId !== theirs.rowId) return false;
  if (mine.api !== '' && theirs.api !== '' && mine.api !== theirs.api) return false;
  return tier !== CONTENT_TIER || mine.stamp === null || theirs.stamp === null || mine.stamp === theirs.stamp;
}
