/**
 * Failed logins (SE2): five a minute for one address, and for the account as a whole thirty in ten minutes from addresses
 * that nobody has logged in from: many addresses guess no faster than one, and whoever was here before is not locked out
 * by them. Bounded in memory.
 */
export interface Attempts {
  /**
   * Seconds until a login may be tried; 0 for now.
   * @param from who asks: the address, and whether a login of it was accepted before
   * @param now epoch seconds
   */
  waitFor(from: Caller, now: number): number;
  /** A try begins; it counts as a failed one until it is taken back, for many may begin at once. */
  begin(from: Caller, now: number): Attempt;
}

export interface Attempt {
  /** It was none, or it succeeded. */
  takeBack(): void;
}

export interface Caller {
  address: string;
  known: boolean;
}

interface Limit {
  most: number;
  windowS: number;
}

/** Logins: a person at a keyboard. */
const PER_ADDRESS: Limit = { most: 5, windowS: 60 };
const PER_ACCOUNT: Limit = { most: 30, windowS: 600 };
/** Tokens in headers: a program that was given a wrong one tries it at every request, and must not lock out its neighbours. */
const HEADERS_PER_ADDRESS: Limit = { most: 30, windowS: 60 };
const MOST_ADDRESSES = 10_000;

/** Guesses at TURNKEEP_TOKEN in headers, from each address by itself. */
export const createHeaderAttempts = (): Attempts => createAttempts(HEADERS_PER_ADDRESS, null);

export function createAttempts(perAddress: Limit = PER_ADDRESS, perAccount: Limit | null = PER_ACCOUNT): Attempts {
  const byAddress = new Map<string, number[]>();
  let account: number[] = [];

  const recent = (times: readonly number[], { windowS }: Limit, now: number): number[] =>
    times.filter((time) => now - time < windowS);

  const wait = (times: readonly number[], limit: Limit, now: number): number => {
    const inWindow = recent(times, limit, now);
    return inWindow.length < limit.most ? 0 : Math.max(1, Math.ceil(inWindow.at(-limit.most)! + limit.windowS - now));
  };

  const grown = (times: readonly number[], limit: Limit, now: number): number[] =>
    [...recent(times, limit, now), now].slice(-limit.most);

  return {
    waitFor({ address, known }, now) {
      const own = wait(byAddress.get(keyOf(address)) ?? [], perAddress, now);
      return known || perAccount === null ? own : Math.max(own, wait(account, perAccount, now));
    },
    begin({ address, known }, now) {
      const key = keyOf(address);
      const times = grown(byAddress.get(key) ?? [], perAddress, now);
      byAddress.delete(key);
      byAddress.set(key, times);
      // The oldest address is forgotten first, so that a flood of addresses cannot fill the memory.
      if (byAddress.size > MOST_ADDRESSES) byAddress.delete(byAddress.keys().next().value!);
      if (!known && perAccount !== null) account = grown(account, perAccount, now);
      return {
        takeBack() {
          const left = without(byAddress.get(key) ?? [], now);
          if (left.length === 0) byAddress.delete(key);
          else byAddress.set(key, left);
          if (!known) account = without(account, now);
        },
      };
    },
  };
}

/** Takes one such time out. */
function without(times: readonly number[], time: number): number[] {
  const at = times.lastIndexOf(time);
  return at < 0 ? [...times] : times.toSpliced(at, 1);
}

/** An IPv6 address stands for its /64, which one customer has whole; one that is an IPv4 address in disguise, for that. */
export function keyOf(address: string): string {
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const middle = tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  const groups = [...left, ...middle, ...right].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '').toLowerCase()).join(':')}::/64`;
}
