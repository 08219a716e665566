/**
 * The message box: grows, takes files, sends, says something to a running turn, stops. What becomes of what is sent stands
 * in sending.js; what is above the box has files of its own: composer-notes, composer-queue, composer-files.
 */

import { forBox } from './commands.js';
import { createCompletion } from './completion.js';
import { createFiles, uploadAll } from './composer-files.js';
import { createComposerNotes } from './composer-notes.js';
import { createQueue } from './composer-queue.js';
import { isBusy, runningRun } from './conversation-store.js';
import { h, icon, setText } from './dom.js';
import { createDrafts, NEW } from './drafts.js';
import { createSending } from './sending.js';

/** A draft of fewer characters is saved although the page goes meanwhile: browsers allow 64 KiB for that. */
const OUTLIVES = 20_000;

/**
 * @param api requests
 * @param scroll where the conversation is seen; @param main takes drops of files
 * @param pickers buttons with popups, of picker.js
 * @param settings of settings.js
 * @param actions `created(session)` (a session was made for the first message), `next()` (model and folder for it),
 *   `command(command, requestId)` (resolves with a sentence when it did not work), `follow()`, `cancelled(sessionId, admissionId)`,
 *   `models()`, `notice(text)`
 * @returns `render(open)`, `focus()`, `reconnected()`, `offer(text)`, `sendText(text)`
 */
