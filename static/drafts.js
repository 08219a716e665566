/**
 * What is written in the message box of each conversation, until the server has accepted it. A text leaves here only
 * after its 202. Kept in memory, in the tab's storage (a reload), and on the server as the session's draft (another
 * device); the request id of a try whose answer never came is kept with its text, so that the next try is the same.
 */
import { newRequestId } from './api.js';

const SAVE_AFTER_MS = 800;
/** The box of a conversation that does not exist yet. */
export const NEW = 'new';

/**
 * @param saveDraft stores a session's draft on the server
 * @param onSaved told a session's id while the server has its newest text; not used for display
 */
export function createDrafts({ saveDraft, storage = globalThis.sessionStorage }) {
  const boxes = new Map();
  const timers = new Map();
  const saving = new Map();
  const keyOf = (id) => `turnkeep:${location.pathname}:draft:${id}`;

  const read = (id) => {
    try {
      return JSON.parse(storage.getItem(keyOf(id)) ?? 'null');
    } catch {
      return null;
    }
  };

  const keep = (id) => {
    const { text, requestId, requestText, sessionId } = boxes.get(id);
    try {
      if (text === '') storage.removeItem(keyOf(id));
      else storage.setItem(keyOf(id), JSON.stringify({ text, requestId, requestText, sessionId }));
    } catch {
      // A full or forbidden storage costs only the protection against a reload.
    }
  };

  /** One write at a time for each session, the newest text last. */
  async function save(id) {
    if (saving.get(id)) {
      saving.set(id, 'again');
      return;
    }
    saving.set(id, 'busy');
    const box = boxes.get(id);
    const { text } = box;
    try {
      if (text !== box.saved) {
        await saveDraft(id, text);
        box.saved = text;
      }
    } catch {
      // The text is safe in the box; the next change tries again.
    }
    const again = saving.get(id) === 'again';
    saving.delete(id);
    if (again) await save(id);
  }

  function later(id, ms = SAVE_AFTER_MS) {
    if (id === NEW) return;
    clearTimeout(timers.get(id));
    timers.set(
      id,
      setTimeout(() => void save(id), ms),
    );
  }

  function box(id) {
    let found = boxes.get(id);
    if (!found) {
      const stored = read(id);
      found = {
        text: stored?.text ?? '',
        error: '',
        /** Whether `error` says that the server could not be reached. */
        unreachable: false,
        sending: false,
        requestId: stored?.requestId ?? null,
        requestText: stored?.requestText ?? null,
        /** Of a new conversation: the session that was made for it already. */
        sessionId: stored?.sessionId ?? null,
        /** What the server has as draft, as far as we know. */
        saved: null,
        /** Nothing was typed here: the server's draft may be taken over. */
        fresh: stored === null,
      };
      boxes.set(id, found);
    }
    return found;
  }

  return {
    box,

    /** The person typed. */
    typed(id, text) {
      Object.assign(box(id), { text, fresh: false });
      keep(id);
      later(id);
    },

    /** The server's draft of a session, when it is first known. Returns whether the text of the box changed. */
    offered(id, draft) {
      const one = box(id);
      if (one.saved === null) one.saved = draft;
      if (!one.fresh || one.text !== '' || draft === '') return false;
      Object.assign(one, { text: draft, fresh: false });
      keep(id);
      return true;
    },

    /** The request id for sending this text: the same for as long as the text is the same and was not accepted. */
    requestFor(id) {
      const one = box(id);
      if (one.requestId === null || one.requestText !== one.text) {
        Object.assign(one, { requestId: newRequestId(), requestText: one.text });
      }
      keep(id);
      return one.requestId;
    },

    /** The session of a new conversation exists: its box is that session's from now on. */
    moved(sessionId) {
      boxes.set(sessionId, { ...box(NEW), sessionId: null, fresh: false, saved: '' });
      boxes.delete(NEW);
      keep(sessionId);
      storage.removeItem(keyOf(NEW));
    },

    /** The server has accepted this text. What was typed meanwhile stays. */
    accepted(id, text) {
      const one = box(id);
      Object.assign(one, { requestId: null, requestText: null, error: '' });
      if (one.text === text) one.text = '';
      keep(id);
      later(id, 0);
    },

    /** The server is there again: errors that say otherwise go. */
    reconnected() {
      for (const one of boxes.values()) if (one.unreachable) Object.assign(one, { error: '', unreachable: false });
    },

    /** A request id is spent: the server knows it for another prompt. */
    spent(id) {
      Object.assign(box(id), { requestId: null, requestText: null });
      keep(id);
    },
  };
}
