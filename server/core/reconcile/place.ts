/**
 * Placing what only the state DB has (RC2, RC5, RC6): every row that is left without a twin is given a slot of the sidecar, or
 * is left out.
 *
 * Rows with an id follow their nearest predecessor and are never left out. Of the rows of other programs a new prompt takes
 * its output with it, an unanswered turn takes the answer that it lacks, and what is newer than everything goes to the end;
 * an unknown reply in the middle of turns that have theirs is another version of what the person saw, and stays out.
 */
import { isSaid, type Keyed } from './keys.ts';
import type { Neighbours, Stores } from './neighbours.ts';
import { repeatedBlocks } from './repeats.ts';
import { callsTools, isAnswer, isMarkerRow, isOurId, placeInRun } from './row.ts';
import type { TimeFence } from './time-fence.ts';
import { type TurnState, turnState } from './turns.ts';
import { isLeft, type Twins } from './twins.ts';

export interface Placement {
  /** State rows to put before each index of the sidecar (its length: at the end), in their order. */
  readonly at: ReadonlyMap<number, readonly number[]>;
  /** Markers of the sidecar that an answer supersedes. */
  readonly replaced: ReadonlySet<number>;
}

/** What became of the prompt of the turn of the state DB that is being read. */
type Current = { kind: 'none' } | { kind: 'known'; prompt: number } | { kind: 'new' } | { kind: 'refused' };

