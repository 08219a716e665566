/**
 * Reading the arguments of a tool call, which may be anything: a model wrote them. Owns the words of the refusals.
 */
import { isRecord } from '../core/text.ts';

/**
 * `text`: a string that is not empty; `content`: any string; `count`: an integer from 1, also as digits in a string;
 * `flag`: true or false, also as a word. `?`: may be absent or null.
 */
type Kind = 'text' | 'text?' | 'content' | 'count?' | 'flag?';
type Value<K extends Kind> = K extends 'text' | 'content'
  ? string
  : K extends 'text?'
    ? string | undefined
    : K extends 'flag?'
      ? boolean | undefined
      : number | undefined;

export type Arguments<S extends Record<string, Kind>> =
  | { ok: true; values: { [Name in keyof S]: Value<S[Name]> } }
  | { ok: false /** A sentence for the agent. */; problem: string };

/** Reads the named arguments; others are ignored. */
export function readArguments<S extends Record<string, Kind>>(args: unknown, shape: S): Arguments<S> {
  const given = asObject(args);
  if (given === null) return { ok: false, problem: 'The arguments must be a JSON object.' };
  const values: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(shape)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === null) {
      if (!kind.endsWith('?')) return { ok: false, problem: `The argument "${name}" is missing.` };
    } else if (kind === 'count?') {
      const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
      if (!Number.isSafeInteger(count) || (count as number) < 1) {
        return { ok: false, problem: `The argument "${name}" must be a whole number from 1.` };
      }
      values[name] = count;
    } else if (kind === 'flag?') {
      if (![true, false, 'true', 'false'].includes(value as boolean | string)) {
        return { ok: false, problem: `The argument "${name}" must be true or false.` };
      }
      values[name] = value === true || value === 'true';
    } else {
      if (typeof value !== 'string') return { ok: false, problem: `The argument "${name}" must be a string.` };
      if (kind === 'text' && value === '') return { ok: false, problem: `The argument "${name}" is empty.` };
      values[name] = value;
    }
  }
  return { ok: true, values: values as { [Name in keyof S]: Value<S[Name]> } };
}

/** The value of one argument as one short line for the head of a tool card; empty where there is none. */
export function oneLine(args: unknown, name: string): string {
  const given = asObject(args);
  const value = given !== null && Object.hasOwn(given, name) ? given[name] : undefined;
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const line = String(value).slice(0, 400).replace(/\s+/g, ' ').trim();
  return (line.length > 80 ? `${line.slice(0, 79)}…` : line).toWellFormed();
}

const asObject = (args: unknown): Record<string, unknown> | null => (isRecord(args) ? args : null);
