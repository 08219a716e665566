/** Making elements: text is always text, never markup. */

/**
 * An element.
 * @param tag for example `button.primary.small`
 * @param attributes attributes; functions become listeners (`onclick`), false, null and undefined are left out
 * @param children elements and texts; null and false are left out
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PATHS = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  plus: 'M12 5v14M5 12h14',
  pencil: 'M4 20h4L19 9l-4-4L4 16v4zM13.5 6.5l4 4',
  bin: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  denied: 'M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM6.5 6.5l11 11',
  cross: 'M7 7l10 10M17 7L7 17',
  down: 'M12 5v14M6 13l6 6 6-6',
  tool: 'M14.5 6.5a4 4 0 0 0 5 5L11 20a2.1 2.1 0 0 1-3-3zM6 8l3-3',
  list: 'M4 6.5l1.5 1.5L8 5.5M4 16.5l1.5 1.5L8 15.5M11 7h9M11 17h9',
  thought: 'M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0c-.6.5-1 1.2-1 2h-5c0-.8-.4-1.5-1-2z',
  alert: 'M12 4l9 16H3zM12 10v4.5M12 17.2v.3',
  question: 'M9.2 9a3 3 0 1 1 4.3 2.7c-.9.5-1.5 1.2-1.5 2.3M12 17.2v.3',
  pause: 'M9 6v12M15 6v12',
  none: '',
  more: 'M5.5 12h.01M12 12h.01M18.5 12h.01',
  pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7',
  archive: 'M4 5h16v4H4zM5.5 9v10h13V9M10 13h4',
  folder: 'M3.5 6h6l2 2.5h9V19h-17z',
  fork: 'M7 4v16M7 14c0-4 10-2 10-8M14.5 8L17 5.5 19.5 8',
  download: 'M12 4v11M7 10.5l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9.5l5-5 5 5M5 20h14',
  chevron: 'M7 10l5 5 5-5',
  into: 'M10 7l5 5-5 5',
  file: 'M7 3h7l4 4v14H7zM14 3v4h4',
  again: 'M19 12a7 7 0 1 1-2.2-5.1M17 3v4h-4',
  rewind: 'M9 7H4V2M4.5 7A8.5 8.5 0 1 1 4 14',
  search: 'M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14zM16 16l4.5 4.5',
  clip: 'M19 11.5l-7 7a4.5 4.5 0 0 1-6.4-6.4l7.6-7.5a3 3 0 0 1 4.2 4.2l-7.5 7.5a1.5 1.5 0 0 1-2.1-2.1l6.6-6.6',
  spark: 'M12 4l1.8 6.2L20 12l-6.2 1.8L12 20l-1.8-6.2L4 12l6.2-1.8z',
  gear: 'M5 8h8M17 8h2M5 16h2M11 16h8M15 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM9 14a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  keyboard: 'M3 6.5h18v11H3zM6.5 10h.01M10 10h.01M13.5 10h.01M17 10h.01M8 14h8',
};

/** A line drawing of 24 by 24, for the eye only. */
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('class', `icon icon-${name}`);
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', PATHS[name]);
  svg.append(path);
  return svg;
}

/** A button that shows only an icon; its label is for those who cannot see it, and the tooltip. */
export const iconButton = (name, label, attributes = {}) =>
  h('button.icon-button', { type: 'button', 'aria-label': label, title: label, ...attributes }, icon(name));

/** Sets a text only when it differs, so that nothing is announced or painted for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
