/** Finding and replacing a text in the bytes of a file, so that all other bytes stay as they are. Pure. */

/** How often it stands there, those that overlap included. @param wanted not empty */
export function countOf(bytes: Buffer, wanted: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) count++;
  return count;
}

/**
 * Replaces it wherever it stands, from the beginning on.
 * @param most bytes that may come of it
 * @returns null when more would
 */
export function replaceAll(bytes: Buffer, wanted: Buffer, by: Buffer, most: number): Buffer | null {
  const pieces: Buffer[] = [];
  let length = 0;
  let from = 0;
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, from)) {
    pieces.push(bytes.subarray(from, at), by);
    length += at - from + by.length;
    if (length > most) return null;
    from = at + wanted.length;
  }
  pieces.push(bytes.subarray(from));
  return length + bytes.length - from > most ? null : Buffer.concat(pieces);
}
