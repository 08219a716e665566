/** Times in words, in the reader's own language and zone. */

/** A short time for a list. @param seconds epoch seconds @param now the same */
export function shortTime(seconds, now) {
  const age = now - seconds;
  if (age < 60) return 'now';
  if (age < 3600) return `${Math.floor(age / 60)} min ago`;
  const date = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) {
    return date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  }
  if (age < 6 * 86_400) return date.toLocaleDateString([], { weekday: 'short' });
  const year = date.getFullYear() === today.getFullYear() ? undefined : 'numeric';
  return date.toLocaleDateString([], { day: 'numeric', month: 'short', year });
}

/** A whole date and time. */
export const longTime = (seconds) =>
  new Date(seconds * 1000).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });

/** A duration as a person would say it. */
export function duration(seconds) {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
