/** The completion of commands while they are typed: a list above the message box that its keys move in. */
import { completions } from './commands.js';
import { h } from './dom.js';
import { createOptions } from './options.js';

/**
 * @param area the message box
 * @param models gives the models for `/model`
 * @param put takes the text to be put in place
 * @returns `element`, `typed()`, `key(event)` (whether the key was for the list), `close()`
 */
export function createCompletion({ area, models, put }) {
  const options = createOptions({
    id: 'command-options',
    label: 'Commands',
    field: area,
    onPick: (option) => pick(option),
  });
  const element = h('div.popup.commands', { hidden: true }, options.element);
  let picked = null;

  function pick(option) {
    picked = option;
    put(option.text);
    if (option.whole) close();
    else typed();
  }

  function close() {
    element.hidden = true;
    options.show([]);
  }

  function typed() {
    const atEnd = area.selectionStart === area.value.length;
    const found = atEnd ? completions(area.value, models()) : [];
    // What is complete already has nothing to be completed to.
    if (found.every((option) => option.whole && option.text === area.value)) return close();
    options.show([{ options: found }]);
    element.hidden = false;
  }

  return {
    element,
    typed,
    close,
    key(event) {
      if (element.hidden || event.isComposing) return false;
      if (options.key(event)) return true;
      if (event.key === 'Escape') {
        close();
        event.preventDefault();
        event.stopPropagation();
        return true;
      }
      if (event.key !== 'Tab' && event.key !== 'Enter') return false;
      if (event.shiftKey) return false;
      const before = area.value.trim();
      picked = null;
      options.pickActive();
      // What is complete now, or was but for a space, is sent by the same Enter.
      if (event.key === 'Enter' && (picked?.whole || picked?.text.trim() === before)) return false;
      event.preventDefault();
      return true;
    },
  };
}
