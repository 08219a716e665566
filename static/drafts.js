/**
 * What is written in the message box of each conversation, with its files, until the server has accepted it. A text
 * leaves here only after its 202. Kept in memory, in the tab's storage (a reload), and on the server as the session's
 * draft (another device). The request id of a try whose answer never came is kept with what was sent, so that the next
 * try of the same is the same prompt.
 */
import { newRequestId } from './api.js';
import { tabStorage } from './storage.js';

const SAVE_AFTER_MS = 800;
/** Texts that were saved here lately: of these the server may still tell although it has another one by now. */
const MOST_ECHOES = 8;
/** The box of a conversation that does not exist yet. */
export const NEW = 'new';

/**
 * What a box holds. `tries` has the ids of what was tried and not accepted, by step: `{id, of}`, where `of` is what was
 * sent. `files` are as uploads.js makes them.
 */
const newBox = (stored) => ({
  text: stored?.text ?? '',
  files: stored?.files ?? [],
  error: '',
  /** Whether `error` says that the server could not be reached, or did not know who is there. */
  unreachable: false,
  sending: false,
  tries: stored?.tries ?? {},
  /** What the server has as draft, as far as we know. */
  saved: null,
  /** What it had when this was written: only over these it is written without having been asked. */
  over: stored?.over ?? [stored?.text ?? ''],
  /** Whether there is a text here that the server was not given yet. */
  unsaved: stored?.unsaved ?? stored !== null,
  /** Whether the server has another one's words in place of the text here: it is nowhere else. */
  own: stored?.own ?? false,
  /** Nothing that is here was typed here, or the server had all of it: its draft may stand in place of it. */
  fresh: stored === null || (stored.unsaved === false && !stored.own && Object.keys(stored.tries).length === 0),
  /** What was saved from here, the newest first. */
  echoes: [],
});

/** @param saveDraft stores a session's draft on the server */
export function createDrafts({ saveDraft, storage = tabStorage() }) {
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
    const { text, tries, files, unsaved, own, saved, echoes, over: before } = boxes.get(id);
    // The last that was given to the server may have arrived, answered or not.
    const given = saved === null ? before : [...new Set([saved, ...echoes.slice(0, 1)])];
    // Bytes do not outlive the page; what is uploaded does.
    const uploaded = files.filter((file) => file.id !== null).map(({ id, name, size }) => ({ id, name, size }));
    try {
      if (text === '' && uploaded.length === 0 && !unsaved) storage.removeItem(keyOf(id));
      else
        storage.setItem(
          keyOf(id),
          JSON.stringify({ text, tries, files: uploaded, unsaved, own, over: unsaved ? given : undefined }),
        );
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
      if (box.unsaved && text !== box.saved) {
        box.echoes = [text, ...box.echoes].slice(0, MOST_ECHOES);
        await saveDraft(id, text);
        box.saved = text;
      }
      if (text === box.saved) {
        Object.assign(box, { own: false, unsaved: text !== box.text });
        keep(id);
      }
    } catch {
      // The text is safe in the box; the next change tries again, or the next connection.
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
      setTimeout(() => saveNow(id), ms),
    );
  }

  function saveNow(id) {
    clearTimeout(timers.get(id));
    timers.delete(id);
    void save(id);
  }
  // A page out of sight may be gone before its timers are due.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') for (const id of [...timers.keys()]) saveNow(id);
  });

  function box(id) {
    let found = boxes.get(id);
    if (!found) {
      found = newBox(read(id));
      boxes.set(id, found);
    }
    return found;
  }

  return {
    box,

    /** The person typed. Whoever empties a box of words of their own does not empty what another one wrote. */
    typed(id, text) {
      const one = box(id);
      Object.assign(one, { text, fresh: false, unsaved: id !== NEW && !(one.own && text === '') });
      keep(id);
      later(id);
    },

    /** The files of a box are these now. */
    filed(id, files) {
      box(id).files = files;
      keep(id);
    },

    /**
     * The draft of a session as the server has it now. It comes into the box where nothing was typed; what was typed
     * while the server could not be reached goes there, unless a page that was away finds that another one has written
     * meanwhile. Returns whether the text of the box changed.
     */
    offered(id, draft) {
      const one = box(id);
      const isFirst = one.saved === null;
      if (one.sending || saving.has(id) || draft === one.saved) return false;
      if (one.echoes.includes(draft) && !(one.fresh && draft === '')) return false;
      one.saved = draft;
      if (one.unsaved) {
        const mayGo = !isFirst || one.over.includes(draft);
        if (isFirst && mayGo) later(id, 0);
        if (mayGo) return false;
        Object.assign(one, { unsaved: false, own: true });
      }
      const isTaken = draft !== one.text && (one.fresh || one.text === '');
      if (isTaken) Object.assign(one, { text: draft, fresh: true });
      // An empty draft is no word of another one: what was here may have been sent from there.
      if (draft === one.text) one.own = false;
      else if (draft !== '') one.own = true;
      keep(id);
      return isTaken;
    },

    /**
     * The try of a step of sending: the last one when it was of the same and was not accepted, else a new one.
     * @param step `session`, `prompt` or `command`
     * @param of what is sent, as a value of JSON; what a try adds to it (`how`) is that of the first one
     * @returns `{id, how}`
     */
    tryOf(id, step, of, how = null) {
      const one = box(id);
      const key = JSON.stringify(of);
      if (one.tries[step]?.of !== key) one.tries[step] = { id: newRequestId(), of: key, how };
      // Wherever the text came from, it is this box that answers for it now.
      one.fresh = false;
      keep(id);
      return one.tries[step];
    },

    /** The session of a new conversation exists: its box is that session's from now on. */
    moved(sessionId) {
      boxes.set(sessionId, { ...box(NEW), fresh: false, saved: '', unsaved: true });
      boxes.delete(NEW);
      keep(sessionId);
      storage.removeItem(keyOf(NEW));
      // Its prompt may be refused: then it is a draft like any other.
      later(sessionId);
    },

    /** The server has accepted this. What was typed or added meanwhile stays. */
    accepted(id, text, files) {
      const one = box(id);
      Object.assign(one, { tries: {}, error: '', unreachable: false });
      if (one.text === text) one.text = '';
      one.unsaved = id !== NEW && !(one.own && one.text === '');
      one.own &&= one.text !== '';
      one.files = one.files.filter((file) => !files.includes(file.id));
      keep(id);
      // Of what the server has nothing may be known yet, when this is found out by a page that was away.
      if (one.saved !== null) later(id, 0);
    },

    /** The server is there again: errors that say otherwise go, and drafts that it lacks are saved. */
    reconnected() {
      for (const [id, one] of boxes) {
        if (one.unreachable) Object.assign(one, { error: '', unreachable: false });
        if (one.unsaved && one.saved !== null) later(id, 0);
      }
    },

    /** The ids of tries are spent: the server knows them for something else. */
    spent(id) {
      box(id).tries = {};
      keep(id);
    },
  };
}
