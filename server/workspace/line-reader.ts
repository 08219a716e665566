/** Lines out of the pieces in which a program's output comes, in bounded memory. */

export interface LineReader {
  /** @returns false when the line that is being read has become too long: nothing more is to be read then */
  push(chunk: Buffer): boolean;
}

/**
 * @param maxBytes most of one line
 * @param onLine takes a line without its end; what is no UTF-8 in it is U+FFFD
 */
export function createLineReader(maxBytes: number, onLine: (line: string) => void): LineReader {
  let parts: Buffer[] = [];
  let length = 0;
  return {
    push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
        if (length + at - from > maxBytes) return false;
        parts.push(chunk.subarray(from, at));
        const line = Buffer.concat(parts).toString('utf8');
        parts = [];
        length = 0;
        from = at + 1;
        onLine(line.endsWith('\r') ? line.slice(0, -1) : line);
      }
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
      return length <= maxBytes;
    },
  };
}

const NEWLINE = 0x0a;
