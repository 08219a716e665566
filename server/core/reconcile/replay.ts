/**
 * Twins by text (RC4, RC5): rows that the state DB has under another time. Programs re-stamp a conversation when they write
 * it anew, and people say the same thing twice; the one must add nothing and the other must not be lost.
 *
 * The texts that certain twins leave over are aligned as sequences. Then each prompt among the pairs is judged by what
 * follows it: with an old answer it is a replay, with a new one it is a new turn, and alone it is kept when in doubt.
 */
import { align, ascending, type Pair } from './align.ts';
import { compatible, type Keyed } from './keys.ts';
import { type Neighbours, neighboursOf, type Stores, skipping } from './neighbours.ts';
import { fieldOf, isAnswer, isPartialRow } from './row.ts';
import { turnState } from './turns.ts';
import { byKey, isLeft, pair, type Twins, unpair } from './twins.ts';

/** Between submitting a prompt and storing it an agent takes this many seconds at most. */
const SAME_PROMPT_S = 30;
/** Each round takes pairs away that turned out to be new turns; what is left is aligned again. */
const ROUNDS = 4;

/** Adds to the certain twins those that are found by text. */
export function addTextTwins(stores: Stores, twins: Twins): Neighbours {
  pairOpenPrompt(stores, twins);
  const fresh = new Set<number>();
  for (let round = 0; ; round += 1) {
    alignTexts(stores, twins, fresh);
    pairCuts(stores, twins, fresh);
    const neighbours = neighboursOf(stores, twins);
    const refuted = judge(stores, twins, neighbours);
    for (const state of refuted) {
      unpair(twins, state);
      fresh.add(state);
    }
    if (refuted.length === 0) return neighbours;
    if (round + 1 === ROUNDS) return neighboursOf(stores, twins);
    for (const row of stores.state) if (twins.tier[row.index] !== 'sure') unpair(twins, row.index);
  }
}

/**
 * The last prompt of the sidecar while it has no answer: the state DB may have it with a time of its own. Where the sidecar
 * has its text several times behind the last certain twin, the state DB may too: the first is the first.
 */
function pairOpenPrompt(stores: Stores, twins: Twins): void {
  const { sidecar, state, sidecarTurns } = stores;
  const prompt = sidecar.findLast((row) => row.role === 'user');
  if (!prompt || twins.ofSidecar[prompt.index] !== null) return;
  if (turnState(sidecar, prompt.index, sidecarTurns.endOf(prompt.index)).answered) return;
  let [from, to] = [0, state.length];
  let since = 0;
  for (const [at, twin] of twins.ofState.entries()) {
    if (twin === null) continue;
    if (twin < prompt.index) {
      from = at + 1;
      since = Math.max(since, twin + 1);
    } else to = Math.min(to, at);
  }
  const copies = sidecar.slice(since, prompt.index + 1).filter((row) => {
    return row.visible === prompt.visible && twins.ofSidecar[row.index] === null;
  });
  const candidates = state.slice(from, to).filter((row) => {
    return row.visible === prompt.visible && isLeft(twins, row.index) && isOpenPrompt(stores, prompt, row);
  });
  const found = candidates[Math.min(copies.length, candidates.length) - 1];
  if (found) pair(twins, prompt.index, found.index, 'sure');
}

function isOpenPrompt({ stateTurns, chronology }: Stores, prompt: Keyed, row: Keyed): boolean {
  if (row.ours || row.stamp === null || prompt.stamp === null || !compatible(row, prompt)) return false;
  const recovered = fieldOf(prompt.row, '_recovered') === true || isPartialRow(prompt.row);
  const inRange = row.stamp <= chronology.latest;
  const hasOutput = stateTurns.endOf(row.index) > row.index + 1;
  if (!inRange && !hasOutput && !recovered) return false;
  return isNear(prompt, row) || (inRange && row.stamp > prompt.stamp);
}

const isNear = (a: Keyed, b: Keyed): boolean =>
  a.stamp === null || b.stamp === null || Math.abs(a.stamp - b.stamp) <= SAME_PROMPT_S;

const isUntimed = (row: Keyed): boolean => row.stamp === null && !row.bad && !row.ours;
const textOf = (row: Keyed): number => row.visible;

/** Rows of which one store has the time or the order only. */
function alignTexts({ sidecar, state }: Stores, twins: Twins, fresh: ReadonlySet<number>): void {
  alignGaps({ sidecar, state }, twins, (row, store) => {
    return !row.bad && (store === 'sidecar' || (!row.ours && !fresh.has(row.index)));
  });
  const untimed = state.filter((row) => isUntimed(row) && !fresh.has(row.index));
  byKey(sidecar, untimed, twins, textOf, textOf, 'text');
}

