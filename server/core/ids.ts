/** The shapes of ids. The one place that says what an id may look like; `db/files/paths` turns a checked id into a path. */

/** Ours are `YYYYMMDD_HHMMSS_<6 hex>`; those of other programs are accepted in this alphabet. */
export const SESSION_ID_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$';
export const RUN_ID_PATTERN = '^[0-9a-f]{32}$';

const SESSION_ID = new RegExp(SESSION_ID_PATTERN);
const RUN_ID = new RegExp(RUN_ID_PATTERN);

export const isSessionId = (text: string): boolean => SESSION_ID.test(text);
export const isRunId = (text: string): boolean => RUN_ID.test(text);

/**
 * A session id of ours.
 * @param now epoch seconds
 * @param suffix six hexadecimal digits
 */
export function formatSessionId(now: number, suffix: string): string {
  const digits = new Date(now * 1000).toISOString().replaceAll(/[-:]/g, '').slice(0, 15).replace('T', '_');
  return `${digits}_${suffix}`;
}

/** Whether a message id is that of a run's marker: `<run id>.m`. */
export const isMarkerId = (id: string): boolean => id.endsWith('.m');

/** Whether a message id is that of a run's prompt: `<run id>.0`. */
export const isPromptId = (id: string): boolean => id.endsWith('.0');

/** The run whose prompt has this message id, `<run id>.0`; null for any other row. */
export const runOfPrompt = (id: string): string | null => (isPromptId(id) ? id.slice(0, -2) : null);
