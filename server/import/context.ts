/**
 * What a model is to be given of an imported conversation, as its sidecar says it here (IM7). Pure.
 *
 * After a compaction the context is trusted up to its anchor only: the row behind which everything is new. What is said
 * here reaches the model in its place if rows behind the anchor are found in the context. Where the source has no anchor
 * that our rows prove so, one is made; and where nothing of the conversation stands in the context word by word, its
 * last turn is put behind it.
 */
import { type CompactionAnchor, isSummary, toContext } from '../core/reconcile/context.ts';
import { NO_FENCES } from '../core/reconcile/reconcile.ts';
import { collapsed, contentText, type RawRow, untagged } from '../core/reconcile/row.ts';
import type { ImportedRow } from './transcript.ts';

export interface ContextFix {
  /** The field that the header needs. */
  anchor: CompactionAnchor | null;
  /** Rows that are put behind the context. */
  more: RawRow[];
}

const NO_FIX: ContextFix = { anchor: null, more: [] };

/** The field of a sidecar's header that names the anchor. */
export const ANCHOR_FIELD = 'compression_anchor_message_key';

/** Rows at the seam that prove it. */
const ENOUGH = 2;

/**
 * @param rows as our state DB has them
 * @param isCut whether they begin with those of other sessions, of which the context says nothing
 */
export function fixContext(
  anchor: unknown,
  context: readonly RawRow[],
  rows: readonly ImportedRow[],
  isCut: boolean,
): ContextFix {
  const isSaid = context.some(isSummary);
  if (!isSaid && !isCut) return NO_FIX;
  const fix = fixSummarised(isSaid ? anchor : null, context, rows);
  return fix.anchor && !isSaid ? { ...fix, anchor: { ...fix.anchor, compacted: true } } : fix;
}

function fixSummarised(anchor: unknown, context: readonly RawRow[], rows: readonly ImportedRow[]): ContextFix {
  const state = rows.map(({ message, parts }): RawRow => ({ ...message, content: parts ?? message.content }));
  if (anchor && isTrusted(anchor as CompactionAnchor, context, state)) return NO_FIX;
  const common = commonEnd(context, state);
  if (common >= ENOUGH) return { anchor: anchorAt(state, state.length - common - 1), more: [] };
  const start = state.findLastIndex((row) => row.role === 'user');
  const isTurn = start > 0 && state.length - start >= ENOUGH && context.at(-1)?.role === 'assistant';
  if (!isTurn) return { anchor: anchorAt(state, state.length - 1), more: [] };
  return { anchor: anchorAt(state, start - 1), more: state.slice(start).map(forContext) };
}

/** Whether what is said next would be the last that the model is given. */
function isTrusted(anchor: CompactionAnchor, context: readonly RawRow[], state: readonly RawRow[]): boolean {
  const next: RawRow = { id: 'next', role: 'user', content: 'What is said next.', timestamp: Number.MAX_SAFE_INTEGER };
  const given = toContext({
    transcript: [],
    context,
    state: [...state, next],
    anchor,
    fences: NO_FENCES,
    liveRunId: null,
  });
  return given.at(-1)?.content === next.content;
}

/** How many rows both end with. */
function commonEnd(context: readonly RawRow[], state: readonly RawRow[]): number {
  const said = (row: RawRow | undefined): string | null =>
    row ? JSON.stringify([row.role, collapsed(contentText(untagged(row).content)), row.tool_call_id ?? null]) : null;
  let length = 0;
  while (
    length < state.length &&
    length < context.length &&
    said(context.at(-1 - length)) === said(state.at(-1 - length))
  )
    length += 1;
  return length;
}

function anchorAt(state: readonly RawRow[], at: number): CompactionAnchor | null {
  const row = state[at];
  if (!row) return null;
  const { attachments } = row;
  const count = Array.isArray(attachments) ? attachments.length : 0;
  return { role: row.role, text: contentText(row.content), ts: row.timestamp, attachments: count };
}

/** A row as contexts have it: without ids, which are ours. */
export function forContext({ role, content, timestamp, tool_calls, tool_call_id, name }: RawRow): RawRow {
  return {
    role,
    content,
    timestamp,
    ...(tool_calls ? { tool_calls } : {}),
    ...(tool_call_id ? { tool_call_id } : {}),
    ...(name ? { name } : {}),
  };
}
