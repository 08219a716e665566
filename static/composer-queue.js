/** The messages that wait for their turn, as chips: each can be taken back, or taken back to be changed. */
import { h, iconButton } from './dom.js';

const BEGUN = 'This message has begun already.';

/**
 * @param actions `cancelled(sessionId, admissionId)`, `offer(sessionId, text, files)`, `notice(text)`
 * @returns `element`, `render(open)`
 */
export function createQueue({ api, actions }) {
  const element = h('ul.queue', { hidden: true, 'aria-label': 'Messages that wait' });
  let shown = null;

  async function cancel(sessionId, admissionId, chip) {
    for (const button of chip.querySelectorAll('button')) button.disabled = true;
    try {
      await api.remove(`api/sessions/${sessionId}/prompts/${admissionId}`);
      actions.cancelled(sessionId, admissionId);
      return null;
    } catch (failure) {
      for (const button of chip.querySelectorAll('button')) button.disabled = false;
      actions.notice(failure.code === 'stale_generation' ? BEGUN : failure.message);
      return failure;
    }
  }

  /** The chip has the beginning of the text only. The text comes into the box before it can be lost anywhere. */
  async function change(sessionId, admissionId, chip) {
    let whole;
    try {
      whole = await wholeOf(sessionId, admissionId);
    } catch (failure) {
      actions.notice(failure.message);
      return;
    }
    if (!whole) {
      actions.notice(BEGUN);
      return;
    }
    const failure = await cancel(sessionId, admissionId, chip);
    // Without an answer it may be cancelled: better twice than not at all.
    if (failure === null || failure.kind === 'network') actions.offer(sessionId, whole.text, whole.files);
  }

  async function wholeOf(sessionId, admissionId) {
    const { admissions } = await api.get(`api/sessions/${sessionId}/prompts?pending=1`);
    const found = admissions.find((one) => one.admission_id === admissionId && one.status === 'queued');
    if (!found?.attachments) return found && { text: found.text, files: [] };
    const { attachments } = await api.get(`api/sessions/${sessionId}/attachments`);
    return { text: found.text, files: attachments.filter(({ id }) => found.attachments.includes(id)) };
  }

  function chipOf({ admission_id: id, text, attachments }, sessionId) {
    const files = attachments ? ` (+${attachments.length} ${attachments.length === 1 ? 'file' : 'files'})` : '';
    const chip = h(
      'li.chip',
      { title: text },
      h('span.chip-word', {}, 'Next'),
      h('span.chip-text', { dir: 'auto' }, text),
      files && h('span.chip-word', {}, files),
      iconButton('pencil', 'Change this message', { onclick: () => change(sessionId, id, chip) }),
      iconButton('close', 'Cancel this message', { onclick: () => cancel(sessionId, id, chip) }),
    );
    return chip;
  }

  return {
    element,
    render(open) {
      const waiting = open?.queue ?? [];
      if (waiting === shown) return;
      shown = waiting;
      element.hidden = waiting.length === 0;
      element.replaceChildren(...waiting.map((one) => chipOf(one, open.sessionId)));
    },
  };
}
