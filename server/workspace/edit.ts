/** Finding and replacing a text in the bytes of a file, so that all other bytes stay as they are. Pure. */

/** From here on it is not counted further: a text that repeats itself would take its length for each of its places. */
export const MOST_COUNTED = 100;

/** How often it stands there, those that overlap included, counted up to `MOST_COUNTED`. @param wanted not empty */
export function countOf(bytes: Buffer, wanted: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at >= 0 && count < MOST_COUNTED; at = bytes.indexOf(wanted, at + 1)) count++;
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
  for (let at = bytes.indexOf(wanted); at >= 0 && length <= most; at = bytes.indexOf(wanted, from)) {
    add(bytes, from, at);
    add(by, 0, by.length);
    from = at + wanted.length;
  }
  add(bytes, from, bytes.length);
  return length > most ? null : Buffer.from(result.subarray(0, length));
}
