/** A button that opens a field with a list above the message box: type to search, arrows and Enter to choose. */
import { h, icon, setText } from './dom.js';
import { createOptions } from './options.js';

const noteNothing = (_query, isEmpty) => (isEmpty ? 'Nothing matches.' : '');

/**
 * @param name of the picker, for ids
 * @param symbol icon of its button
 * @param label what is chosen, for those who cannot see the icon
 * @param groups `(query)` gives the groups of options.js
 * @param onPick gets an option; resolves with a sentence when it was not taken, else null. An option with `goes` is not
 * picked: it puts that text into the field
 * @param note `(query, isEmpty)` gives what is told below the options, or nothing
 * @param onOpen called when it opens
 * @returns `button`, `popup`, `open()`, `close()`, `refresh()`, `value(text, title)`
 */
export function createPicker({
  name,
  symbol,
  label,
  placeholder,
  groups,
  onPick,
  note = noteNothing,
  onOpen = () => {},
}) {
  const value = h('span.picker-value', { dir: 'auto' });
  const button = h(
    `button.picker.picker-${name}`,
    {
      type: 'button',
      'aria-haspopup': 'dialog',
      'aria-expanded': 'false',
      onclick: () => (popup.hidden ? open() : close()),
    },
    icon(symbol),
    h('span.offscreen', {}, `${label}: `),
    value,
  );
  const field = h('input.picker-field', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-label': label,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    placeholder,
    oninput: () => refresh(),
    onkeydown: onKey,
  });
  const options = createOptions({
    id: `${name}-options`,
    label,
    field,
    onPick: (option) => (option.goes === undefined ? take(() => onPick(option)) : type(option.goes)),
  });
  const told = h('p.option-none', { role: 'status' });
  const problem = h('p.error', { role: 'alert' });
  const popup = h(
    'div.popup',
    { hidden: true, role: 'dialog', 'aria-label': label, onfocusout: leave },
    field,
    problem,
    options.element,
    told,
  );

  function refresh(again = false) {
    const query = field.value.trim();
    const found = groups(query);
    options.show(found, again);
    const isEmpty = found.every((group) => group.options.length === 0);
    options.element.hidden = isEmpty;
    // Never hidden: what is unhidden with its words is not read out.
    setText(told, note(query, isEmpty));
  }

  function type(text) {
    field.value = text;
    problem.textContent = '';
    refresh();
    field.focus();
    field.setSelectionRange(text.length, text.length);
  }

  function open() {
    popup.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    field.value = '';
    problem.textContent = '';
    onOpen();
    refresh();
    field.focus();
  }

  function close() {
    if (popup.hidden) return;
    const hadFocus = popup.contains(document.activeElement);
    popup.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    if (hadFocus) button.focus();
  }

  function leave({ relatedTarget }) {
    if (relatedTarget && !popup.contains(relatedTarget) && relatedTarget !== button) close();
  }

  async function take(work) {
    problem.textContent = '';
    field.readOnly = true;
    const refused = await work();
    field.readOnly = false;
    if (refused) problem.textContent = refused;
    else close();
  }

  function onKey(event) {
    if (event.isComposing || options.key(event)) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      options.pickActive();
    }
  }

  document.addEventListener('pointerdown', ({ target }) => {
    if (!popup.hidden && !popup.contains(target) && !button.contains(target)) close();
  });

  return {
    button,
    popup,
    open,
    close,
    /** What can be chosen has changed. */
    refresh: () => !popup.hidden && refresh(true),
    value(text, title = text) {
      setText(value, text);
      button.title = `${label}: ${title}`;
    },
  };
}
