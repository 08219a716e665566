/**
 * What a file is, by its first bytes. Its name and what a client says of it count for nothing: either may be wrong, by
 * mistake or on purpose.
 *
 * Sources: PNG 5.2, JFIF, GIF89a, the WebP container, and the `%PDF-`, `PK` and gzip (RFC 1952) headers.
 */

/** Bytes of a beginning that are enough to tell. */
export const HEAD_BYTES = 4096;

/** Images that a browser shows and that run nothing. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];

const MAGIC: [type: string, bytes: readonly number[], at: number][] = [
  ['image/jpeg', [0xff, 0xd8, 0xff], 0],
  ['application/pdf', [0x25, 0x50, 0x44, 0x46, 0x2d], 0],
  ['application/zip', [0x50, 0x4b, 0x03, 0x04], 0],
  ['application/gzip', [0x1f, 0x8b, 0x08], 0],
];

/** Bytes that no text has: all control characters but tab, line ends, form feed and escape. */
const isControl = (byte: number): boolean =>
  byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d && byte !== 0x1b;

/**
 * The media type of a file.
 * @param head its first bytes, up to `HEAD_BYTES`
 * @returns one of `IMAGE_TYPES`, `text/plain` for any text in UTF-8, whatever is written in it, or a type that is only
 * ever downloaded
 */
export function sniffType(head: Uint8Array): string {
  const has = (bytes: readonly number[], at: number): boolean => bytes.every((byte, n) => head[at + n] === byte);
  // A signature alone is no picture.
  if (has([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0) && has(asciiOf('IHDR'), 12)) return 'image/png';
  if (has(asciiOf('RIFF'), 0) && has(asciiOf('WEBPVP8'), 8)) return 'image/webp';
  if (has(asciiOf('GIF87a'), 0) || has(asciiOf('GIF89a'), 0)) return 'image/gif';
  const known = MAGIC.find(([, bytes, at]) => has(bytes, at));
  if (known) return known[0];
  return isText(head, head.length >= HEAD_BYTES) ? 'text/plain' : 'application/octet-stream';
}

/** Whether this is an image that a model may be given. */
export const isImageType = (type: string): type is ImageType => (IMAGE_TYPES as readonly string[]).includes(type);

/**
 * Whether bytes are text in UTF-8, and not empty.
 * @param cut there may be more of it: its last character may be half there
 */
export function isText(bytes: Uint8Array, cut: boolean): boolean {
  return bytes.length > 0 && !bytes.some(isControl) && textOf(bytes, cut) !== null;
}

/** The text of bytes in UTF-8, without a mark of the byte order; null when they are none. */
export function textOf(bytes: Uint8Array, cut: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: cut });
  } catch (error) {
    if (error instanceof TypeError) return null; // what a strict decoder says of bytes that are no text
    throw error;
  }
}

const asciiOf = (text: string): number[] => [...text].map((sign) => sign.charCodeAt(0));
