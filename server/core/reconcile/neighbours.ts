/**
 * Neighbourhood (RC5, RC6): what lies around the rows of two stores, once some of them are matched. It tells where a state
 * row without a twin lies, and which pairs by text are too much of the same to be a coincidence.
 */
import type { Chronology } from './chronology.ts';
import type { Keyed } from './keys.ts';
import type { Turns } from './turns.ts';
import type { Twins } from './twins.ts';

/** Both stores with what is looked up in them. */
export interface Stores {
  readonly sidecar: readonly Keyed[];
  readonly state: readonly Keyed[];
  readonly sidecarTurns: Turns;
  readonly stateTurns: Turns;
  readonly chronology: Chronology;
  /** What the sidecar says in which second. */
  readonly seconds: ReadonlySet<string>;
}

/** Where a state row without a twin lies: 'time' means that its stamp says it. */
export type Position = 'inner' | 'before' | 'time' | 'end';

/** A run of pairs with so many different texts is no coincidence. */
const REPLAY_TEXTS = 4;
const REPLAY_PROMPTS = 2;
/** Nor are two texts of this length together. */
const REPLAY_CHARS = 120;

/** Neighbours of the rows of both stores, without notices and repeats, and which pairs no coincidence made. */
export interface Neighbours {
  /** Position of a row without a twin. */
  positionOf(state: number): Position;
  readonly strong: readonly boolean[];
  /** The next sidecar row that is no notice. */
  nextSpoken(sidecar: number): number;
  /** The state row before, without repeats; -1 when there is none. */
  previousStated(state: number): number;
  /** The next state row with a twin; the length when there is none. */
  nextTwin(state: number): number;
}

/** For each index the next one whose row is not skipped; the length when there is none. */
export function skipping(rows: readonly Keyed[], skip: (row: Keyed) => boolean): (index: number) => number {
  const next: number[] = [];
  let following = rows.length;
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    next[at] = following;
    if (!skip(rows[at]!)) following = at;
  }
  return (index) => (index < 0 ? following : (next[index] ?? rows.length));
}

/** Looks around once; it is right until a pair is made or taken away. */
export function neighboursOf({ sidecar, state, chronology }: Stores, twins: Twins): Neighbours {
  const nextSpoken = skipping(sidecar, (row) => row.notice);
  const strong = strongPairs(state, twins, nextSpoken);
  const previousStated: number[] = [];
  const before: number[] = [];
  const after: number[] = [];
  for (let at = 0, last = -1, stated = -1; at < state.length; at += 1) {
    before.push(last);
    previousStated.push(stated);
    if (twins.ofState[at] !== null) last = at;
    if (!twins.repeated[at]) stated = at;
  }
  for (let at = state.length - 1, next = -1; at >= 0; at -= 1) {
    after[at] = next;
    if (twins.ofState[at] !== null) next = at;
  }
  const isCertain = (at: number): boolean => twins.tier[at] === 'sure' || strong[at] === true;
  return {
    strong,
    nextSpoken,
    nextTwin: (at) => (after[at]! < 0 ? state.length : after[at]!),
    previousStated: (at) => previousStated[at] ?? -1,
    positionOf(at) {
      const { stamp } = state[at]!;
      if (stamp !== null && stamp <= chronology.latest) return 'time';
      const [previous, next] = [before[at]!, after[at]!];
      if (next < 0) return 'end';
      const [a, b] = [previous < 0 ? -1 : twins.ofState[previous]!, twins.ofState[next]!];
      const isBetween = previous >= 0 && b > a;
      const isReplayed = isBetween && twins.tier[previous] !== 'sure' && nextSpoken(a) === b;
      if (isBetween && (isCertain(next) || isReplayed)) return 'inner';
      // What stands before a replayed transcript was taken out of it; what has no time has no other place.
      const isBefore = stamp === null ? isCertain(next) : previous < 0 && strong[next];
      return isBefore && !isBetween ? 'before' : 'end';
    },
  };
}

/** Which pairs by text lie in a run of neighbours, in both stores, that is too rich to be a coincidence. */
function strongPairs(state: readonly Keyed[], twins: Twins, nextSpoken: (index: number) => number): boolean[] {
  const strong: boolean[] = state.map(() => false);
  let run: Keyed[] = [];
  const close = (): void => {
    if (isRich(run)) for (const row of run) strong[row.index] = true;
    run = [];
  };
  for (const row of state) {
    if (twins.repeated[row.index]) continue;
    const [twin, last] = [twins.ofState[row.index], run.at(-1)];
    const isPair = typeof twin === 'number' && twins.tier[row.index] !== 'sure';
    if (!isPair || (last && nextSpoken(twins.ofState[last.index]!) !== twin)) close();
    if (isPair) run.push(row);
  }
  close();
  return strong;
}

/** Whether rows say so much that nobody says it twice. */
function isRich(run: readonly Keyed[]): boolean {
  const texts = new Map(run.map((row) => [row.visible, row.text.length]));
  const prompts = run.reduce((count, row) => count + (row.role === 'user' ? 1 : 0), 0);
  if (prompts >= REPLAY_PROMPTS && texts.size >= REPLAY_TEXTS) return true;
  return texts.size >= 2 && [...texts.values()].reduce((sum, length) => sum + length, 0) >= REPLAY_CHARS;
}
