/** The edit store in memory: what it means to take rows out of a transcript, and to make a session with one. */
import type { AliveProbe, Cut, EditStore } from '../../db/stores.ts';
import { judgeEdit } from '../../server/core/edit-rules.ts';
import {
  atomic,
  type MemoryState,
  openOf,
  putRows,
  rowOf,
  type StoredSession,
  takeLease,
  takeOut,
  touch,
} from './memory-state.ts';

/** Takes rows out and moves the fence, as a part of an edit that was judged. */
export function applyCut(state: MemoryState, session: StoredSession, cut: Cut, now: number): void {
  const id = session.session_id;
  takeOut(state, id, cut.kept === null ? (state.messages.get(id) ?? []).map((row) => row.id) : cut.remove);
  session.message_count = cut.count;
  session.last_message_at = cut.kept?.timestamp ?? null;
  const summary = state.summaries.get(id);
  if (summary && (cut.kept === null || cut.remove.includes(summary.anchor))) state.summaries.delete(id);
  session.context_used = null;
  session.context_estimated = false;
  session.edit_number += 1;
  session.edit_fence = cut.kept?.id ?? null;
  touch(session, now);
}

export function createMemoryEdits(state: MemoryState, alive: AliveProbe): EditStore {
  return {
    cut: (sessionId, cut, { lease, now }) =>
      atomic(() => {
        const session = state.sessions.get(sessionId);
        if (!session) return { kind: 'not_found' };
        const { revision } = session;
        const verdict = judgeEdit({ open: openOf(state, sessionId), revision, expected: cut.revision });
        if (verdict === 'revision_conflict') return { kind: verdict, revision };
        if (verdict !== 'edit') return { kind: verdict };
        const granted = takeLease(state, sessionId, lease, alive);
        if (granted.kind !== 'granted') return granted;
        applyCut(state, session, cut, now);
        return { kind: 'edited', session: rowOf(state, session) };
      }),

    copy: ({ rows, usage, parent_session_id: _parent, summary, now, ...named }) =>
      atomic(() => {
        const id = named.session_id;
        if (state.sessions.has(id) || state.tombstones.has(id)) return { kind: 'id_taken' };
        const isProject = state.projects.some((project) => project.project_id === named.project_id);
        const session: StoredSession = {
          ...named,
          project_id: isProject ? named.project_id : null,
          updated_at: now,
          last_activity_at: now,
          last_message_at: rows.at(-1)?.timestamp ?? null,
          message_count: rows.length,
          pinned: false,
          archived: false,
          draft: '',
          revision: 1,
          generation: 1,
          edit_number: 0,
          edit_fence: null,
          input_tokens: usage?.input_tokens ?? 0,
          output_tokens: usage?.output_tokens ?? 0,
          cached_tokens: usage?.cached_tokens ?? 0,
          reasoning_tokens: usage?.reasoning_tokens ?? 0,
          cost_usd: usage?.cost_usd ?? null,
          context_used: usage?.context_used ?? null,
          context_length: usage?.context_length ?? null,
          context_estimated: usage?.context_estimated ?? false,
          flags: [],
          create_key: null,
          create_digest: null,
        };
        state.sessions.set(id, session);
        putRows(state, id, rows);
        if (summary) state.summaries.set(id, summary);
        return { kind: 'created', session: rowOf(state, session) };
      }),
  };
}
