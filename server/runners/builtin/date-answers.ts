/**
 * Answering questions about time, at a moment in a zone. Pure. What was asked is date-questions.ts, the calendar itself
 * is dates.ts.
 */
import type { DateQuestion, NamedDay } from './date-questions.ts';
import type { Day, Unit } from './dates.ts';
import { clockAt, countOf, dayAt, dayNumber, dayOf, isoDay, longDay, MONTHS, shiftDay, weekday } from './dates.ts';

export type DateAnswer = { ok: true; text: string } | { ok: false; problem: string };

/**
 * Answers at a moment.
 * @param now epoch seconds
 * @param timeZone IANA name; "today" is the day there
 */
export function answerDate(question: DateQuestion, now: number, timeZone: string): DateAnswer {
  switch (question.kind) {
    case 'time':
      return { ok: true, text: `It is ${momentText(now, timeZone)}.` };
    case 'which_day':
      return onDay(question.day, now, timeZone, (number, today) => {
        const day = dayOf(number)!;
        if (number === today) return `Today is **${longDay(day)}** (${isoDay(day)}, ${timeZone}).`;
        return `**${longDay(day)}** (${isoDay(day)}), ${distanceText(number - today)}.`;
      });
    case 'distance':
      return onDay(question.to, now, timeZone, (number, today) => {
        const days = number - today;
        const day = longDay(dayOf(number)!);
        if (days === 0) return `That is today, ${day}.`;
        return days > 0
          ? `**${countOf(days, 'day')}** until ${day}${weeksText(days)}.`
          : `${day} was **${countOf(-days, 'day')}** ago${weeksText(-days)}.`;
      });
    case 'between':
      return onDay(question.from, now, timeZone, (from) =>
        onDay(question.to, now, timeZone, (to) => {
          const days = Math.abs(to - from);
          return `**${countOf(days, 'day')}** between ${longDay(dayOf(from)!)} and ${longDay(dayOf(to)!)}${weeksText(days)}.`;
        }),
      );
    case 'shift':
      return answerShift(question.amount, question.unit, now, timeZone);
  }
}

const SECONDS = { second: 1, minute: 60, hour: 3600 };
const TOO_FAR: DateAnswer = {
  ok: false,
  problem: 'That lies outside the years 1 to 9999, which is as far as I reckon.',
};

function answerShift(amount: number, unit: Unit, now: number, timeZone: string): DateAnswer {
  const lead =
    amount < 0 ? `${capitalised(countOf(-amount, unit))} ago it was` : `In ${countOf(amount, unit)} it will be`;
  if (unit === 'second' || unit === 'minute' || unit === 'hour') {
    const moment = now + amount * SECONDS[unit];
    // Zones and calendars outside these years are not what anybody means.
    if (moment < -62_000_000_000 || moment > 253_000_000_000) return TOO_FAR;
    return { ok: true, text: `${lead} ${momentText(moment, timeZone)}.` };
  }
  const day = shiftDay(dayAt(now, timeZone), amount, unit);
  return day ? { ok: true, text: `${lead} **${longDay(day)}** (${isoDay(day)}).` } : TOO_FAR;
}

const capitalised = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

/** A moment in the server's zone and in UTC. */
function momentText(moment: number, timeZone: string): string {
  const local = `**${clockAt(moment, timeZone)}** on ${longDay(dayAt(moment, timeZone))} (${timeZone})`;
  if (timeZone === 'UTC' || timeZone === 'Etc/UTC') return local;
  return `${local}, which is ${clockAt(moment, 'UTC')} UTC on ${isoDay(dayAt(moment, 'UTC'))}`;
}

function distanceText(days: number): string {
  if (days === 1) return 'tomorrow';
  if (days === -1) return 'yesterday';
  return days > 0 ? `in ${countOf(days, 'day')}` : `${countOf(-days, 'day')} ago`;
}

/** ` (2 weeks and 3 days)`, where that helps. */
function weeksText(days: number): string {
  const weeks = Math.floor(days / 7);
  if (weeks === 0) return '';
  const rest = days % 7;
  return ` (${countOf(weeks, 'week')}${rest ? ` and ${countOf(rest, 'day')}` : ''})`;
}

/** Finds the day that is meant and says something about it, or that there is no such day. */
function onDay(
  named: NamedDay,
  now: number,
  timeZone: string,
  say: (number: number, today: number) => string | DateAnswer,
): DateAnswer {
  const civilToday = dayAt(now, timeZone);
  const today = dayNumber(civilToday)!;
  const number = resolveDay(named, civilToday, today);
  if (number === null) {
    const { month, day } = named.kind === 'date' ? named.day : { month: 0, day: 0, ...named };
    const month_name = MONTHS[month - 1];
    const year = named.kind === 'date' ? ` ${named.day.year}` : '';
    return {
      ok: false,
      problem: month_name
        ? `There is no ${day} ${capitalised(month_name)}${year} in the calendar.`
        : `There is no month ${month}.`,
    };
  }
  const said = say(number, today);
  return typeof said === 'string' ? { ok: true, text: said } : said;
}

function resolveDay(named: NamedDay, civilToday: Day, today: number): number | null {
  switch (named.kind) {
    case 'date':
      return dayNumber(named.day);
    case 'from_today':
      return today + named.days;
    case 'weekday':
      return today + ((named.weekday - weekday(today) + 6) % 7) + 1;
    case 'next_date': {
      // Eight years reach the next 29 February across a century without one.
      for (let year = civilToday.year; year <= civilToday.year + 8; year++) {
        const number = dayNumber({ year, month: named.month, day: named.day });
        if (number !== null && number >= today) return number;
      }
      return null;
    }
  }
}
