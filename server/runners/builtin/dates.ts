/**
 * Days and times: civil dates as numbers, and how they are said. Pure; the clock and the zone are parameters. "Today"
 * is the day in the server's zone; all arithmetic on days is on the calendar, so that no clock change can shift it.
 */

/** A day of the (proleptic Gregorian) calendar. */
export interface Day {
  year: number;
  /** 1 to 12. */
  month: number;
  day: number;
}

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

export const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
export const MONTHS = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
];

const DAY_MS = 86_400_000;

/** Days since 1 January 1970; null when there is no such day. */
export function dayNumber({ year, month, day }: Day): number | null {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const same = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return same && year >= 1 && year <= 9999 ? date.getTime() / DAY_MS : null;
}

/** The day with a number; null outside the years 1 to 9999. */
export function dayOf(number: number): Day | null {
  const date = new Date(number * DAY_MS);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? { year, month: date.getUTCMonth() + 1, day: date.getUTCDate() } : null;
}

/** 0 is Sunday. */
export const weekday = (number: number): number => (((number + 4) % 7) + 7) % 7;

/** The day in a zone at a moment. */
export function dayAt(epochSeconds: number, timeZone: string): Day {
  const parts = new Intl.DateTimeFormat('en-US', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' });
  const part = Object.fromEntries(parts.formatToParts(epochSeconds * 1000).map(({ type, value }) => [type, value]));
  return { year: Number(part.year), month: Number(part.month), day: Number(part.day) };
}

/**
 * Moves a day on the calendar. A month that is too short ends on its last day (31 January and a month: 28 February).
 * @returns null when the result lies outside the years 1 to 9999
 */
export function shiftDay(from: Day, amount: number, unit: 'day' | 'week' | 'month' | 'year'): Day | null {
  const number = dayNumber(from);
  if (number === null || !Number.isSafeInteger(amount) || Math.abs(amount) > 4_000_000) return null;
  if (unit === 'day' || unit === 'week') return dayOf(number + amount * (unit === 'week' ? 7 : 1));
  const months = from.year * 12 + from.month - 1 + amount * (unit === 'year' ? 12 : 1);
  const year = Math.floor(months / 12);
  const month = (months % 12) + 1;
  for (let day = from.day; day > 27; day--) {
    if (dayNumber({ year, month, day }) !== null) return { year, month, day };
  }
  return dayNumber({ year, month, day: from.day }) === null ? null : { year, month, day: from.day };
}

const capital = (word: string): string => word[0]!.toUpperCase() + word.slice(1);

/** `2026-12-24`. */
export function isoDay({ year, month, day }: Day): string {
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
}

/** `Thursday, 24 December 2026`; the day exists. */
export function longDay(day: Day): string {
  return `${capital(WEEKDAYS[weekday(dayNumber(day)!)]!)}, ${day.day} ${capital(MONTHS[day.month - 1]!)} ${day.year}`;
}

/** `14:03:22` in a zone. */
export function clockAt(epochSeconds: number, timeZone: string): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'medium', hourCycle: 'h23' }).format(
    epochSeconds * 1000,
  );
}

/** `1 day`, `3 weeks`. */
export const countOf = (amount: number, unit: string): string => `${amount} ${unit}${amount === 1 ? '' : 's'}`;
