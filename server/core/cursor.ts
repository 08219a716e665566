/**
 * Cursors: the position of a reader in a session's events. `<run id>:<seq>` means "I have everything up to here";
 * `0` is the beginning of a session that never ran.
 */

export type Cursor = { kind: 'beginning' } | { kind: 'at'; runId: string; seq: number };

const AT = /^([0-9a-f]{32}):(\d{1,15})$/;

/** Reads a cursor; null when the text is not one. */
export function parseCursor(text: string): Cursor | null {
  if (text === '0') return { kind: 'beginning' };
  const match = AT.exec(text);
  return match ? { kind: 'at', runId: match[1]!, seq: Number(match[2]) } : null;
}

/** Writes a cursor. */
export function formatCursor(cursor: Cursor): string {
  return cursor.kind === 'beginning' ? '0' : `${cursor.runId}:${cursor.seq}`;
}

/**
 * Splits `<session id>@<cursor>`, the form of the many-session stream; a plain session id has no cursor.
 */
export function parseSessionCursor(text: string): { sessionId: string; cursor: string | null } {
  const at = text.indexOf('@');
  return at < 0 ? { sessionId: text, cursor: null } : { sessionId: text.slice(0, at), cursor: text.slice(at + 1) };
}
