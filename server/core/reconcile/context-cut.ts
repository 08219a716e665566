/**
 * The context that an agent keeps for its model, after an edit (ED1): what was taken back of the transcript is taken out of
 * it. The two share no ids, so rows are known by what they say, from the end on.
 */
import { isSummary } from './context.ts';
import { collapsed, contentText, type RawRow } from './row.ts';

/**
 * Cuts a context where its transcript was cut.
 * @param kept the rows of the transcript that stay, and `gone` those that were taken back, each in order
 * @returns null when nothing of it can be trusted: its summary may tell of what was taken back
 */
export function cutContext(
  context: readonly RawRow[],
  kept: readonly RawRow[],
  gone: readonly RawRow[],
): readonly RawRow[] | null {
  if (gone.length === 0) return context;
  const left = new Map<string, number>();
  for (const row of gone) left.set(sayingOf(row), (left.get(sayingOf(row)) ?? 0) + 1);
  const stays = new Set(kept.map(sayingOf));
  let end = context.length;
  for (; end > 0 && !isSummary(context[end - 1]!); end -= 1) {
    const saying = sayingOf(context[end - 1]!);
    const count = left.get(saying) ?? 0;
    if (count > 0) left.set(saying, count - 1);
    else if (stays.has(saying)) return context.slice(0, end);
    // Otherwise the agent alone knows it, and it hangs on what is gone.
  }
  // At the summary, or at the beginning: whatever of the prompts was not met on the way here lies in the summary.
  const isMet = gone.every((row) => row.role !== 'user' || left.get(sayingOf(row)) === 0);
  return isMet && end > 0 ? context.slice(0, end) : null;
}

/** What tells rows apart that no id names: who says what. */
export const sayingOf = (row: RawRow): string => `${row.role} ${collapsed(contentText(row.content))}`;
