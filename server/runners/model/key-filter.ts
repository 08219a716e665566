/**
 * Keeps the API key out of what is streamed, should a provider repeat it in an answer. A chunk passes as it is unless it
 * holds the key; only one that ends like the key begins is held until the next shows which it was.
 */

const PLACE = '[key]';
/** A key that is shorter is no secret (`none`, `ollama`). */
const SHORTEST_KEY = 8;
/** So much of the key must stand at the end of a chunk: fewer letters are the end of any word. */
const SHORTEST_BEGINNING = 4;

export interface KeyFilter {
  push(chunk: string): string;
  /** What is still held. */
  end(): string;
  /** A text that is complete. */
  whole(text: string): string;
}

/** Starts the filter of one answer. @param key the provider's API key */
export function createKeyFilter(key: string | null): KeyFilter {
  if (key === null || key.length < SHORTEST_KEY) return PLAIN;
  const whole = (text: string): string => text.replaceAll(key, PLACE);
  let held = '';
  return {
    push(chunk) {
      const text = whole(held + chunk);
      const size = beginningAtEnd(text, key);
      held = text.slice(text.length - size);
      return text.slice(0, text.length - size);
    },
    end() {
      const rest = held;
      held = '';
      return rest;
    },
    whole,
  };
}

const PLAIN: KeyFilter = { push: (chunk) => chunk, end: () => '', whole: (text) => text };

/** How many letters at the end of a text are the beginning of the key. */
function beginningAtEnd(text: string, key: string): number {
  for (let size = Math.min(key.length - 1, text.length); size >= SHORTEST_BEGINNING; size -= 1) {
    if (text.endsWith(key.slice(0, size))) return size;
  }
  return 0;
}
