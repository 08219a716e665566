/**
 * The output of a running command as a reader follows it: a few pieces per second, each bounded, and bounded all in all,
 * because every piece is kept in the journal. What is left out is said in numbers.
 */
import { keepOutput, unfinished } from './output.ts';

/** Most bytes of one piece; the end of what came since the last one is shown. */
const PIECE_BYTES = 8 * 1024;
/** Characters after which nothing more is shown until the end. */
const MOST = 256 * 1024;

export interface LiveOutput {
  push(chunk: Buffer): void;
  /** Shows what came since the last time, if anything did. */
  flush(): void;
}

/** @param show takes one piece of text */
export function createLiveOutput(show: (text: string) => void): LiveOutput {
  let piece = keepOutput(0, PIECE_BYTES);
  // The first bytes of a character whose others are still to come.
  let part: Buffer = Buffer.alloc(0);
  let shown = 0;
  return {
    push(chunk) {
      if (shown >= MOST) return;
      const bytes = part.length > 0 ? Buffer.concat([part, chunk]) : chunk;
      const open = unfinished(bytes);
      part = Buffer.from(bytes.subarray(bytes.length - open));
      piece.push(bytes.subarray(0, bytes.length - open));
    },
    flush() {
      if (piece.isEmpty()) return;
      const text = piece.text();
      piece = keepOutput(0, PIECE_BYTES);
      shown += text.length;
      show(shown < MOST ? text : `${text}\n[What follows is not shown before the end.]\n`);
    },
  };
}
