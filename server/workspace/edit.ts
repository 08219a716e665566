/**
 * Finding and replacing a text in the bytes of a file, so that all other bytes stay as they are. Pure. Takes time for each
 * byte once, whatever repeats itself in either of them: the server waits for it, and an agent chose both.
 * Source of the method: Knuth, Morris, Pratt, "Fast Pattern Matching in Strings", 1977.
 */

/** How often it stands there, those that overlap included. @param wanted not empty */
export function countOf(bytes: Buffer, wanted: Buffer): number {
  let count = 0;
  eachPlace(bytes, wanted, true, () => {
    count += 1;
  });
  return count;
}

/**
 * Replaces it wherever it stands, from the beginning on.
 * @param most bytes that may come of it
 * @returns null when more would
 */
export function replaceAll(bytes: Buffer, wanted: Buffer, by: Buffer, most: number): Buffer | null {
  const result = Buffer.allocUnsafe(most);
  let length = 0;
  let from = 0;
  const add = (part: Buffer, start: number, end: number): void => {
    if (length + end - start <= most) part.copy(result, length, start, end);
    length += end - start;
  };
  eachPlace(bytes, wanted, false, (at) => {
    add(bytes, from, at);
    add(by, 0, by.length);
    from = at + wanted.length;
  });
  add(bytes, from, bytes.length);
  return length > most ? null : Buffer.from(result.subarray(0, length));
}

/** Tells each place where it stands, in their order. @param overlapping also those that begin within another one */
function eachPlace(bytes: Buffer, wanted: Buffer, overlapping: boolean, found: (at: number) => void): void {
  const borders = bordersOf(wanted);
  let matched = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    while (matched > 0 && bytes[at] !== wanted[matched]) matched = borders[matched - 1]!;
    if (bytes[at] === wanted[matched]) matched += 1;
    if (matched < wanted.length) continue;
    found(at + 1 - wanted.length);
    matched = overlapping ? borders[matched - 1]! : 0;
  }
}

/** For each beginning of a text, by its last index: how much of its end is its own beginning as well. */
function bordersOf(wanted: Buffer): Uint32Array {
  const borders = new Uint32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at += 1) {
    while (length > 0 && wanted[at] !== wanted[length]) length = borders[length - 1]!;
    if (wanted[at] === wanted[length]) length += 1;
    borders[at] = length;
  }
  return borders;
}
