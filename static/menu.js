/** A menu of things to do: opened at a button or a place, worked by mouse, finger or keyboard, one at a time. */
import { h, icon } from './dom.js';

/**
 * @param items each null (a line between groups), or `{label, run}` with any of `icon`, `keys` (how it is done
 * without the menu), `isDanger`, `isChecked` (one of several: true or false), `color` of a dot in place of the icon, `href` (a download in
 * place of `run`)
 * @param label what the menu is about
 * @param at an element to open below, or `{x, y}` of a pointer
 * @param from what gets the focus when the menu closes
 */
export function openMenu({ items, label, at, from }) {
  const menu = h('div.menu-box', { role: 'menu', 'aria-label': label }, ...items.map(itemOf));
  const shade = h('div.menu-shade', {}, menu);
  const entries = [...menu.querySelectorAll('[role^="menuitem"]')];
  const focusAt = (at) => entries.at(at % entries.length)?.focus();

  function close() {
    if (!shade.isConnected) return;
    shade.remove();
    window.removeEventListener('resize', close);
    from?.focus({ preventScroll: true });
  }

  function itemOf(item) {
    if (item === null) return h('div.menu-line', { role: 'separator' });
    const { label: name, run, keys, isDanger, isChecked, color, href } = item;
    const mark = color === undefined ? icon(item.icon ?? 'none') : h('i.dot', { 'aria-hidden': 'true' });
    if (color) mark.style.background = color;
    return h(
      `${href ? 'a' : 'button'}.menu-item${isDanger ? '.danger-quiet' : ''}`,
      {
        role: isChecked === undefined ? 'menuitem' : 'menuitemradio',
        'aria-checked': isChecked === undefined ? null : String(isChecked),
        type: href ? null : 'button',
        tabindex: '-1',
        href,
        download: href ? '' : null,
        onclick: () => {
          close();
          run?.();
        },
      },
      mark,
      h('span.menu-label', { dir: 'auto' }, name),
      isChecked ? icon('check') : null,
      keys ? h('kbd', { 'aria-hidden': 'true' }, keys) : null,
    );
  }

  menu.addEventListener('keydown', (event) => {
    const here = entries.indexOf(document.activeElement);
    const to = { ArrowDown: here + 1, ArrowUp: here < 0 ? -1 : here - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) focusAt(to);
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else if (event.key.length === 1 && event.key !== ' ') focusByLetter(event.key.toLowerCase(), here);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function focusByLetter(letter, here) {
    const order = [...entries.slice(here + 1), ...entries.slice(0, here + 1)];
    order.find((entry) => entry.textContent.trim().toLowerCase().startsWith(letter))?.focus();
  }

  // Not before the click: what lies below would get it.
  shade.addEventListener('click', (event) => event.target === shade && close());
  shade.addEventListener('contextmenu', (event) => {
    event.preventDefault();
    if (event.target === shade) close();
  });
  window.addEventListener('resize', close);
  // In the part of the page that it belongs to, and above a dialog that it was opened from.
  (from?.closest('dialog, aside, main') ?? document.body).append(shade);
  place(menu, at);
  focusAt(0);
  return { close };
}

/** Puts a menu where it was asked for, as far as it fits there. */
function place(menu, at) {
  const box = at instanceof Element ? at.getBoundingClientRect() : null;
  const { offsetWidth: width, offsetHeight: height } = menu;
  // A small button stands at the end of something, a wide one at its beginning.
  const x = box ? (box.width < 60 ? box.right - width : box.left) : at.x;
  const below = box ? box.bottom + 4 : at.y;
  const y = box && below + height > window.innerHeight - 8 ? box.top - height - 4 : below;
  const within = (value, most) => Math.max(8, Math.min(value, most - 8));
  menu.style.left = `${within(x, window.innerWidth - width)}px`;
  menu.style.top = `${within(y, window.innerHeight - height)}px`;
}
