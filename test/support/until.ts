/** Waiting for a condition, never for a time. */

/**
 * Resolves with the first result of `look` that is not null, undefined or false.
 * @param what the condition in words, for the failure
 * @param limitMs when to give up; a test fails then, it never passes by waiting
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  limitMs = 30_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) throw new Error(`gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