export function createComposer({ root, scroll, main, api, pickers, settings, actions }) {
  const drafts = createDrafts({
    saveDraft: (id, draft) => api.patch(`api/sessions/${id}`, { draft }, { keepalive: draft.length < OUTLIVES }),
  });
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
    dir: 'auto',
    oninput: () => {
      drafts.typed(current, area.value);
      refresh();
      commands.typed();
    },
    onkeydown: onKey,
    onblur: () => commands.close(),
  });
  const commands = createCompletion({
    area,
    models: () => actions.models()?.models ?? [],
    put(text) {
      drafts.typed(current, text);
      refresh();
    },
  });
  const error = h('p.error', { id: 'composer-error', role: 'alert' });
  const notes = createComposerNotes({ api, scroll, actions });
  const queue = createQueue({ api, actions: { ...actions, offer } });
  const sendButton = h('button.send', { type: 'submit', 'aria-label': 'Send', title: 'Send' }, icon('send'));
  const steerButton = h(
    'button.steer',
    { type: 'button', hidden: true, title: 'Say it to the turn that runs (Ctrl+Enter)', onclick: () => send('steer') },
    'Send now',
  );
  const stopButton = h(
    'button.stop',
    { type: 'button', hidden: true, onclick: stop },
    icon('stop'),
    h('span', {}, 'Stop'),
  );
  const form = h('form.box', {
    onsubmit: (event) => {
      event.preventDefault();
      void send();
    },
  });
  const files = createFiles({
    form,
    area: main,
    actions: { add: addFiles, remove: removeFile, again: sendFiles, allowed: () => !form.hidden && !root.hidden },
  });
  form.append(
    files.element,
    area,
    h(
      'div.box-bar',
      {},
      files.button,
      ...pickers.map(({ button }) => button),
      h('span.box-buttons', {}, stopButton, steerButton, sendButton),
    ),
  );
  const hint = h('p.hint', { id: 'composer-hint' });
  const popups = h('div.popups', {}, commands.element, ...pickers.map(({ popup }) => popup));
  root.append(notes.element, queue.element, error, popups, form, hint);

  function grow() {
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, window.innerHeight * 0.4)}px`;
  }

  /** Shows the box as it is. */
  function refresh() {
    const box = drafts.box(current);
    if (area.value !== box.text) area.value = box.text;
    area.readOnly = box.sending;
    const isEmpty = box.text.trim() === '';
    sendButton.disabled = box.sending || isEmpty;
    steerButton.hidden = isEmpty || box.sending || runningRun(open) === null;
    form.classList.toggle('sending', box.sending);
    setText(error, box.error);
    files.render(box.files);
    grow();
  }

  function onKey(event) {
    // Enter also ends a composition of an input method; some browsers say so by nothing but this code.
    if (event.isComposing || event.keyCode === 229) return;
    if (commands.key(event)) return;
    if (event.key !== 'Enter' || event.shiftKey || event.altKey) return;
    const isModified = event.ctrlKey || event.metaKey;
    const sendsPlain = settings.get().sendKey === 'enter';
    if (!sendsPlain && !isModified) return;
    event.preventDefault();
    void send(sendsPlain && isModified && runningRun(open) !== null ? 'steer' : null);
  }

  // ---------------------------------------------------------------- files

  /** A conversation that does not exist yet gets its files with its first message. */
  function sendFiles() {
    const id = current;
    if (id !== NEW) void uploadAll(id, drafts.box(id).files, () => filesChanged(id));
    refresh();
  }

  function filesChanged(id) {
    drafts.filed(id, drafts.box(id).files);
    if (id === current) refresh();
  }

  function addFiles(added) {
    drafts.filed(current, [...drafts.box(current).files, ...added]);
    sendFiles();
    area.focus();
  }

  function removeFile(file) {
    file.stop?.();
    drafts.filed(
      current,
      drafts.box(current).files.filter((one) => one !== file),
    );
    refresh();
    area.focus();
  }

  // ---------------------------------------------------------------- sending

  const sending = createSending({
    api,
    drafts,
    actions: {
      next: actions.next,
      command: actions.command,
      filesChanged,
      moved(session) {
        if (current !== NEW) return;
        current = session.session_id;
        actions.created(session);
      },
    },
  });

  /** Sends what is in the box. @param mode `steer` to say it to the running turn; null for what the server does with it */
  async function send(mode = null) {
    const box = drafts.box(current);
    if (box.sending || box.text.trim() === '' || open?.gone) return;
    commands.close();
    const sent = sending.send(current, mode);
    refresh();
    const { id, kind } = await sent;
    refresh();
    if (kind === 'failed') void settle(id);
    if (id !== current) return;
    if (kind === 'prompt') actions.follow();
    // A command may have led elsewhere, to a picker or a sheet.
    if (kind !== 'command' || form.contains(document.activeElement)) area.focus();
  }

  async function settle(id) {
    if ((await sending.settle(id)) && id === current) refresh();
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

  /** Puts a text for the agent and files into a box; a text that is there already stays in front of it. */
  function offer(id, text, more = []) {
    const box = drafts.box(id);
    drafts.typed(id, box.text.trim() === '' ? forBox(text) : `${box.text}\n\n${text}`);
    if (more.length > 0) drafts.filed(id, [...box.files, ...more]);
    if (id !== current) return;
    refresh();
    area.focus();
  }

  function render(next) {
    open = next;
    const id = open?.sessionId ?? NEW;
    const another = id !== current;
    current = id;
    const box = drafts.box(id);
    const offered = open?.session ? drafts.offered(id, open.session.draft) : false;
    if (another) void settle(id);
    const busy = isBusy(open);
    const runId = open?.session?.run?.run_id ?? runningRun(open)?.id ?? '';
    const canSteer = runningRun(open) !== null && box.text.trim() !== '' && !box.sending;
    if (another || offered || area.value !== box.text || steerButton.hidden === canSteer) refresh();
    if (!busy || (stopping && stopping !== runId)) stopping = null;
    stopButton.hidden = !busy;
    stopButton.disabled = stopping !== null;
    setText(stopButton.lastChild, stopping === null ? 'Stop' : 'Stopping…');
    area.placeholder = busy ? 'Write the next message' : 'Write a message';
    const { sendKey } = settings.get();
    area.enterKeyHint = sendKey === 'enter' ? 'send' : 'enter';
    const sends = sendKey === 'enter' ? 'Enter sends, Shift+Enter starts a new line' : 'Ctrl+Enter sends';
    setText(hint, `${sends}, / shows the commands`);
    const isForeign = open?.session?.flags?.includes('foreign') ?? false;
    form.hidden = isForeign;
    hint.hidden = isForeign;
    root.hidden = Boolean(open?.gone);
    notes.render(open);
    queue.render(open);
  }

  refresh();
  void settle(current);
  return {
    render,
    focus: () => area.focus(),
    /** Stops the turn that runs, if one does. */
    stop: () => isBusy(open) && stopping === null && stop(),
    /** The server is there again: what says otherwise goes, and what had arrived after all is found. */
    reconnected() {
      drafts.reconnected();
      refresh();
      void settle(current);
    },
    /** Puts a text into an empty box; a text that is there already stays in front of it. */
    offer: (text) => offer(current, text),
    /** Sends a text that was chosen rather than typed; an unsent text is not touched. */
    sendText(text) {
      if (area.value.trim() !== '') return offer(current, text);
      drafts.typed(current, text);
      return send();
    },
  };
}
