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

/** @returns a function that shows a sentence for some seconds */
export function createNotices(root) {
  return (text) => {
    const notice = h('p.notice', {}, text);
    root.append(notice);
    setTimeout(() => notice.remove(), 6000);
  };
}
