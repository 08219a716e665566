/**
 * Deleting with undo. A conversation leaves the list at once; the server is told when the time for undoing is over, or
 * when the page goes. What is live is asked about first, for deleting it stops it.
 */
import { confirmWith } from './dialog.js';
import { titleOf } from './session-lines.js';

const UNDO_MS = 8000;

/**
 * @param leave goes away from a conversation if it is open; returns what goes back to it
 * @returns `remove(session)` and `undo()`, which brings back the last one
 */
export function createRemoval({ api, store, notice, leave }) {
  const { dispatch } = store;
  /** What can still be undone, by id, the last one at the end. */
  const waiting = new Map();

  const address = (id, stop) => `api/sessions/${id}${stop ? '?stop=1' : ''}`;
  const keep = (id) => dispatch({ type: 'list.kept', id });

  /** @returns whether the person agrees to stop what runs */
  const mayStop = (session) =>
    confirmWith({
      title: `Stop and delete “${titleOf(session)}”?`,
      text: 'It is not idle. What it is doing now is stopped, and all its messages are deleted.',
      action: 'Stop and delete',
    });

  async function tell(session, stop) {
    const { session_id: id } = session;
    try {
      await api.remove(address(id, stop));
    } catch (failure) {
      if (failure.status !== 404) {
        keep(id);
        if (failure.code !== 'session_live' || stop) notice(failure.message);
        // It began to run, or another client holds it.
        else if (await mayStop(session)) await remove(session, true);
        return;
      }
    }
    dispatch({ type: 'sessions.changed', session_id: id, reason: 'deleted' });
  }

  function remove(session, stop) {
    const { session_id: id } = session;
    const back = leave(id);
    dispatch({ type: 'list.removing', id });
    const undo = () => {
      waiting.delete(id);
      keep(id);
      back();
    };
    const close = notice(`Deleted “${titleOf(session)}”.`, {
      action: 'Undo',
      run: undo,
      ms: UNDO_MS,
      onGone() {
        waiting.delete(id);
        void tell(session, stop);
      },
    });
    waiting.set(id, { stop, undo, close });
  }

  window.addEventListener('pagehide', () => {
    for (const [id, { stop, close }] of waiting) {
      close();
      void api.remove(address(id, stop), { keepalive: true }).catch(() => keep(id));
    }
    waiting.clear();
  });

  return {
    async remove(session) {
      if (waiting.has(session.session_id)) return;
      const isLive = session.status !== 'idle';
      if (!isLive || (await mayStop(session))) remove(session, isLive);
    },
    undo() {
      const last = [...waiting.values()].at(-1);
      last?.close();
      last?.undo();
    },
  };
}
