/**
 * Whether a row is a `Message` as the interface describes it (RC9): what is not is never passed on as it stands, whoever
 * wrote it and whatever id it bears, but is shown field by field.
 */

import type { Todo } from '../terms.ts';
import { isRecord } from '../text.ts';
import type { RawRow } from './row.ts';

const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'tool', 'system']);
const STATUSES: ReadonlySet<unknown> = new Set(['complete', 'partial', 'interrupted', 'error']);
const TODO_STATUSES: ReadonlySet<unknown> = new Set(['pending', 'in_progress', 'completed']);

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
function isCall(value: unknown): boolean {
  if (!isRecord(value) || !isText(value.id) || !isRecord(value.function)) return false;
  return isText(value.function.name) && isText(value.function.arguments);
}

export const isTodos = (value: unknown): value is Todo[] =>
  Array.isArray(value) && value.every((one) => isRecord(one) && isText(one.content) && TODO_STATUSES.has(one.status));

const isUsage = (value: unknown): boolean =>
  isRecord(value) &&
  isNumber(value.input_tokens) &&
  isNumber(value.output_tokens) &&
  Object.values(value).every(isNumber);

/** Fields that a message may have, and what they must be. */
const FIELDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['role', (value) => ROLES.has(value)],
  ['content', isText],
  ['timestamp', isNumber],
  ['run_id', isText],
  ['status', (value) => STATUSES.has(value)],
  ['tool_calls', (value) => Array.isArray(value) && value.every(isCall)],
  ['tool_call_id', isText],
  ['name', isText],
  ['is_error', isFlag],
  ['duration_s', isNumber],
  ['diff', isText],
  ['denied', isFlag],
  ['todos', isTodos],
  ['reasoning', isText],
  ['attachments', (value) => Array.isArray(value) && value.every(isText)],
  ['model', isText],
  ['usage', isUsage],
  ['recovered', isFlag],
  ['error', (value) => isRecord(value) && isText(value.code) && isText(value.message)],
]);

/** Whether everything that we know of in a row is of its kind. Fields that we do not know may be anything. */
export function isWellTyped(row: RawRow): boolean {
  if (row.role === undefined || row.content === undefined || row.timestamp === undefined) return false;
  // By the fields that it has, which are few: this is asked of every row of every transcript that is read.
  for (const name in row) {
    const value = row[name as keyof RawRow];
    if (value !== undefined && FIELDS.get(name)?.(value) === false) return false;
  }
  return true;
}
