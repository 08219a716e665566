/** A few words around what was searched for, for hits that no full-text index has cut. */

/** The words of a query as they are compared: the same ones that `toMatch` takes. */
export const wordsOf = (q: string): string[] => q.toLowerCase().match(/[\p{L}\p{N}\p{M}_]+/gu) ?? [];

/** Characters that are shown before and behind the first word that was found. */
const BEFORE = 40;
const BEHIND = 90;

export function snippetOf(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const at = places.length > 0 ? Math.min(...places) : 0;
  const from = Math.max(0, at - BEFORE);
  const cut = text
    .slice(from, at + BEHIND)
    .replaceAll(/\s+/g, ' ')
    .trim();
  return `${from > 0 ? '…' : ''}${cut}${at + BEHIND < text.length ? '…' : ''}`;
}
