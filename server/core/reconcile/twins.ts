/**
 * Which row of the one store is which row of the other, as far as it is certain (RC4): by id, by row number, by the same text
 * at the same instant or in the same second, and an image prompt with its copy in plain text.
 *
 * Each row has one twin at most, so a store that has a text three times has it three times.
 */
import { compatible, exactKey, type Keyed, secondKey } from './keys.ts';
import { contentText, isImagePart, partText } from './row.ts';

/** How a twin was found: certainly, by its text alone, or as the beginning of a text between matched neighbours. */
export type Tier = 'sure' | 'text' | 'cut';

export interface Twins {
  /** Index of the twin, per sidecar row and per state row; null without one. */
  readonly ofSidecar: (number | null)[];
  readonly ofState: (number | null)[];
  readonly tier: (Tier | null)[];
  /** State rows that say what another state row says, at the same instant or under the same id: written twice. */
  readonly repeated: boolean[];
}

export function pair(twins: Twins, sidecar: number, state: number, tier: Tier): void {
  twins.ofSidecar[sidecar] = state;
  twins.ofState[state] = sidecar;
  twins.tier[state] = tier;
}

export function unpair(twins: Twins, state: number): void {
  const sidecar = twins.ofState[state];
  if (typeof sidecar === 'number') twins.ofSidecar[sidecar] = null;
  twins.ofState[state] = null;
  twins.tier[state] = null;
}

/** Whether a state row is neither matched nor a repeat. */
export const isLeft = (twins: Twins, state: number): boolean =>
  twins.ofState[state] === null && twins.repeated[state] === false;

/**
 * Finds the certain twins of two lists of rows.
 * @param origins per sidecar row the state row that it was made of, where that is known
 */
export function sureTwins(
  sidecar: readonly Keyed[],
  state: readonly Keyed[],
  origins: readonly (number | null)[] = [],
): Twins {
  const twins: Twins = {
    ofSidecar: sidecar.map(() => null),
    ofState: state.map(() => null),
    tier: state.map(() => null),
    repeated: state.map(() => false),
  };
  for (const [index, origin] of origins.entries()) if (origin !== null) pair(twins, index, origin, 'sure');
  byPosition(sidecar, state, twins);
  byId(sidecar, state, twins);
  byRowNumber(sidecar, state, twins);
  const bytesKey = (row: Keyed): string | null => (row.api === '' ? null : `${exactKey(row)}\0${row.api}`);
  byKey(sidecar, state, twins, bytesKey, (row) => (row.api === '' ? null : row.moment));
  byKey(sidecar, state, twins, exactKey, (row) => row.moment);
  markRepeats(state, twins);
  byImage(sidecar, state, twins);
  byKey(sidecar, state, twins, secondKey, (row) => (row.stamp === null ? null : Math.floor(row.stamp)));
  return twins;
}

/** Whether any state row is neither matched nor a repeat. */
export const anyLeft = (twins: Twins): boolean => twins.ofState.some((_, state) => isLeft(twins, state));

/** Equal ends of the two lists, which is nearly always all of them. */
function byPosition(sidecar: readonly Keyed[], state: readonly Keyed[], twins: Twins): void {
  const isSame = (a: Keyed, b: Keyed): boolean =>
    twins.ofSidecar[a.index] === null &&
    twins.ofState[b.index] === null &&
    a.id === b.id &&
    (a.id !== null || (a.moment !== null && a.moment === b.moment && a.visible === b.visible && a.tool === b.tool)) &&
    a.api === b.api;
  const shorter = Math.min(sidecar.length, state.length);
  let equal = 0;
  for (; equal < shorter && isSame(sidecar[equal]!, state[equal]!); equal += 1) pair(twins, equal, equal, 'sure');
  const [mine, theirs] = [sidecar.length - 1, state.length - 1];
  for (let at = 0; at < shorter - equal && isSame(sidecar[mine - at]!, state[theirs - at]!); at += 1) {
    pair(twins, mine - at, theirs - at, 'sure');
  }
}

function byId(sidecar: readonly Keyed[], state: readonly Keyed[], twins: Twins): void {
  const known = new Map<string, number>();
  for (const { id, index } of sidecar) {
    if (id !== null && twins.ofSidecar[index] === null && !known.has(id)) known.set(id, index);
  }
  const seen = new Set<string>();
  for (const { id, index } of state) if (id !== null && twins.ofState[index] !== null) seen.add(id);
  for (const { id, index } of state) {
    if (id === null || twins.ofState[index] !== null) continue;
    if (seen.has(id)) twins.repeated[index] = true;
    else {
      const twin = known.get(id);
      if (twin !== undefined) pair(twins, twin, index, 'sure');
    }
    seen.add(id);
  }
}

/** Row numbers are trusted only when they are unique on both sides and the rows say the same. */
function byRowNumber(sidecar: readonly Keyed[], state: readonly Keyed[], twins: Twins): void {
  if (!anyLeft(twins)) return;
  const mine = unique(sidecar);
  for (const [number, row] of unique(state)) {
    const other = mine.get(number);
    if (!row || !other || other.visible !== row.visible || !compatible(other, row)) continue;
    if (isLeft(twins, row.index) && twins.ofSidecar[other.index] === null) pair(twins, other.index, row.index, 'sure');
  }
}

