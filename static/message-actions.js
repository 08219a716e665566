/**
 * What can be done with a message: copy, edit and send again, try again, fork, rewind. One listener for all of them, by
 * `data-act`; the requests behind them are conversation-actions.js.
 */
import { isBusy } from './conversation-store.js';
import { copy } from './copy.js';
import { confirmWith } from './dialog.js';
import { icon } from './dom.js';
import { moveInFoot } from './message-foot.js';
import { shownRows } from './past-store.js';
import { createPromptEditor } from './prompt-editor.js';
import { createTexts } from './storage.js';

/** How long a button says that it copied, in milliseconds. */
const SAID_MS = 1600;

/** What changes the conversation waits for the end of its turn. */
const EDITS = new Set(['edit', 'edit-prompt', 'retry', 'rewind', 'compact']);

/**
 * @param turns the element with all messages
 * @param open gives the open conversation
 * @param actions `resend(rowId, text, attachments)`, `retry()`, `compactAndRetry()`, `fork(rowId)`, `rewind(rowId)`,
 *   `notice(text)`, `sent()` (the person is done here)
 */
export function listenForActions({ turns, open, actions }) {
  /** Texts of prompts that are being edited, by the row: they outlive the element and a reload. */
  const texts = createTexts('edit');

  const rowOf = (button) => {
    const id = button.closest('.turn[data-row]')?.dataset.row;
    return shownRows(open()).rows.find((row) => row.id === id) ?? null;
  };

  turns.addEventListener('keydown', moveInFoot);
  turns.addEventListener('click', (event) => {
    const button = event.target.closest('[data-act]');
    if (!button || !turns.contains(button)) return;
    const row = rowOf(button);
    if (!row) return;
    const { act } = button.dataset;
    if (EDITS.has(act) && isBusy(open())) {
      actions.notice('A turn is running. Wait for its end, or stop it first.');
      return;
    }
    void DO[act]?.(row, button);
  });

  const DO = {
    async copy(row, button) {
      const done = await copy(row.content);
      say(button, done);
    },
    edit: (row, button) => edit(row, button.closest('.turn'), button),
    'edit-prompt': (row, button) => {
      const prompt = shownRows(open()).rows.find((one) => one.role === 'user' && one.run_id === row.run_id);
      const turn = prompt && turns.querySelector(`.turn[data-row="${CSS.escape(prompt.id)}"]`);
      if (turn) edit(prompt, turn, button);
    },
    retry: (_row, button) => once(button, actions.retry),
    compact: (_row, button) => once(button, actions.compactAndRetry),
    fork: (row, button) => once(button, () => actions.fork(row.id)),
    async rewind(row, button) {
      const agreed = await confirmWith({
        title: 'Rewind to this message?',
        text: `This takes back ${whatFollows(row)}. A fork made before keeps it; here it does not come back. Files that were changed stay changed.`,
        action: 'Rewind',
      });
      if (agreed) await once(button, () => actions.rewind(row.id));
    },
  };

  function whatFollows(row) {
    const { rows, hasNewer } = shownRows(open());
    const later = rows.slice(rows.indexOf(row) + 1).filter((one) => one.role === 'user').length;
    if (hasNewer || later === 0) return 'everything after it';
    return later === 1 ? 'the turn after it' : `the ${later} turns after it`;
  }

  function edit(row, turn, opener) {
    if (turn.querySelector('.prompt-editor')) {
      turn.querySelector('.prompt-editor textarea').focus();
      return;
    }
    const hidden = turn.querySelectorAll(':scope > .bubble, :scope > .turn-foot');
    const { rows } = shownRows(open());
    const editor = createPromptEditor({
      text: texts.get(row.id) ?? row.content,
      hasLater: rows.slice(rows.indexOf(row) + 1).some((one) => one.role === 'user' && one.run_id !== row.run_id),
      send: (text) => actions.resend(row.id, text, row.attachments ?? []),
      typed: (text) => texts.set(row.id, text),
      close(isSent) {
        texts.delete(row.id);
        editor.element.remove();
        for (const one of hidden) one.hidden = false;
        if (isSent) actions.sent();
        else opener.focus();
      },
    });
    for (const one of hidden) one.hidden = true;
    turn.append(editor.element);
    editor.focus();
    editor.element.scrollIntoView({ block: 'nearest' });
  }
}

/** Does something that a second click must not do again. */
async function once(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  await work();
  button.disabled = false;
}

function say(button, done) {
  const label = button.title;
  button.replaceChildren(icon(done ? 'check' : 'cross'));
  button.setAttribute('aria-label', done ? 'Copied' : 'Could not copy');
  setTimeout(() => {
    button.replaceChildren(icon('copy'));
    button.setAttribute('aria-label', label);
  }, SAID_MS);
}
