/**
 * Conversations that a state DB has twice (RC5): a program that writes its history anew appends rows that are there already.
 * Such a block has several turns and hardly two rows alike; a person who says "go" three times makes none.
 */
import type { Keyed } from './keys.ts';
import { isLeft, type Twins } from './twins.ts';

const BLOCK_ROWS = 4;
const BLOCK_PROMPTS = 2;

/** The state rows that only repeat a block of earlier rows of the state DB, word for word and in order. */
export function repeatedBlocks(state: readonly Keyed[], twins: Twins): Set<number> {
  const repeated = new Set<number>();
  const latest = new Map<number, number>();
  let at = 0;
  while (at < state.length) {
    const block = blockAt(state, twins, at, latest.get(state[at]!.visible));
    const isBlock = block.rows >= BLOCK_ROWS && block.prompts >= BLOCK_PROMPTS;
    const end = at + (isBlock || block.rows >= BLOCK_ROWS ? block.rows : 1);
    for (; at < end; at += 1) {
      if (isBlock) repeated.add(at);
      else latest.set(state[at]!.visible, at);
    }
  }
  return repeated;
}

/** How far the rows from `at` on repeat those from `source` on, no two of them alike. */
function blockAt(state: readonly Keyed[], twins: Twins, at: number, source: number | undefined) {
  const seen = new Set<number>();
  let prompts = 0;
  if (source === undefined) return { rows: 0, prompts };
  while (at + seen.size < state.length && source + seen.size < at) {
    const row = state[at + seen.size]!;
    const isCopy = row.visible === state[source + seen.size]!.visible && !seen.has(row.visible);
    if (!isCopy || row.id !== null || !isLeft(twins, row.index)) break;
    seen.add(row.visible);
    if (row.role === 'user') prompts += 1;
  }
  return { rows: seen.size, prompts };
}
