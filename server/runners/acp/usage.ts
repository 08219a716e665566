/**
 * Token counts of an agent as ours. Source: `usage_update` (the window, and what the session has cost so far) and `usage` in
 * the response of session/prompt, both of protocol version 1; the latter is not stable and means the turn.
 */
import type { Usage } from '../../core/terms.ts';
import { countOf, recordOf } from './raw.ts';

/** What the agent's session had cost before, in USD; null where that is not known. */
export interface CostLedger {
  cost: number | null;
}

export interface UsageReader {
  /** A `usage_update`. */
  take(update: unknown): void;
  /** What one prompt has used; null when the agent told nothing. @param response `usage` of its response */
  ofPrompt(response: unknown): Usage | null;
}

export function createUsageReader(ledger: CostLedger): UsageReader {
  let window: { used?: number; size?: number } = {};
  let total: number | null = null;

  /** The cost of a prompt is what its session has cost more than before. */
  function cost(): number | undefined {
    if (total === null) return undefined;
    const more = ledger.cost === null ? undefined : Math.max(0, total - ledger.cost);
    ledger.cost = total;
    total = null;
    return more;
  }

  return {
    take(update) {
      const { used, size, cost } = recordOf(update);
      window = defined({ used: countOf(used), size: countOf(size) || undefined });
      const { amount, currency } = recordOf(cost);
      if (currency === 'USD' && typeof amount === 'number' && Number.isFinite(amount) && amount >= 0) total = amount;
    },
    ofPrompt(response) {
      const counts = countsOf(response);
      const usage = defined({ cost_usd: cost(), context_used: window.used, context_length: window.size });
      if (!counts && Object.keys(usage).length === 0) return null;
      window = {};
      return { ...(counts ?? { input_tokens: 0, output_tokens: 0 }), ...usage };
    },
  };
}

function countsOf(response: unknown): Usage | null {
  const { inputTokens, outputTokens, cachedReadTokens, cachedWriteTokens, thoughtTokens, totalTokens } =
    recordOf(response);
  const input = countOf(inputTokens) ?? 0;
  const output = countOf(outputTokens) ?? 0;
  const [read, written] = [countOf(cachedReadTokens) ?? 0, countOf(cachedWriteTokens) ?? 0];
  if (input + output + read + written === 0) return null;
  // Whether the input counts what came from the cache is told by the sum alone.
  const isApart = (countOf(totalTokens) ?? 0) >= input + output + read + written;
  const counts: Usage = { input_tokens: isApart ? input + read + written : input, output_tokens: output };
  const thoughts = countOf(thoughtTokens);
  if (read > 0) counts.cached_tokens = read;
  if (thoughts) counts.reasoning_tokens = thoughts;
  return counts;
}

/** Without what is undefined. */
function defined<T extends Record<string, number | undefined>>(values: T): { [K in keyof T]?: number } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: number;
  };
}
