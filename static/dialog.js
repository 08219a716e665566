/** Questions before something cannot be undone, and short notices. */
import { h } from './dom.js';

/** Asks; resolves with true when the person agrees. */
export function confirmWith({ title, text, action }) {
  return new Promise((resolve) => {
    const cancel = h('button', { type: 'submit', value: 'no', autofocus: true }, 'Cancel');
    const agree = h('button.danger', { type: 'submit', value: 'yes' }, action);
    const dialog = h(
      'dialog.dialog',
      { 'aria-labelledby': 'dialog-title' },
      h(
        'form',
        { method: 'dialog' },
        h('h2', { id: 'dialog-title' }, title),
        h('p', {}, text),
        h('div.dialog-actions', {}, cancel, agree),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Closes what asks, as if it had been cancelled: nobody may answer now. What is shown this once stays until the person
 * closes it.
 */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog[open]')) {
    if (!dialog.querySelector('.secret-value')) dialog.close();
  }
}

/**
 * Notices that go by themselves; not while somebody points at one or has the focus in it.
 * @returns a function that shows a sentence, and gives back what takes it away. `action` and `run` make a button in it; `ms` is how long it
 * stays; `onGone` is called when it went by itself
 */
export function createNotices(root) {
  return (text, { action, run, ms = 6000, onGone } = {}) => {
    const button = action ? h('button', { type: 'button', onclick: () => close(run) }, action) : null;
    const notice = h('p.notice', {}, h('span', { dir: 'auto' }, text), button);
    let timer = null;
    const start = () => {
      clearTimeout(timer);
      timer = setTimeout(() => close(onGone), ms);
    };
    const isHeld = () => notice.matches(':hover, :focus-within');
    function close(then) {
      clearTimeout(timer);
      notice.remove();
      then?.();
    }
    for (const held of ['pointerenter', 'focusin']) notice.addEventListener(held, () => clearTimeout(timer));
    for (const free of ['pointerleave', 'focusout']) {
      notice.addEventListener(free, () => setTimeout(() => notice.isConnected && !isHeld() && start()));
    }
    root.append(notice);
    start();
    return () => close();
  };
}