/** @param fence what it admits of the rows without an id; null to place those with one only */
export function place(stores: Stores, twins: Twins, neighbours: Neighbours, fence: TimeFence | null): Placement {
  const { sidecar, state, sidecarTurns, stateTurns, chronology } = stores;
  const slots = new Map<number, number[]>();
  const replaced = new Set<number>();
  const states = new Map<number, TurnState>();
  const callSlots = new Map<string, number>();
  const contents = new Set(sidecar.map((row) => row.content));
  const replays = sidecar.length > 0 ? repeatedBlocks(state, twins) : new Set<number>();
  const ownSlots = slotsInRuns(sidecar);
  const lastSpoken = sidecar.findLastIndex((row) => !row.notice);
  const lastPrompt = sidecar.findLastIndex((row) => row.role === 'user');
  const lastTwin = twins.ofState.findLastIndex((twin) => twin !== null);
  /** The slot behind the row of the transcript that was read last. */
  let cursor = 0;
  let current: Current = { kind: 'none' };
  let reached = false;

  const stateOf = (prompt: number): TurnState => {
    let known = states.get(prompt);
    if (!known) {
      known = turnState(sidecar, prompt, sidecarTurns.endOf(prompt));
      states.set(prompt, known);
    }
    return known;
  };

  const put = (row: Keyed, slot: number): void => {
    const end = row.role === 'tool' ? slot : chronology.pastTools(slot);
    const group = slots.get(end);
    if (group) group.push(row.index);
    else slots.set(end, [row.index]);
    cursor = end;
    if (!callsTools(row.row)) return;
    for (const call of row.row.tool_calls as { id?: unknown }[]) {
      if (typeof call?.id === 'string') callSlots.set(call.id, end);
    }
  };

  /** An answer that comes late takes the place of what said that there is none, unless that was said after it. */
  const supersede = (row: Keyed, prompt: number): void => {
    if (!isAnswer(row.row)) return;
    for (const marker of stateOf(prompt).markers) {
      const twin = twins.ofSidecar[marker];
      if (twin === null || twin === undefined || twin < row.index) replaced.add(marker);
    }
  };

  /** Behind what the turn has, or where the state DB has it when more of the turn follows there. */
  const putInTurn = (row: Keyed, prompt: number): void => {
    const { tail } = stateOf(prompt);
    const next = neighbours.nextTwin(row.index);
    const follows = stateTurns.promptOf[next] === stateTurns.promptOf[row.index];
    put(row, follows && cursor > prompt ? cursor : tail);
    supersede(row, prompt);
  };

  const placeNamed = (row: Keyed): void => {
    if (isMarkerRow(row.row) && isSuperseded(row)) return;
    put(row, ownSlots.slotOf(row, state[row.index - 1]) ?? cursor);
    if (row.role === 'user') current = { kind: 'new' };
    else if (current.kind === 'known') supersede(row, current.prompt);
  };

  /** Whether an answer without an id, that another program stored behind a marker of ours, tells it wrong. */
  const isSuperseded = (marker: Keyed): boolean => {
    if (!isOurId(marker.id)) return false;
    const end = stateTurns.endOf(stateTurns.promptOf[marker.index]!);
    return state.slice(marker.index + 1, end).some((row) => row.id === null && isAnswer(row.row));
  };

  /** @returns whether the row found a place by its order or its time */
  const placeByPosition = (row: Keyed): boolean => {
    const position = neighbours.positionOf(row.index);
    if (position === 'before') return false;
    if (position === 'inner') put(row, cursor);
    else if (position === 'end') put(row, sidecar.length);
    else {
      const slot = chronology.slotOf(row);
      if (slot === 'before') return false;
      put(row, slot === 'after' ? sidecar.length : slot);
    }
    return true;
  };

  const placePrompt = (row: Keyed): void => {
    // Within the time of the transcript, what was said in its second already is another copy of that.
    const isCopy = neighbours.positionOf(row.index) === 'time' && isSaid(stores.seconds, row);
    const placed = !isCopy && placeByPosition(row);
    current = { kind: placed ? 'new' : 'refused' };
  };

  const placeOutput = (row: Keyed): void => {
    const call = typeof row.row.tool_call_id === 'string' ? callSlots.get(row.row.tool_call_id) : undefined;
    if (row.role === 'tool' && call !== undefined) put(row, call);
    else if (current.kind === 'new') put(row, cursor);
    else if (current.kind === 'known' && !stateOf(current.prompt).answered) putInTurn(row, current.prompt);
    else if (isLate(row)) putInTurn(row, lastPrompt);
    else if (neighbours.positionOf(row.index) !== 'time' || isOtherCall(row)) placeByPosition(row);
  };

  /** A call whose like the turn has, but not with these arguments. */
  const isOtherCall = (row: Keyed): boolean => callsTools(row.row) && contents.has(row.content);

  /** Whether an answer whose prompt the state DB has lost belongs to the last turn of the sidecar, which lacks one. */
  const isLate = (row: Keyed): boolean => {
    const isOpen = lastPrompt >= 0 && twins.ofSidecar[lastPrompt] === null && current.kind !== 'refused';
    if (!isOpen || !isAnswer(row.row) || row.index < lastTwin) return false;
    const { answered, markers } = stateOf(lastPrompt);
    const since = sidecar[lastPrompt]!.stamp;
    const notBefore = row.stamp === null || since === null || row.stamp >= Math.floor(since);
    return !answered && markers.length > 0 && notBefore;
  };

  for (const row of state) {
    const twin = twins.ofState[row.index];
    if (typeof twin === 'number') {
      cursor = twin + 1;
      if (twin === lastSpoken) reached = true;
      if (row.role === 'user') current = { kind: 'known', prompt: twin };
      continue;
    }
    const isOpen = isLeft(twins, row.index) && !replays.has(row.index);
    if (isOpen && row.id !== null) placeNamed(row);
    else if (isOpen && fence?.admits(row, reached, neighbours.nextTwin(row.index) === state.length)) {
      if (row.role === 'user') placePrompt(row);
      else placeOutput(row);
    } else if (row.role === 'user') current = { kind: 'refused' };
  }
  for (const group of slots.values()) group.sort((a, b) => a - b);
  return { at: slots, replaced };
}

/** Where a row of a run belongs among those of its run, when the state DB has lost the rows before it. */
function slotsInRuns(sidecar: readonly Keyed[]) {
  const runs = new Map<string, { at: number; index: number }[]>();
  for (const { id, index } of sidecar) {
    const place = placeInRun(id);
    if (!place) continue;
    const known = runs.get(place.run);
    if (known) known.push({ at: place.at, index });
    else runs.set(place.run, [{ at: place.at, index }]);
  }
  return {
    /** @returns null when its predecessor in the state DB tells it, or nothing does */
    slotOf(row: Keyed, previous: Keyed | undefined): number | null {
      const place = placeInRun(row.id);
      if (!place || placeInRun(previous?.id ?? null)?.run === place.run) return null;
      const own = runs.get(place.run) ?? [];
      const before = own.findLast(({ at }) => at < place.at);
      if (before) return before.index + 1;
      return own.find(({ at }) => at > place.at)?.index ?? null;
    },
  };
}
