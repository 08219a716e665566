/** The message store in memory: the rows as they were written, and a search that says in words what is found. */
import type { MessageStore } from '../../db/stores.ts';
import { isMarker } from '../../server/core/marker.ts';
import { atomic, type MemoryState, putRows, takeOut, touch } from './memory-state.ts';

/** The words of a text without accents and case; every other sign only separates. */
const wordsOf = (text: string): string[] =>
  text
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);

/** Whether a text has the word `wanted`. @param asBeginning whether a word that only begins so will do */
const has = (words: readonly string[], wanted: string, asBeginning: boolean): boolean =>
  asBeginning ? words.some((word) => word.startsWith(wanted)) : words.includes(wanted);

export function createMemoryMessages(state: MemoryState): MessageStore {
  return {
    list: (sessionId) => atomic(() => state.messages.get(sessionId) ?? []),

    // No other program writes here: every row has an id, and its place is its number.
    index: (sessionId) =>
      atomic(() => {
        const ids = (state.messages.get(sessionId) ?? []).map((row) => row.id);
        return { rowIds: ids.map((_, at) => at + 1), ids };
      }),

    raw: (sessionId, rowIds) =>
      atomic(() =>
        (state.messages.get(sessionId) ?? [])
          .map((row, at) => ({ ...row, _state_db_row_id: at + 1 }))
          .filter((row) => rowIds === null || rowIds.includes(row._state_db_row_id)),
      ),

    inactiveIds: (sessionId) => atomic(() => (state.inactive.get(sessionId) ?? []).map((row) => row.id)),

    heal: (sessionId, { rows, inactive, count, lastMessageAt, generation, flags = [], edit, now }) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        if (session?.generation !== generation) return 'moved';
        putRows(state, sessionId, rows);
        takeOut(state, sessionId, inactive);
        session.message_count = count;
        session.last_message_at = lastMessageAt;
        if (edit) Object.assign(session, { edit_number: edit.number, edit_fence: edit.fence });
        session.flags = [...new Set([...session.flags, ...flags])];
        touch(session, now);
        return 'healed';
      }),

    extent: (sessionId) =>
      atomic(() => {
        const count = (state.messages.get(sessionId) ?? []).length;
        return { count, last: count };
      }),

    inactive: (sessionId) => atomic(() => [...(state.inactive.get(sessionId) ?? [])]),

    search: (q, limit) =>
      atomic(() => {
        const wanted = wordsOf(q);
        if (wanted.length === 0) return [];
        const last = wanted.length - 1;
        return [...state.messages]
          .flatMap(([sessionId, rows]) => rows.map((row) => ({ session: state.sessions.get(sessionId)!, row })))
          .filter(({ row }) => (row.role === 'user' || row.role === 'assistant') && !isMarker(row))
          .filter(({ row }) => wanted.every((word, at) => has(wordsOf(row.content), word, at === last)))
          .slice(0, limit)
          .map(({ session, row }) => ({
            session_id: session.session_id,
            title: session.title,
            message_id: row.id,
            role: row.role,
            snippet: snippetOf(row.content, wanted[0]!, last === 0),
            timestamp: row.timestamp,
          }));
      }),
  };
}

/** A short text as it is; of a long one the words around the first that was found. */
function snippetOf(content: string, word: string, asBeginning: boolean): string {
  const pieces = content.split(/\s+/);
  if (pieces.length <= 16) return content;
  const at = pieces.findIndex((piece) => has(wordsOf(piece), word, asBeginning));
  return `…${pieces.slice(Math.max(0, at - 8), at + 8).join(' ')}…`;
}
