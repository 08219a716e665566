/** Keeps API keys out of what people and logs are shown: providers like to echo them, in full or masked. */

const PLACE = '[key]';
/** What looks like a credential, known or not: a bearer token, a key with a usual prefix, a masked key. */
const CREDENTIALS = [
  /\bBearer\s+[^\s"',;]+/gi,
  /\b(?:sk|rk|pk|gsk|xai|key|hf|nvapi|AIza|csk|fw)[-_][\w*.-]{6,}/g,
  /\bAIza[\w*-]{6,}/g,
  /[\w-]*\*{3,}[\w-]*/g,
];

/**
 * Replaces the key, and anything that looks like one, in a text of a provider.
 * @param key the provider's API key
 */
export const redactKey = (text: string, key: string | null): string => redactKeys(text, key ? [key] : []);

/** The same for several; what looks like a key comes last, so that it takes no part of one that is known. */
export function redactKeys(text: string, keys: readonly string[]): string {
  let clean = text;
  // The longest first: one may be the beginning of another.
  for (const key of keys.toSorted((a, b) => b.length - a.length)) {
    if (key === '') continue;
    for (const form of new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)])) {
      clean = form.length >= 8 ? clean.replaceAll(form, PLACE) : replaceWord(clean, form);
    }
  }
  return CREDENTIALS.reduce((done, pattern) => done.replace(pattern, PLACE), clean);
}

/** A short key (`none`, `ollama`) is also a piece of other words, so only the whole word goes. */
function replaceWord(text: string, word: string): string {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, 'g'), PLACE);
}

/** One line of at most `limit` characters, for a sentence that quotes a provider. */
export function oneLine(text: string, limit = 240): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= limit ? line : `${line.slice(0, limit - 1).toWellFormed()}…`;
}
