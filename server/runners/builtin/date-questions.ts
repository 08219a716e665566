/**
 * Questions about time, in English: understanding them. Pure. Answering them is date-answers.ts, the calendar dates.ts.
 */
import type { Day, Unit } from './dates.ts';
import { MONTHS, WEEKDAYS } from './dates.ts';

/** A day as a person names it; it need not exist. */
export type NamedDay =
  | { kind: 'date'; day: Day }
  /** A date without a year: the next one, today included. */
  | { kind: 'next_date'; month: number; day: number }
  | { kind: 'from_today'; days: number }
  /** The next such weekday after today. */
  | { kind: 'weekday'; weekday: number };

export type DateQuestion =
  | { kind: 'time' }
  | { kind: 'which_day'; day: NamedDay }
  /** Days from today, forwards or back. */
  | { kind: 'distance'; to: NamedDay }
  | { kind: 'between'; from: NamedDay; to: NamedDay }
  /** A moment or a day from now; negative for the past. */
  | { kind: 'shift'; amount: number; unit: Unit };

const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const FILLERS = new Set(['is', 'it', 'the', 'now', 'right', 'current', 'currently', 'of', 'please']);
const TIME = new Set(['time', 'what time', 'clock']);
const TODAY = new Set(
  ['date', 'today', 'what date', 'what day', 'which day', 'which date', 'what today'].flatMap((words) => [
    words,
    `${words} today`,
    `${words} week`,
  ]),
);

const LEAD =
  /^(?:what|which|when)(?: week)?(?: ?day| date| time)?(?: of the week)?(?: is| was| will)?(?: it)?(?: be)?(?: on)? /;
const BETWEEN = /^(?:how many )?days (?:are there )?(?:between|from) (.+?) (?:and|to|until|till) (.+)$/;
const DISTANCE =
  /^(?:how many days|how long|days)(?: is it| are there| are left| left| ago was| ago is| has it been)? (?:until|till|to|before|since|from)? ?(.+)$/;
const SHIFT = new RegExp(
  `^(in )?(\\d{1,9}|an?|${NUMBERS.join('|')}) (second|minute|hour|day|week|month|year)s?( from now| from today| ago)?$`,
);

/**
 * Understands a question about time, in English.
 * @param question lower case or not, without its question mark
 * @returns null when it is not one
 */
export function parseDateQuestion(question: string): DateQuestion | null {
  if (question.length > 200) return null;
  const text = question.toLowerCase().replaceAll('’', "'").replace(/'s\b/g, ' is').replace(/\s+/g, ' ').trim();
  const words = text.split(' ').filter((word) => !FILLERS.has(word));
  if (TIME.has(words.join(' '))) return { kind: 'time' };
  if (TODAY.has(words.join(' '))) return { kind: 'which_day', day: { kind: 'from_today', days: 0 } };

  const between = BETWEEN.exec(text);
  if (between) {
    const from = parseNamedDay(between[1]!);
    const to = parseNamedDay(between[2]!);
    if (from && to) return { kind: 'between', from, to };
  }
  const distance = DISTANCE.exec(text);
  if (distance) {
    const to = parseNamedDay(distance[1]!);
    if (to) return { kind: 'distance', to };
  }
  const rest = text.replace(LEAD, '');
  const shift = SHIFT.exec(rest);
  if (shift && (shift[1] || shift[4])) {
    const amount = amountOf(shift[2]!);
    return { kind: 'shift', amount: shift[4] === ' ago' ? -amount : amount, unit: shift[3] as Unit };
  }
  const day = parseNamedDay(rest);
  return day && { kind: 'which_day', day };
}

function amountOf(word: string): number {
  if (/^\d/.test(word)) return Number(word);
  return word.startsWith('a') ? 1 : NUMBERS.indexOf(word);
}

const monthOf = (word: string): number =>
  MONTHS.findIndex((month) => month === word || (word.length >= 3 && month.slice(0, 3) === word)) + 1;

function parseNamedDay(text: string): NamedDay | null {
  const relative = ['yesterday', 'today', 'tomorrow'].indexOf(text);
  if (relative >= 0) return { kind: 'from_today', days: relative - 1 };
  const named = WEEKDAYS.indexOf(text.replace(/^(?:next|this|on) /, ''));
  if (named >= 0) return { kind: 'weekday', weekday: named };
  const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(text);
  if (iso) return { kind: 'date', day: { year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) } };
  const dotted = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text);
  if (dotted)
    return { kind: 'date', day: { year: Number(dotted[3]), month: Number(dotted[2]), day: Number(dotted[1]) } };
  const written =
    /^(?:the )?(?<day>\d{1,2})(?:st|nd|rd|th)?(?: of)? (?<month>[a-z]{3,9})\.?,?(?: (?<year>\d{4}))?$/.exec(text) ??
    /^(?<month>[a-z]{3,9})\.? (?<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?<year>\d{4}))?$/.exec(text);
  const month = written ? monthOf(written.groups!.month!) : 0;
  if (!written || month === 0) return null;
  const day = Number(written.groups!.day);
  const year = written.groups!.year;
  return year ? { kind: 'date', day: { year: Number(year), month, day } } : { kind: 'next_date', month, day };
}
