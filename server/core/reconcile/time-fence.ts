/**
 * The edit fences of another program (RC7): times instead of ids. The watermark is the time of the last row that an edit
 * kept, moved on by each later prompt; the boundary stays where the edit was. They decide what a state DB that knows
 * nothing of the edit may bring back.
 */
import type { Keyed } from './keys.ts';
import type { Fences } from './row.ts';

export interface TimeFence {
  /**
   * Whether a state row that the sidecar lacks may come back.
   * @param reached whether the state rows before it reached the last row of the sidecar
   * @param last whether no state row behind it is in the sidecar
   */
  admits(row: Keyed, reached: boolean, last: boolean): boolean;
}

/** @param transcript what is part of the transcript already */
export function timeFence({ watermark, boundary }: Fences, transcript: readonly Keyed[]): TimeFence {
  if (watermark === null) return { admits: () => true };
  const latest = transcript.reduce((most, { stamp }) => Math.max(most, stamp ?? most), Number.NEGATIVE_INFINITY);
  const edited = boundary !== null && boundary < watermark;
  if (transcript.length === 0) {
    return {
      admits({ stamp }) {
        if (watermark <= 0 || stamp === null) return false;
        return edited ? stamp <= boundary || stamp >= watermark : stamp <= watermark;
      },
    };
  }
  return {
    admits({ stamp, role }, reached, last) {
      if (stamp === null) return false; // It cannot prove that it is newer than the edit.
      const advanced = latest > watermark || (edited && reached);
      const sameSecond = Math.floor(stamp) === Math.floor(watermark);
      if (sameSecond && role !== 'user' && reached) return true;
      return stamp > watermark && advanced && stamp > latest && (reached || last);
    },
  };
}
