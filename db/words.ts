/** Words of a query in a short text: the filter of the session list. SQLite's own LIKE knows the case of ASCII only. */

/**
 * Whether a text contains each word of a query, without regard to case and with no sign special. A query without a
 * word is contained in everything, also in nothing (a title that is null).
 */
export function hasWords(text: unknown, q: unknown): boolean {
  const words = String(q).toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  if (typeof text !== 'string') return false;
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}
