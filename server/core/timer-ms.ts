/** A timer of the system that is set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Seconds of a configuration as the milliseconds of a timer. */
export const timerMs = (seconds: number): number => Math.min(seconds * 1000, LONGEST_TIMER_MS);