/** The row of each row number; null where several have it. */
function unique(rows: readonly Keyed[]): Map<string, Keyed | null> {
  const found = new Map<string, Keyed | null>();
  for (const row of rows) if (row.rowId !== null) found.set(row.rowId, found.has(row.rowId) ? null : row);
  return found;
}

/** How many rows with one key are looked at for one that fits: what does not fit is rare. */
const LOOK_AHEAD = 16;

/**
 * Pairs rows of one key by occurrence: the first with the first, and so on.
 * @param gateOf a part of the key that is quick to compare; no key is made for a row whose gate the other side lacks
 */
export function byKey(
  sidecar: readonly Keyed[],
  state: readonly Keyed[],
  twins: Twins,
  keyOf: (row: Keyed) => string | number | null,
  gateOf: (row: Keyed) => string | number | null,
  tier: Tier = 'sure',
): void {
  const gates = new Set<string | number | null>();
  for (const row of state) if (isLeft(twins, row.index)) gates.add(gateOf(row));
  gates.delete(null);
  if (gates.size === 0) return;
  const free = new Map<string | number, { rows: Keyed[]; head: number }>();
  const shared = new Set<string | number | null>();
  for (const row of sidecar) {
    const gate = twins.ofSidecar[row.index] === null ? gateOf(row) : null;
    const key = gates.has(gate) ? keyOf(row) : null;
    if (key === null) continue;
    shared.add(gate);
    const bucket = free.get(key);
    if (bucket) bucket.rows.push(row);
    else free.set(key, { rows: [row], head: 0 });
  }
  for (const row of state) {
    const key = isLeft(twins, row.index) && shared.has(gateOf(row)) ? keyOf(row) : null;
    const bucket = key === null ? undefined : free.get(key);
    if (!bucket) continue;
    const { rows } = bucket;
    while (bucket.head < rows.length && twins.ofSidecar[rows[bucket.head]!.index] !== null) bucket.head += 1;
    const end = Math.min(rows.length, bucket.head + LOOK_AHEAD);
    for (let at = bucket.head; at < end; at += 1) {
      const other = rows[at]!;
      if (twins.ofSidecar[other.index] !== null || !compatible(other, row)) continue;
      pair(twins, other.index, row.index, tier);
      break;
    }
  }
}

/** A row without an id that repeats another one of its own store to the instant was written twice. */
function markRepeats(state: readonly Keyed[], twins: Twins): void {
  const left = state.filter((row) => isLeft(twins, row.index) && row.moment !== null);
  if (left.length === 0) return;
  const moments = new Set(left.map((row) => row.moment));
  // Rows with different bytes for a provider are different rows; one without any is a copy of either.
  const keysOf = (row: Keyed): string[] => [`${exactKey(row)}\0`, `${exactKey(row)}\0${row.api}`];
  const isOther = (row: Keyed): boolean => twins.ofState[row.index] !== null || row.id !== null;
  const said = new Set(state.filter((row) => isOther(row) && moments.has(row.moment)).flatMap(keysOf));
  for (const row of left) {
    if (row.id !== null) continue;
    const keys = keysOf(row);
    if (said.has(keys[1]!)) twins.repeated[row.index] = true;
    for (const key of keys) said.add(key);
  }
}

/**
 * A prompt with images is a list of parts in one store and text in the other. Only the instant can tell such a prompt from
 * another one, so it must be equal, and nothing else may claim to be it.
 */
function byImage(sidecar: readonly Keyed[], state: readonly Keyed[], twins: Twins): void {
  if (!anyLeft(twins) || !(sidecar.some((row) => row.images) || state.some((row) => row.images))) return;
  const claims = new Map<string, { mine: Keyed[]; theirs: Keyed[] }>();
  const claim = (row: Keyed, side: 'mine' | 'theirs'): void => {
    if (row.role !== 'user' || row.stamp === null) return;
    for (const text of imageTexts(row)) {
      const key = `${row.stamp}\0${text}`;
      const claimed = claims.get(key) ?? { mine: [], theirs: [] };
      claimed[side].push(row);
      claims.set(key, claimed);
    }
  };
  for (const row of sidecar) if (twins.ofSidecar[row.index] === null) claim(row, 'mine');
  for (const row of state) if (isLeft(twins, row.index)) claim(row, 'theirs');
  for (const { mine, theirs } of claims.values()) {
    const [a, b] = [mine[0], theirs[0]];
    if (!a || !b || mine.length > 1 || theirs.length > 1 || a.images === b.images || !compatible(a, b)) continue;
    if (twins.ofSidecar[a.index] === null && isLeft(twins, b.index)) pair(twins, a.index, b.index, 'sure');
  }
}

/** What the plain copy of a prompt may say: all of its parts, or only what the person typed. */
function imageTexts(row: Keyed): Set<string> {
  const texts = new Set([row.text]);
  if (!row.images || !Array.isArray(row.row.content)) return texts;
  const typed = row.row.content.find((part) => !isImagePart(part) && partText(part, '') !== null);
  if (typed !== undefined) texts.add(contentText([typed]).replace(/\s+/g, ' ').trim());
  return texts;
}
