/** Editing a prompt in its place: it is sent again instead of the old one, and what came after that is taken back. */
import { h } from './dom.js';

/**
 * @param text what is to be edited
 * @param hasLater whether more turns came after it
 * @param send sends; resolves with a sentence when it was not accepted, else null. The text stays here until then
 * @param typed told each text
 * @param close told when the editor is to go away; `isSent` says why
 */
export function createPromptEditor({ text, hasLater, send, typed, close }) {
  const problem = h('p.error', { role: 'alert' });
  const area = h('textarea', {
    'aria-label': 'Edit your message',
    dir: 'auto',
    oninput: () => {
      typed(area.value);
      refresh();
    },
    onkeydown: (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') close(false);
      else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) void submit();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  });
  area.value = text;
  const cancel = h('button', { type: 'button', onclick: () => close(false) }, 'Cancel');
  const button = h('button.primary', { type: 'submit' }, 'Send');
  const form = h(
    'form.prompt-editor',
    {
      'aria-label': 'Edit your message',
      onsubmit: (event) => {
        event.preventDefault();
        void submit();
      },
    },
    area,
    problem,
    h(
      'div.prompt-editor-foot',
      {},
      h('p', {}, hasLater ? 'The turns after this one are taken back.' : 'The answer is taken back.'),
      cancel,
      button,
    ),
  );

  function refresh() {
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight + 2, window.innerHeight * 0.5)}px`;
    button.disabled = area.readOnly || area.value.trim() === '';
  }

  async function submit() {
    if (area.readOnly || area.value.trim() === '') return;
    area.readOnly = true;
    problem.textContent = '';
    refresh();
    const refusal = await send(area.value);
    area.readOnly = false;
    refresh();
    if (refusal === null) return close(true);
    problem.textContent = `${refusal} Your text is still here.`;
    area.focus();
  }

  return {
    element: form,
    focus() {
      refresh();
      area.focus();
      area.setSelectionRange(area.value.length, area.value.length);
    },
  };
}