/** Aligns what is left between the twins that both stores have in the same order. */
function alignGaps(
  { sidecar, state }: Pick<Stores, 'sidecar' | 'state'>,
  twins: Twins,
  mayMatch: (row: Keyed, store: 'sidecar' | 'state') => boolean,
): void {
  const found: Pair[] = [];
  for (const [index, twin] of twins.ofSidecar.entries()) if (twin !== null) found.push([index, twin]);
  let [mine, theirs] = [0, 0];
  for (const [nextMine, nextTheirs] of [...ascending(found), [sidecar.length, state.length] as const]) {
    if (nextMine === mine || nextTheirs === theirs) {
      [mine, theirs] = [nextMine + 1, nextTheirs + 1];
      continue;
    }
    const a = sidecar
      .slice(mine, nextMine)
      .filter((row) => twins.ofSidecar[row.index] === null && mayMatch(row, 'sidecar'));
    const b = state.slice(theirs, nextTheirs).filter((row) => isLeft(twins, row.index) && mayMatch(row, 'state'));
    const keys = a.length > 0 && b.length > 0 ? [a, b].map((rows) => rows.map((row) => row.visible)) : [[], []];
    for (const [x, y] of align(keys[0]!, keys[1]!)) {
      if (compatible(a[x]!, b[y]!)) pair(twins, a[x]!.index, b[y]!.index, 'text');
    }
    [mine, theirs] = [nextMine + 1, nextTheirs + 1];
  }
}

/**
 * A text of which one store has only the beginning is the same text where the rows around it are matched: both of them, or
 * the certain one before it when nothing follows. A fragment that is known as one is no answer, so more of it is welcome.
 */
function pairCuts({ sidecar, state }: Stores, twins: Twins, fresh: ReadonlySet<number>): void {
  const nextSpoken = skipping(sidecar, (row) => row.notice);
  const nextStated = skipping(state, (row) => twins.repeated[row.index] === true);
  let before = -1;
  for (const row of state) {
    if (twins.repeated[row.index]) continue;
    const [previous, at] = [before, row.index];
    before = at;
    const twin = previous < 0 ? null : twins.ofState[previous];
    if (typeof twin !== 'number' || !isLeft(twins, at) || row.ours || fresh.has(at)) continue;
    const other = sidecar[nextSpoken(twin)];
    if (!other || twins.ofSidecar[other.index] !== null || !isCut(other, row) || !compatible(other, row)) continue;
    const next = nextStated(at);
    const behind = nextSpoken(other.index);
    const enclosed = next < state.length && behind < sidecar.length && twins.ofState[next] === behind;
    const atEnd = next === state.length || behind === sidecar.length;
    const sameSecond = row.stamp !== null && other.stamp !== null && Math.floor(row.stamp) === Math.floor(other.stamp);
    const known = twins.tier[previous] === 'sure' && row.role !== 'user';
    if (enclosed || (atEnd && (sameSecond || known))) pair(twins, other.index, at, 'cut');
  }
}

function isCut(mine: Keyed, theirs: Keyed): boolean {
  if (mine.shape !== theirs.shape || mine.text === '' || theirs.text === '') return false;
  if (mine.text.startsWith(theirs.text)) return true;
  return theirs.text.startsWith(mine.text) && !(isPartialRow(mine.row) && isAnswer(theirs.row));
}

/** The prompts whose pair does not hold: they are new. */
function judge(stores: Stores, twins: Twins, neighbours: Neighbours): number[] {
  const isWeak = ({ index }: Keyed): boolean => twins.tier[index] === 'text' && !neighbours.strong[index];
  return stores.state
    .filter((row) => row.role === 'user' && isWeak(row) && !isReplay(stores, twins, neighbours, row))
    .map((row) => row.index);
}

/** Whether a prompt with the text of an old one is that old one. */
function isReplay(stores: Stores, twins: Twins, neighbours: Neighbours, row: Keyed): boolean {
  const { sidecar, state, sidecarTurns, stateTurns, chronology } = stores;
  const old = sidecar[twins.ofState[row.index]!]!;
  const oldEnd = sidecarTurns.endOf(old.index);
  const output = state.slice(row.index + 1, stateTurns.endOf(row.index)).filter((one) => !twins.repeated[one.index]);
  const answersOld = output.some((one) => {
    const twin = twins.ofState[one.index];
    return typeof twin === 'number' && twin > old.index && twin < oldEnd;
  });
  if (answersOld) return true;

  const isNewer = row.stamp !== null && (old.stamp === null || row.stamp > old.stamp);
  const previous = neighbours.previousStated(row.index);
  const twinBefore = previous < 0 || twins.tier[previous] === 'sure' ? null : twins.ofState[previous];
  const followsReplay = typeof twinBefore === 'number' && neighbours.nextSpoken(twinBefore) === old.index;
  if (output.some((one) => one.role === 'assistant')) {
    if (turnState(sidecar, old.index, oldEnd).answered) return false;
    return !isNewer || isNear(old, row) || followsReplay;
  }
  return !isNewer || row.stamp! <= chronology.latest || followsReplay;
}
