/**
 * Prompts of one credential in the last minute (LI1). Bounded in memory: as many times as are allowed for each of so many
 * credentials.
 */
export interface PromptRate {
  /**
   * Counts a prompt, unless there are too many.
   * @param key of the credential
   * @param now epoch seconds
   * @returns seconds until there may be another one; 0 when this one is counted
   */
  take(key: string, now: number): number;
}

const WINDOW_S = 60;
const MOST_KEYS = 1_000;

/** @param most prompts in a minute */
export function createPromptRate(most: number): PromptRate {
  const byKey = new Map<string, number[]>();
  return {
    take(key, now) {
      // A clock that was set back must not lock anybody out for as long.
      const times = (byKey.get(key) ?? []).filter((time) => Math.abs(now - time) < WINDOW_S);
      byKey.delete(key);
      byKey.set(key, times);
      if (byKey.size > MOST_KEYS) byKey.delete(byKey.keys().next().value!);
      if (times.length >= most) return Math.max(1, Math.ceil(times[0]! + WINDOW_S - now));
      times.push(now);
      return 0;
    },
  };
}
