/** What tokens cost, where the configuration says a price. Pure. */
import type { Usage } from '../../core/terms.ts';
import type { Price } from '../provider.ts';

const MILLION = 1_000_000;
/** A billionth of a dollar: finer is noise of the arithmetic. */
const FINEST = 1e9;

/**
 * US dollars for the counts of a step. Input that came from the provider's cache is part of the input and has its own price.
 */
export function costOf({ input_tokens, output_tokens, cached_tokens = 0 }: Usage, price: Price): number {
  const cached = Math.min(cached_tokens, input_tokens);
  const dollars =
    ((input_tokens - cached) * price.input + cached * (price.cached ?? price.input) + output_tokens * price.output) /
    MILLION;
  return Math.round(dollars * FINEST) / FINEST;
}
