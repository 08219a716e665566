/** What an update says of the call that it belongs to. */
import { isEmptyValue, type Raw, stringOf } from './raw.ts';

const STATUSES = new Map<unknown, 'pending' | 'in_progress' | 'completed' | 'failed'>([
  ['pending', 'pending'],
  ['in_progress', 'in_progress'],
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['cancelled', 'failed'], // no word of the protocol, but of agents
]);

export const statusOf = ({ status }: Raw): 'pending' | 'in_progress' | 'completed' | 'failed' | undefined =>
  STATUSES.get(status);

/** The id of its call, of bounded length. */
export const keyOf = ({ toolCallId }: Raw): string =>
  typeof toolCallId === 'number' ? String(toolCallId) : stringOf(toolCallId).slice(0, 1024);

/** Whether it says what its call does, as the first of a call should. */
export const saysWhat = ({ title, kind, name, rawInput }: Raw): boolean =>
  [title, kind, name, rawInput].some((value) => !isEmptyValue(value));
