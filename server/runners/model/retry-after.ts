/** How long a provider wants to be left alone: the headers that say so, in all their forms. Pure. */

type Headers = Record<string, unknown>;

/**
 * Seconds to wait; null when no header says.
 * @param headers of a refusal, names in lower case
 * @param now epoch seconds, for times that are dates
 */
export function retryAfterOf(headers: Headers, now: number): number | null {
  const text = (name: string): string | null => {
    const value = headers[name];
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
  };
  const milliseconds = Number(text('retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return milliseconds / 1000;
  const after = text('retry-after');
  const asked = after === null ? null : secondsOf(after, now);
  return asked ?? resetOf(text, now);
}

/** The limits of OpenAI and of Anthropic: when each is full again; one that is not used up keeps nobody waiting. */
const LIMITS = ['requests', 'tokens', 'input-tokens', 'output-tokens'];

function resetOf(text: (name: string) => string | null, now: number): number | null {
  const waits: number[] = [];
  for (const limit of LIMITS) {
    for (const [left, reset] of [
      [`x-ratelimit-remaining-${limit}`, `x-ratelimit-reset-${limit}`],
      [`anthropic-ratelimit-${limit}-remaining`, `anthropic-ratelimit-${limit}-reset`],
    ] as const) {
      const seconds = Number(text(left) ?? Number.NaN) <= 0 ? secondsOf(text(reset) ?? '', now) : null;
      if (seconds !== null) waits.push(seconds);
    }
  }
  if (waits.length > 0) return Math.max(...waits);
  for (const name of ['ratelimit-reset', 'x-ratelimit-reset']) {
    const seconds = secondsOf(text(name) ?? '', now);
    if (seconds !== null) return seconds;
  }
  return null;
}

const UNITS: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };

/** `7`, `1.5`, an epoch in seconds or milliseconds, `6m0s`, `20ms`, an HTTP date or an ISO one. */
function secondsOf(value: string, now: number): number | null {
  if (/^\d+(\.\d+)?$/.test(value)) {
    const number = Number(value);
    if (number > 1e12) return Math.max(0, number / 1000 - now);
    return number > 1e9 ? Math.max(0, number - now) : number;
  }
  if (/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(value)) {
    const pieces = [...value.matchAll(/([\d.]+)(ms|[smhd])/g)];
    return pieces.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0);
  }
  if (!/[a-z:]/i.test(value)) return null; // `-5` is a date to the parser
  const date = Date.parse(value) / 1000;
  return Number.isFinite(date) ? Math.max(0, date - now) : null;
}
