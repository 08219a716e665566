/** Failed logins: five a minute for one address, then it has to wait. Bounded in memory. */
export interface Attempts {
  /** Seconds until this address may try again; 0 for now. @param now epoch seconds */
  waitFor(address: string, now: number): number;
  failed(address: string, now: number): void;
}

const PER_MINUTE = 5;
const WINDOW_S = 60;
const MOST_ADDRESSES = 10_000;

export function createAttempts(): Attempts {
  const failures = new Map<string, number[]>();
  const recent = (address: string, now: number): number[] =>
    (failures.get(address) ?? []).filter((time) => now - time < WINDOW_S);
  return {
    waitFor(address, now) {
      const times = recent(address, now);
      return times.length < PER_MINUTE ? 0 : Math.max(1, Math.ceil(times.at(-PER_MINUTE)! + WINDOW_S - now));
    },
    failed(address, now) {
      const times = [...recent(address, now), now].slice(-PER_MINUTE);
      failures.delete(address);
      failures.set(address, times);
      // The oldest address is forgotten first, so that a flood of addresses cannot fill the memory.
      if (failures.size > MOST_ADDRESSES) failures.delete(failures.keys().next().value!);
    },
  };
}
