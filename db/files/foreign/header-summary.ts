/** The header of another program's sidecar as a list needs it. A field of another type than it should be is none. */
import type { BigIntStats } from 'node:fs';
import type { SidecarHeader } from '../sidecar-text.ts';
import type { SidecarSummary } from './summary.ts';

const textIn = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const numberIn = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
const countIn = (value: unknown): number => Math.max(0, Math.trunc(numberIn(value) ?? 0));

/** Titles that stand for none. */
const UNTITLED = 'Untitled';

/**
 * @param stats of the file, for what its header does not say
 * @param orphan whether the live file of a backup is gone
 */
export function summaryOfHeader(
  id: string,
  header: SidecarHeader,
  stats: BigIntStats,
  from: SidecarSummary['from'],
  orphan: boolean,
): SidecarSummary {
  const changed = Number(stats.mtimeNs / 1_000_000n) / 1000;
  const created = numberIn(header.created_at) ?? changed;
  const title = textIn(header.title);
  const cost = numberIn(header.estimated_cost);
  const cached = countIn(header.cache_read_tokens);
  const contextUsed = countIn(header.last_prompt_tokens);
  const contextLength = countIn(header.context_length);
  return {
    session_id: id,
    source: textIn(header.raw_source) ?? textIn(header.session_source) ?? textIn(header.source_tag) ?? 'webui',
    title: title === UNTITLED ? null : title,
    model: textIn(header.model),
    workspace: textIn(header.workspace),
    created_at: created,
    activity: numberIn(header.updated_at) ?? created,
    message_count: countIn(header.message_count),
    pinned: header.pinned === true,
    archived: header.archived === true,
    parent_session_id: textIn(header.parent_session_id),
    usage: {
      input_tokens: countIn(header.input_tokens),
      output_tokens: countIn(header.output_tokens),
      ...(cached > 0 ? { cached_tokens: cached } : {}),
      ...(cost !== null && cost > 0 ? { cost_usd: cost } : {}),
      ...(contextUsed > 0 ? { context_used: contextUsed } : {}),
      ...(contextLength > 0 ? { context_length: contextLength } : {}),
    },
    from,
    orphan,
    snapshot: header.pre_compression_snapshot === true,
    fenced: typeof header.truncation_watermark === 'number',
  };
}
