/** Times in words, in the reader's own language and zone. */

// Made once: making one costs far more than using it, and a list that scrolls uses many.
const CLOCK = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit' });
const WEEKDAY = new Intl.DateTimeFormat([], { weekday: 'short' });
const DAY = new Intl.DateTimeFormat([], { day: 'numeric', month: 'short' });
const DAY_OF_YEAR = new Intl.DateTimeFormat([], { day: 'numeric', month: 'short', year: 'numeric' });
const DAY_CLOCK = new Intl.DateTimeFormat([], { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const WHOLE = new Intl.DateTimeFormat([], { dateStyle: 'medium', timeStyle: 'short' });

/** A short time for a list. @param seconds epoch seconds @param now the same */
export function shortTime(seconds, now) {
  const age = now - seconds;
  if (age < 60) return 'now';
  if (age < 3600) return `${Math.floor(age / 60)} min ago`;
  const date = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) {
    return CLOCK.format(date);
  }
  if (age < 6 * 86_400) return WEEKDAY.format(date);
  return (date.getFullYear() === today.getFullYear() ? DAY : DAY_OF_YEAR).format(date);
}

/** When something was said: the time of day, and the day when it was another one. @param now epoch seconds, as `seconds` */
export function clockTime(seconds, now) {
  const date = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) return CLOCK.format(date);
  return (date.getFullYear() === today.getFullYear() ? DAY_CLOCK : WHOLE).format(date);
}

/** A whole date and time. */
export const longTime = (seconds) => WHOLE.format(new Date(seconds * 1000));

/** A day of any year. @param seconds epoch seconds */
export const wholeDay = (seconds) => DAY_OF_YEAR.format(new Date(seconds * 1000));

/** A duration as a person would say it. */
export function duration(seconds) {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
