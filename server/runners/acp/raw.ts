/**
 * Reading JSON that an agent wrote and nobody checked: every reader takes anything and gives something of the wanted shape.
 * What is kept of it is bounded, and can be stored and sent (no lone surrogates, no NUL).
 */
import { isRecord, wellFormed } from '../../core/text.ts';

export type Raw = Record<string, unknown>;

export const recordOf = (value: unknown): Raw => (isRecord(value) ? value : {});

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A count: finite, whole, from 0; undefined for anything else. */
export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;

export const isEmptyValue = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** A text on one line, cut to so many characters. */
export function oneLineOf(text: string, most: number): string {
  const line = text
    .slice(0, most * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return wellFormed(line.length > most ? `${line.slice(0, most - 1)}…` : line);
}

/** The beginning and the end of a text that is longer than `most` characters, with how many are left out between them. */
export function cutMiddle(text: string, most: number): string {
  if (text.length <= most) return wellFormed(text);
  const half = Math.floor(most / 2);
  const left = text.length - 2 * half;
  return wellFormed(
    `${text.slice(0, half)}\n[… ${left} of ${text.length} characters are left out here …]\n${text.slice(-half)}`,
  );
}

/** Characters of all texts and names of a JSON value, about. */
export function weightOf(value: unknown): number {
  let weight = 0;
  const open = [value];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (typeof part === 'string') weight += part.length;
    if (typeof part !== 'object' || part === null) continue;
    for (const [key, item] of Object.entries(part)) {
      weight += key.length + 8;
      if (item !== undefined) open.push(item);
    }
  }
  return weight;
}

const MOST_LEVELS = 12;

/**
 * A JSON value of bounded size: long texts are cut, and what is too deep or too much is left out and says so.
 * @param most characters of all its texts and keys, about
 */
export function boundedJson(value: unknown, most: number): unknown {
  let left = most;
  const walk = (part: unknown, level: number): unknown => {
    if (typeof part === 'string') {
      const text = cutMiddle(part, Math.max(64, left));
      left -= text.length;
      return text;
    }
    if (typeof part !== 'object' || part === null) return part;
    if (level === MOST_LEVELS) return '[too deep to be shown]';
    const entries = Object.entries(part);
    const kept: [string, unknown][] = [];
    for (const [key, item] of entries) {
      if (left <= 0) break;
      left -= key.length + 8;
      kept.push([cutMiddle(key, 200), walk(item, level + 1)]);
    }
    const missing = entries.length - kept.length;
    if (missing > 0) kept.push(['…', `[${missing} more are left out]`]);
    return Array.isArray(part) ? kept.map(([, item]) => item) : Object.fromEntries(kept);
  };
  return walk(value, 0);
}
