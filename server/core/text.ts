/**
 * Text that can be stored, indexed and sent: no lone surrogates (not encodable in UTF-8) and no NUL (SQLite's own
 * functions stop at it). Both become U+FFFD, so that nothing a person or a model wrote is ever a failed turn.
 */

const REPLACEMENT = '\uFFFD';

/** Replaces lone surrogates and NUL by U+FFFD; other text is returned as it is. */
export function wellFormed(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\0') ? whole.replaceAll('\0', REPLACEMENT) : whole;
}

/** `wellFormed` for every string in a JSON value, keys included. */
export function wellFormedJson<T>(value: T): T {
  if (typeof value === 'string') return wellFormed(value) as T;
  if (Array.isArray(value)) return value.map(wellFormedJson) as T;
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [wellFormed(key), wellFormedJson(item)])) as T;
  }
  return value;
}

/** Whether a JSON value is an object, and no list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a JSON value is nested deeper than so many levels: what works its way down by itself would run out of stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return false;
}

/**
 * Joins the halves of a surrogate pair that a provider cut between two chunks: `push` returns what can be shown now,
 * `end` what is left (a half without its other half, as U+FFFD).
 */
export interface TextJoiner {
  push(chunk: string): string;
  end(): string;
}

export function createTextJoiner(): TextJoiner {
  let held = '';
  return {
    push(chunk) {
      const text = held + chunk;
      const last = text.charCodeAt(text.length - 1);
      const cut = last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
      held = text.slice(cut);
      return wellFormed(text.slice(0, cut));
    },
    end() {
      const rest = wellFormed(held);
      held = '';
      return rest;
    },
  };
}

/** Length of a text in bytes of UTF-8. */
export const utf8Length = (text: string): number => Buffer.byteLength(text, 'utf8');
