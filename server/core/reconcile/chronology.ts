/**
 * Where a row belongs by its time (RC6): for rows of the state DB that nothing but their stamp ties to the transcript.
 *
 * Everything is looked up in tables that are made once, so that any number of rows can be placed.
 */
import type { Keyed } from './keys.ts';
import { callsTools } from './row.ts';

export interface Chronology {
  /** Latest stamp of the transcript; -Infinity without any. */
  readonly latest: number;
  /**
   * The index before which a row is put; 'before' when it is older than the transcript (which may have been compacted: what
   * was taken out does not come back), 'after' when no row is later.
   */
  slotOf(row: Keyed): number | 'before' | 'after';
  /** The slot itself, or the end of the tool results in whose middle it is: a call stays with its results. */
  pastTools(slot: number): number;
}

/** Makes the tables of a transcript. */
export function chronologyOf(rows: readonly Keyed[]): Chronology {
  const latestUpTo: number[] = [];
  const toolsEnd: number[] = Array(rows.length + 1).fill(rows.length);
  const firstReply = new Map<number, number>();
  const firstText = new Map<number, number>();
  let latest = Number.NEGATIVE_INFINITY;
  for (const { stamp, index, row } of rows) {
    if (stamp !== null) {
      latest = Math.max(latest, stamp);
      if (row.role === 'assistant' && !firstReply.has(stamp)) firstReply.set(stamp, index);
      if (row.role === 'assistant' && !callsTools(row) && !firstText.has(stamp)) firstText.set(stamp, index);
    }
    latestUpTo.push(latest);
  }
  for (let at = rows.length - 1; at >= 0; at -= 1) toolsEnd[at] = rows[at]!.role === 'tool' ? toolsEnd[at + 1]! : at;

  const firstLater = (stamp: number): number => {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (latestUpTo[middle]! > stamp) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  const pastTools = (slot: number): number => {
    const before = rows[slot - 1];
    return before && (before.role === 'tool' || callsTools(before.row)) ? toolsEnd[slot]! : slot;
  };

  /** Never between a prompt and its answer when all are of one instant. */
  const pastAnswer = (slot: number, stamp: number): number => {
    const [before, next] = [rows[slot - 1], rows[slot]];
    const answers = before?.role === 'user' && next?.role === 'assistant';
    return answers && before.stamp === stamp && next.stamp === stamp ? slot + 1 : slot;
  };

  return {
    latest,
    pastTools,
    slotOf(row) {
      const { stamp } = row;
      if (stamp === null) return 'after';
      const isBareCall = row.role === 'assistant' && callsTools(row.row) && row.text === '';
      const equal = row.role === 'user' ? firstReply.get(stamp) : isBareCall ? firstText.get(stamp) : undefined;
      const later = firstLater(stamp);
      let slot = Math.min(later, equal ?? rows.length);
      if (slot === rows.length) return 'after';
      const nothingEarlier = slot === 0 || latestUpTo[slot - 1] === Number.NEGATIVE_INFINITY;
      if (nothingEarlier && slot === later) return 'before';
      if (row.role === 'user') slot = pastAnswer(slot, stamp);
      return slot;
    },
  };
}
