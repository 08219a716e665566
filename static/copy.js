/** Copying: a text to the clipboard, and the button for it. */
import { h, icon } from './dom.js';

/** How long a button says what it did, in milliseconds. */
const SAID_MS = 1600;

/** A button that copies a text and says so. @param text gives the text when it is wanted */
export function copyButton(text, label = 'Copy') {
  const button = h('button.copy', { type: 'button' }, icon('copy'), h('span', {}, label));
  button.addEventListener('click', async () => {
    const done = await copy(text());
    button.lastChild.textContent = done ? 'Copied' : 'Could not copy';
    setTimeout(() => {
      button.lastChild.textContent = label;
    }, SAID_MS);
  });
  return button;
}

/** Copies a text. Resolves with whether it worked. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard on plain HTTP: the old way still works there.
    const { activeElement } = document;
    const area = h('textarea.offscreen', { readonly: true, 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    activeElement?.focus?.();
    return done;
  }
}
