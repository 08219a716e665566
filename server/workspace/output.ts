/**
 * The output of a command in bounded memory: its beginning and its end are kept, and how much lies between them. Bytes
 * in, printable text out. Pure.
 */

export interface KeptOutput {
  push(chunk: Buffer): void;
  /** Bytes so far, kept or not. */
  total(): number;
  /** What is kept; where something is left out, a line says how many bytes. */
  text(): string;
  isEmpty(): boolean;
}

/**
 * Keeps the first and the last bytes of an output.
 * @param headBytes most bytes of its beginning
 * @param tailBytes most bytes of its end, not 0
 */
export function keepOutput(headBytes: number, tailBytes: number): KeptOutput {
  const head: Buffer[] = [];
  const tail: Buffer[] = [];
  let headLength = 0;
  let tailLength = 0;
  let total = 0;
  return {
    push(chunk) {
      total += chunk.length;
      const toHead = chunk.subarray(0, headBytes - headLength);
      if (toHead.length > 0) {
        head.push(toHead);
        headLength += toHead.length;
      }
      const toTail = chunk.subarray(toHead.length);
      if (toTail.length === 0) return;
      tail.push(toTail);
      tailLength += toTail.length;
      while (tailLength - tail[0]!.length >= tailBytes) tailLength -= tail.shift()!.length;
    },
    total: () => total,
    isEmpty: () => total === 0,
    text() {
      const first = Buffer.concat(head);
      const rest = Buffer.concat(tail);
      if (total === headLength + tailLength && tailLength <= tailBytes) return printable(Buffer.concat([first, rest]));
      const start = withoutPart(first);
      const end = fromCharacter(rest.subarray(Math.max(0, rest.length - tailBytes)));
      const left = total - start.length - end.length;
      return `${withBreak(printable(start))}[… ${left} of ${total} bytes are left out here …]\n${printable(end)}`;
    },
  };
}

/** The end of an output, for whoever reads it while it grows. */
export interface OutputEnd {
  push(chunk: Buffer): void;
  /** At most so many bytes of text, cut between two characters. */
  text(): string;
  /** Whether something before it is gone. */
  isCut(): boolean;
}

/** Chunks that are kept apart. */
const MOST_CHUNKS = 256;

/** Keeps the last bytes of an output. @param bytes most of them, also as text */
export function keepEnd(bytes: number): OutputEnd {
  let kept: Buffer[] = [];
  let length = 0;
  let isCut = false;
  return {
    push(chunk) {
      const last = chunk.subarray(Math.max(0, chunk.length - bytes));
      if (last.length < chunk.length) isCut = true;
      kept.push(last);
      length += last.length;
      while (kept.length > 0 && length - kept[0]!.length >= bytes) {
        length -= kept.shift()!.length;
        isCut = true;
      }
      if (kept.length > MOST_CHUNKS) kept = [Buffer.concat(kept)];
    },
    text() {
      const whole = Buffer.concat(kept);
      if (length > bytes) isCut = true;
      const end = length > bytes ? fromCharacter(whole.subarray(length - bytes)) : isCut ? fromCharacter(whole) : whole;
      // What is no text is longer as text.
      const text = Buffer.from(printable(withoutPart(end)));
      if (text.length <= bytes) return text.toString();
      isCut = true;
      return fromCharacter(text.subarray(text.length - bytes)).toString();
    },
    isCut: () => isCut || length > bytes,
  };
}

const withBreak = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** How many bytes at the end begin a UTF-8 character that is not whole there. */
export function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (isInside(byte)) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? back : 0;
  }
  return 0;
}

const withoutPart = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - unfinished(bytes));

/** From the first character on that is whole. */
function fromCharacter(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && isInside(bytes[start])) start++;
  return bytes.subarray(start);
}

// Colours, movements and titles of a terminal (ECMA-48: CSI, OSC and two-character sequences).
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/g;

/** Bytes as text that can be shown anywhere: control characters and what is no UTF-8 become U+FFFD. */
export function printable(bytes: Buffer): string {
  return bytes
    .toString('utf8')
    .replace(ESCAPES, '')
    .replace(/\r\n?/g, '\n')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '\uFFFD');
}
