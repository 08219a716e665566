/**
 * What a content column of `messages` holds: plain text, or any JSON behind a mark. The format is that of Hermes, in whose
 * databases and beside whose rows in ours it is met.
 */

/** What stands before content that is not plain text. */
const STRUCTURED = '\0json:';

/** JSON text as its value; text that is none stays text. */
export function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** A column as text. Bytes may stand where a text should be, as a database allows. */
export const columnText = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString('utf8') : String(value ?? '');

/** The content in a column: a text, or the value behind the mark. */
export function contentOf(value: unknown): unknown {
  const text = columnText(value);
  return text.startsWith(STRUCTURED) ? parsedOr(text.slice(STRUCTURED.length)) : text;
}

/** Content that is no plain text, as a column keeps it. */
export const structuredContent = (value: unknown): string => STRUCTURED + JSON.stringify(value);
