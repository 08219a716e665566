/** The message box: grows, sends, stops, and shows what waits. It never loses a text; see drafts.js. */

import { h, icon, iconButton, setText } from './dom.js';
import { createDrafts, NEW } from './drafts.js';
import { isBusy, runningRun } from './store.js';

const KEPT = 'Your text is still here.';

/**
 * @param api requests
 * @param actions `created(session)` (a session was made for the first message), `model()` (chosen for it),
 *   `sent()`, `cancelled(sessionId, admissionId)`, `notice(text)`
 * @returns `render(open)`, `focus()`, `reconnected()`, `offer(text)`, `sendText(text)`
 */
export function createComposer({ root, api, actions }) {
  const drafts = createDrafts({ saveDraft: (id, draft) => api.patch(`api/sessions/${id}`, { draft }) });
  let current = NEW;
  let open = null;
  /** The run that the person asked to stop. */
  let stopping = null;

  const area = h('textarea', {
    id: 'message',
    rows: '1',
    placeholder: 'Write a message',
    'aria-label': 'Message',
    'aria-describedby': 'composer-error composer-hint',
    enterkeyhint: 'send',
    dir: 'auto',
    oninput: () => {
      drafts.typed(current, area.value);
      refresh();
    },
    onkeydown: (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.ctrlKey || event.altKey) return;
      event.preventDefault();
      void send();
    },
  });
  const error = h('p.error', { id: 'composer-error', role: 'alert' });
  const queue = h('ul.queue', { hidden: true, 'aria-label': 'Messages that wait' });
  const paused = h('p.paused', { hidden: true });
  const sendButton = h('button.send', { type: 'submit', 'aria-label': 'Send', title: 'Send' }, icon('send'));
  const stopButton = h(
    'button.stop',
    { type: 'button', hidden: true, onclick: stop },
    icon('stop'),
    h('span', {}, 'Stop'),
  );
  const form = h(
    'form.box',
    {
      onsubmit: (event) => {
        event.preventDefault();
        void send();
      },
    },
    area,
    h('div.box-buttons', {}, stopButton, sendButton),
  );
  const hint = h('p.hint', { id: 'composer-hint' }, 'Enter sends, Shift+Enter starts a new line');
  const unclear = h(
    'p.paused',
    { hidden: true },
    'How an earlier turn ended is not known, so what waits does not begin. ',
    h('button', { type: 'button', onclick: resolveUnclear }, 'Count it as interrupted'),
  );
  const foreign = h(
    'p.paused',
    { hidden: true },
    'This conversation belongs to another program and can only be read here. ',
    h('button', { type: 'button', onclick: copyHere }, 'Go on in a copy'),
  );
  root.append(foreign, unclear, paused, queue, error, form, hint);

  function grow() {
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, window.innerHeight * 0.4)}px`;
  }

  /** Shows the box as it is. */
  function refresh() {
    const box = drafts.box(current);
    if (area.value !== box.text) area.value = box.text;
    area.readOnly = box.sending;
    sendButton.disabled = box.sending || box.text.trim() === '';
    form.classList.toggle('sending', box.sending);
    setText(error, box.error);
    grow();
  }

  /** Sends what is in the box. */
  async function send() {
    let id = current;
    let box = drafts.box(id);
    if (box.sending || box.text.trim() === '' || open?.gone) return;
    const { text } = box;
    const requestId = drafts.requestFor(id);
    Object.assign(box, { sending: true, error: '', unreachable: false });
    refresh();
    try {
      if (id === NEW) {
        const model = actions.model();
        const key = { 'idempotency-key': requestId };
        const { session } = await api.post('api/sessions', model === null ? {} : { model }, key);
        drafts.moved(session.session_id);
        const here = current === NEW;
        id = session.session_id;
        box = drafts.box(id);
        if (here) {
          current = id;
          actions.created(session);
        }
      }
      await api.post(`api/sessions/${id}/prompts`, { text, request_id: requestId });
      drafts.accepted(id, text);
      if (id === current) actions.sent();
    } catch (failure) {
      if (failure.code === 'admission_conflict' || failure.code === 'idempotency_conflict') drafts.spent(id);
      const kept = failure.kind === 'network' ? `${KEPT} Send it again when the connection is back.` : KEPT;
      Object.assign(box, { error: `${failure.message} ${kept}`, unreachable: failure.kind === 'network' });
    } finally {
      box.sending = false;
      refresh();
      if (id === current) area.focus();
    }
  }

  async function stop() {
    const run = runningRun(open);
    const { sessionId } = open;
    stopping = open.session?.run?.run_id ?? run?.id ?? '';
    render(open);
    // The button goes; whoever used the keyboard is not to be left nowhere.
    area.focus();
    try {
      // With its number, so that a turn that begins at this moment is not the one that is stopped.
      const body = run?.generation ? { generation: run.generation } : {};
      await api.post(`api/sessions/${sessionId}/interrupt`, body);
    } catch (failure) {
      stopping = null;
      if (failure.code !== 'stale_generation') actions.notice(failure.message);
      render(open);
    }
  }

  async function resolveUnclear() {
    const { sessionId } = open;
    try {
      const { admissions } = await api.get(`api/sessions/${sessionId}/prompts?pending=1`);
      for (const { admission_id: id, status } of admissions) {
        if (status !== 'unknown') continue;
        await api.post(`api/sessions/${sessionId}/prompts/${id}/resolve`, { outcome: 'interrupted' });
      }
    } catch (failure) {
      actions.notice(failure.message);
    }
  }

  /** A copy is ours, and goes on here. */
  async function copyHere() {
    try {
      const { session } = await api.post(`api/sessions/${open.sessionId}/fork`, {});
      actions.created(session);
    } catch (failure) {
      actions.notice(failure.message);
    }
  }

  async function cancel(sessionId, admissionId, button) {
    button.disabled = true;
    try {
      await api.remove(`api/sessions/${sessionId}/prompts/${admissionId}`);
      actions.cancelled(sessionId, admissionId);
    } catch (failure) {
      button.disabled = false;
      actions.notice(failure.code === 'stale_generation' ? 'This message has begun already.' : failure.message);
    }
  }

  let shownQueue = null;
  function renderQueue() {
    const waiting = open?.queue ?? [];
    if (waiting === shownQueue) return;
    shownQueue = waiting;
    queue.hidden = waiting.length === 0;
    queue.replaceChildren(
      ...waiting.map((one) => {
        const button = iconButton('close', 'Cancel this message');
        const { sessionId } = open;
        button.addEventListener('click', () => cancel(sessionId, one.admission_id, button));
        return h(
          'li.chip',
          { title: one.text },
          h('span.chip-word', {}, 'Next'),
          h('span.chip-text', {}, one.text),
          button,
        );
      }),
    );
  }

  function render(next) {
    open = next;
    const id = open?.sessionId ?? NEW;
    const another = id !== current;
    current = id;
    const box = drafts.box(id);
    const offered = open?.session ? drafts.offered(id, open.session.draft) : false;
    if (another || offered || area.value !== box.text) refresh();
    const busy = isBusy(open);
    const runId = open?.session?.run?.run_id ?? runningRun(open)?.id ?? '';
    if (!busy || (stopping && stopping !== runId)) stopping = null;
    stopButton.hidden = !busy;
    stopButton.disabled = stopping !== null;
    setText(stopButton.lastChild, stopping === null ? 'Stop' : 'Stopping…');
    area.placeholder = busy ? 'Write the next message' : 'Write a message';
    const reason = open?.session?.paused?.reason;
    paused.hidden = !reason;
    setText(paused, reason ? `What waits cannot begin now (${reason.replaceAll('_', ' ')}).` : '');
    unclear.hidden = open?.session?.status !== 'unknown';
    const isForeign = open?.session?.flags?.includes('foreign') ?? false;
    foreign.hidden = !isForeign;
    form.hidden = isForeign;
    hint.hidden = isForeign;
    root.hidden = Boolean(open?.gone);
    renderQueue();
  }

  refresh();
  return {
    render,
    focus: () => area.focus(),
    /** The server is there again: what says otherwise goes. */
    reconnected() {
      drafts.reconnected();
      refresh();
    },
    /** Puts a text into an empty box; a text that is there already stays in front of it. */
    offer(text) {
      const before = area.value.trim() === '' ? '' : `${area.value}\n\n`;
      drafts.typed(current, before + text);
      refresh();
      area.focus();
    },
    /** Sends a text that was chosen rather than typed; an unsent text is not touched. */
    sendText(text) {
      if (area.value.trim() !== '') return this.offer(text);
      drafts.typed(current, text);
      return send();
    },
  };
}
