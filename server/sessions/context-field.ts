/** The context that another program keeps for its model in a sidecar: reading it, and cutting it where an edit cut the transcript. */
import type { SidecarRow } from '../../db/files/sidecar-store.ts';
import { lazyTail, type Tail, type TailText } from '../../db/files/sidecar-text.ts';
import { cutContext } from '../core/reconcile/context-cut.ts';
import type { RawRow } from '../core/reconcile/row.ts';
import type { Assembled } from './assemble.ts';

/** The field that it stands in. */
export const CONTEXT_FIELD = 'context_messages';

/** The context that another program keeps; null when there is none. */
export function contextOf(value: unknown): RawRow[] | null {
  if (!Array.isArray(value)) return null;
  const rows = value.filter((row: unknown): row is RawRow => {
    return typeof row === 'object' && row !== null && 'role' in row && typeof row.role === 'string';
  });
  return rows.length > 0 ? rows : null;
}

/** The fields behind the rows of a file, the context among them without what an edit took back that the file has not seen. */
export function fieldsAfter({ rows, gone }: Pick<Assembled, 'rows' | 'gone'>, tailText: TailText): Tail {
  const fields = lazyTail(tailText);
  if (gone.length === 0 || !tailText.keys.includes(CONTEXT_FIELD)) return fields;
  const context = contextOf(fields.tail[CONTEXT_FIELD]);
  const cut = context && cutContext(context, rows.map(storedOf), gone.map(storedOf));
  return { tail: { ...fields.tail, [CONTEXT_FIELD]: cut ?? [] } };
}

const storedOf = ({ stored, json }: Pick<SidecarRow, 'stored' | 'json'>): RawRow =>
  JSON.parse(stored ?? json) as RawRow;
