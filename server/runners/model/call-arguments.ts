/** The arguments of a tool call: text that a model wrote, which may be anything. Pure. */
import { isDeeperThan, isRecord } from '../../core/text.ts';

/** Levels of arguments; no tool has more than four, and what is much deeper can be neither stored nor sent. */
const MAX_DEPTH = 100;

/** The arguments as a value; text that is not JSON, or too deep, stays text. A call without arguments has none to check. */
export function readCallArguments(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return isDeeperThan(value, MAX_DEPTH) ? text : value;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/**
 * What a model wrote as arguments, as the object that providers insist on; anything else is kept under a name that
 * tells the model what it did.
 */
export function argumentsObject(value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value;
  return { invalid_arguments: value ?? null };
}
