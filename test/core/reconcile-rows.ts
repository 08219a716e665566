/** Rows for tests of reconcile, in a notation that is as short as the situations are. */
import { reconcile } from '../../server/core/reconcile/reconcile.ts';
import { type Fences, NO_FENCES, type RawRow } from '../../server/core/reconcile/row.ts';

const ROLES: Record<string, string> = { u: 'user', a: 'assistant', t: 'tool', s: 'system' };

/** A row with fields of another program. */
export const rowWith = (row: RawRow, fields: Record<string, unknown>): RawRow => ({ ...row, ...fields });

/** A call of a tool without arguments. */
export const call = (id: string) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } });

/**
 * Rows in order, separated by ` | `: `u hello@100`, without a time `u hello`; `a*c1 text` calls the tool c1, `t#c1 text` is its
 * result; `a! text` is a marker, `a~ text` a fragment of an answer, `a% text` another error.
 */
export function rows(notation: string): RawRow[] {
  if (notation === '') return [];
  return notation.split(' | ').map((part): RawRow => {
    const found = /^([uats])([*#!~%])?(\S*) ?(.*?)(?:@(\S+))?$/.exec(part);
    if (!found) throw new Error(`no row: ${part}`);
    const [, role, sign, name, content, time] = found;
    const timestamp = time === undefined ? {} : { timestamp: Number.isNaN(Number(time)) ? Number.NaN : Number(time) };
    const row = { role: ROLES[role!]!, content: content!, ...timestamp };
    if (sign === '*') return { ...row, tool_calls: name!.split(',').map(call) };
    if (sign === '#') return { ...row, tool_call_id: name! };
    if (sign === '!') return rowWith(row, { _error: true, type: 'interrupted' });
    if (sign === '~') return rowWith(row, { _partial: true });
    if (sign === '%') return rowWith(row, { _error: true });
    return row;
  });
}

/** Texts of the transcript that two notations give, with the fences of an edit if there was one. */
export function merged(
  sidecar: string | readonly RawRow[],
  state: string | readonly RawRow[],
  fences: Fences = NO_FENCES,
) {
  return result(sidecar, state, fences)
    .rows.map(({ row }) => row.content)
    .join(' ');
}

export function result(
  sidecar: string | readonly RawRow[],
  state: string | readonly RawRow[],
  fences: Fences = NO_FENCES,
) {
  const read = (one: string | readonly RawRow[]) => (typeof one === 'string' ? rows(one) : one);
  return reconcile({ sidecar: read(sidecar), state: read(state), fences, liveRunId: null });
}
