/** A list of options in groups, chosen with the keys of a field that keeps the focus, or with a pointer. */
import { h, icon } from './dom.js';

/** What tells one option from another when the list is made anew. */
const IDENTITY = ['id', 'path', 'goes', 'label'];
const isSame = (one, other) => other !== null && IDENTITY.every((key) => one[key] === other[key]);

/**
 * @param id of the list; its options have ids that begin with it
 * @param field has the focus: it is told which option is active
 * @param onPick gets the option
 * @returns `element`, `show(groups)`, `key(event)` (whether the key was for the list), `pickActive()`, `count()`
 */
export function createOptions({ id, label, field, onPick }) {
  const element = h('div.options', {
    id,
    role: 'listbox',
    'aria-label': label,
    tabindex: '0',
    // The field keeps the focus.
    onmousedown: (event) => event.preventDefault(),
  });
  let entries = [];
  let active = -1;
  /** The option that the keys went to, if they did. */
  let reached = null;
  field.setAttribute('aria-controls', id);
  field.setAttribute('aria-autocomplete', 'list');

  function activate(index) {
    entries[active]?.element.classList.remove('active');
    active = index;
    const entry = entries[active];
    if (!entry) {
      field.removeAttribute('aria-activedescendant');
      return;
    }
    entry.element.classList.add('active');
    entry.element.scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', entry.element.id);
  }

  const step = (by) => {
    if (entries.length === 0) return;
    activate((active + by + entries.length) % entries.length);
    reached = entries[active].option;
  };

  function optionElement(option) {
    const index = option.disabled ? null : entries.length;
    const made = h(
      'div.option',
      {
        role: 'option',
        id: `${id}-${index ?? `off-${element.childElementCount}-${Math.random().toString(36).slice(2)}`}`,
        'aria-selected': String(option.current ?? false),
        'aria-disabled': option.disabled ? 'true' : null,
        title: option.title ?? null,
        onclick: () => !option.disabled && onPick(option),
      },
      h('span.option-label', { dir: 'auto' }, option.label),
      option.detail ? h('span.option-detail', {}, option.detail) : null,
      option.current ? icon('check') : option.goes === undefined ? null : icon('into'),
      option.goes === undefined ? null : h('span.offscreen', {}, 'leads into it'),
    );
    if (index !== null) entries.push({ element: made, option });
    return made;
  }

  return {
    element,
    /**
     * @param groups `[{label?, options: [{label, detail?, current?, disabled?, title?, goes?, …}]}]`
     * @param again more is known of what is shown already: the option that the keys went to stays the active one
     */
    show(groups, again = false) {
      if (!again) reached = null;
      entries = [];
      active = -1;
      element.replaceChildren();
      for (const { label: name, options } of groups) {
        if (options.length === 0) continue;
        const made = options.map(optionElement);
        if (name === undefined) element.append(...made);
        else
          element.append(
            h(
              'div.option-group',
              { role: 'group', 'aria-label': name },
              h('div.option-head', { role: 'presentation' }, name),
              ...made,
            ),
          );
      }
      const stays = entries.findIndex(({ option }) => isSame(option, reached));
      const current = stays >= 0 ? stays : entries.findIndex(({ option }) => option.current);
      activate(current < 0 ? Math.min(0, entries.length - 1) : current);
    },
    key(event) {
      if (event.key === 'ArrowDown') step(1);
      else if (event.key === 'ArrowUp') step(-1);
      else return false;
      event.preventDefault();
      return true;
    },
    pickActive() {
      const entry = entries[active];
      if (entry) onPick(entry.option);
      return Boolean(entry);
    },
    count: () => entries.length,
  };
}
