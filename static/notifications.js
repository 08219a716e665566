/**
 * Notifications of the system: a turn has ended or needs an answer while the page is out of sight. Nothing is asked for
 * without a click, and the question whether to ask is put once.
 *
 * Of several hidden pages one stays connected to hear of it and tells, by a lock; the others rest. A page in sight says by
 * another lock which conversation is looked at there: of that one nobody is notified.
 */
import { h } from './dom.js';
import { titleOf } from './session-lines.js';

const WORDS = { ended: 'The turn has ended.', request: 'The agent waits for your answer.' };

const isPossible = () => 'Notification' in window && window.isSecureContext;
const isAtWork = ({ status }) => status === 'running' || status === 'queued';
const isHidden = () => document.visibilityState === 'hidden';
const lockName = (what) => `turnkeep:${location.pathname}:${what}`;

/**
 * @param root where the question is put
 * @param settings `notifications` is `ask` until the person has decided
 * @param actions `open(sessionId)`, `sessions()` (the list), `wake()` (this page is to listen while it is hidden)
 * @returns `changed(payload)` (of `sessions.changed`), `listed(sessions)`, `opened(sessionId)` (null for none), `turnOn()`, `listensHidden()`
 */
export function createNotifications({ root, settings, actions }) {
  /** Conversations that were at work when the page went out of sight. */
  let left = [];
  /** Lets the lock go; null while it is not held. */
  let release = null;
  let waiting = null;
  let openId = null;
  /** The conversation that is told to be looked at here, and what takes that back. */
  let looked = { id: null, end() {} };

  const isOn = () => isPossible() && settings.get().notifications === 'on' && Notification.permission === 'granted';

  function show({ session_id: id, session }, reason) {
    try {
      const shown = new Notification(titleOf(session), {
        body: WORDS[reason],
        tag: `turnkeep:${id}`,
        icon: 'favicon.svg',
      });
      shown.onclick = () => {
        window.focus();
        actions.open(id);
        shown.close();
      };
    } catch {
      // Some browsers show notifications of installed pages only.
      settings.set({ notifications: 'off' });
    }
  }

  function listen() {
    if (!isOn() || !navigator.locks || waiting) return;
    waiting = new AbortController();
    const held = () => {
      actions.wake();
      return new Promise((resolve) => {
        release = resolve;
      });
    };
    navigator.locks.request(lockName('listener'), { signal: waiting.signal }, held).catch(() => {});
  }

  function rest() {
    waiting?.abort();
    waiting = null;
    release?.();
    release = null;
  }

  function tellLooked() {
    const id = isHidden() || !isOn() ? null : openId;
    if (id === looked.id || !navigator.locks) return;
    looked.end();
    looked = { id, end() {} };
    if (id === null) return;
    const over = new Promise((resolve) => {
      looked.end = resolve;
    });
    void navigator.locks.request(lockName(`looks at ${id}`), { mode: 'shared' }, () => over);
  }

  /** Whether a page of this browser shows a conversation to somebody. */
  async function isLookedAt(id) {
    const { held } = await navigator.locks.query();
    return held.some(({ name }) => name === lockName(`looks at ${id}`));
  }

  document.addEventListener('visibilitychange', () => {
    tellLooked();
    if (isHidden()) {
      left = actions
        .sessions()
        .filter(isAtWork)
        .map(({ session_id: id }) => id);
      return listen();
    }
    rest();
    // It may have been heard of out of sight, and nothing is drawn anew for being seen.
    listed(actions.sessions());
  });

  const mayAsk = () => isPossible() && settings.get().notifications === 'ask' && Notification.permission === 'default';

  /** Resolves with a sentence when it is not possible, else null. */
  async function turnOn() {
    if (!isPossible()) return 'This browser shows notifications only for pages with https or on this machine.';
    const permission = await Notification.requestPermission();
    if (permission !== 'granted') return 'The browser does not allow notifications for this page.';
    settings.set({ notifications: 'on' });
    return null;
  }

  function ask() {
    const card = h(
      'p.notice.ask',
      {},
      'Something happened while you were away. Be notified next time?',
      h(
        'span.notice-actions',
        {},
        h(
          'button.primary',
          {
            type: 'button',
            onclick: async () => {
              card.remove();
              if ((await turnOn()) !== null) settings.set({ notifications: 'off' });
            },
          },
          'Notify me',
        ),
        h('button', { type: 'button', onclick: () => card.remove() }, 'No'),
      ),
    );
    // Put once: whatever the answer, also none, it is not put again.
    settings.set({ notifications: 'off' });
    root.append(card);
  }

  /** The list as it is now: what ended while nobody looked is worth the question. */
  function listed(sessions) {
    if (left.length === 0 || isHidden()) return;
    const ended = sessions.some((one) => left.includes(one.session_id) && !isAtWork(one));
    if (!ended) return;
    left = [];
    if (mayAsk()) ask();
  }

  return {
    turnOn,
    listed,
    listensHidden: () => release !== null,
    opened(sessionId) {
      openId = sessionId;
      tellLooked();
    },
    async changed(payload) {
      if (!isHidden() || !payload.session) return;
      const isRequest = payload.session.status === 'waiting' && payload.reason === 'request';
      if (payload.reason !== 'ended' && !isRequest) return;
      if (!isOn() || (navigator.locks && (release === null || (await isLookedAt(payload.session_id))))) return;
      show(payload, isRequest ? 'request' : 'ended');
    },
  };
}
