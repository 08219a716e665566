/**
 * A list of which only the lines in sight are in the document. Lines are equally high (`--line` in the style sheet,
 * which may differ by device and density), so each has its place by its number. Elements of lines that scroll away are used
 * again for those that come. One line is the list's tab stop; the arrows move it. Its element stays in the document wherever
 * one scrolls, so the focus, and what is typed there, is never lost.
 */
import { h } from './dom.js';
import { inSight, lineAfter } from './list-layout.js';

/** Lines that are drawn above and below the window: what a quick turn of a wheel brings before the next frame. */
const AROUND = 8;
/** More are asked for when so few loaded ones are left below: who goes on steadily never sees an empty line. */
const AHEAD = 60;

/**
 * @param scroll the element that scrolls
 * @param label what the list is called
 * @param kinds by the kind of a line a function that makes its element:
 * `{element, stop, update(line, context)}`, where `stop` is what takes the focus (null for none). `kinds.pending` stands for lines that
 * are not loaded yet
 * @param onNeed called when lines that are not loaded yet are in sight, or soon will be
 */
export function createVirtualList({ scroll, label, kinds, onNeed }) {
  const probe = h('div.line-probe', { 'aria-hidden': 'true' });
  const list = h('ul.lines', { 'aria-label': label });
  scroll.append(probe, list);

  let lines = [];
  let places = new Map();
  let pending = 0;
  let context = {};
  let lineHeight = 40;
  /** The key of the tab stop, and its last number: where to go when it is gone. */
  let active = null;
  let activeAt = 0;
  /** The end was asked for, and the lines before it are on their way. */
  let isGoingToEnd = false;
  let frame = 0;
  /** Elements in the document by the key of their line. */
  let shown = new Map();
  /** Elements that wait to be used again, by kind. */
  const spare = new Map();

  const count = () => lines.length + pending;
  const canStop = (line) => line !== null && line !== undefined && line.kind !== 'heading' && line.kind !== 'pending';

  /** The numbers of the lines to draw, in order. */
  function numbers() {
    const window = { top: scroll.scrollTop - list.offsetTop, height: scroll.clientHeight };
    const { first, end } = inSight({ count: count(), lineHeight, around: AROUND, ...window });
    const drawn = [];
    for (let at = first; at < end; at += 1) drawn.push(at);
    const stop = places.get(active);
    if (stop !== undefined && stop < first) drawn.unshift(stop);
    else if (stop !== undefined && stop >= end) drawn.push(stop);
    if (pending > 0 && end + AHEAD > lines.length) onNeed();
    return drawn;
  }

  const lineAt = (at) => (at < lines.length ? lines[at] : { kind: 'pending', key: `pending ${at}` });

  function take(kind) {
    const entry = spare.get(kind)?.pop();
    return entry ?? { kind, ...kinds[kind]() };
  }

  function giveBack(entry) {
    entry.element.remove();
    if (!spare.has(entry.kind)) spare.set(entry.kind, []);
    spare.get(entry.kind).push(entry);
  }

  function draw() {
    const needed = new Map();
    for (const at of numbers()) {
      const line = lineAt(at);
      if (line !== null) needed.set(line.key, { line, at });
    }
    const before = shown;
    shown = new Map();
    for (const [key, entry] of before) {
      if (needed.get(key)?.line.kind === entry.kind) shown.set(key, entry);
      else giveBack(entry);
    }
    let place = list.firstChild;
    const focused = document.activeElement?.closest('li') ?? null;
    for (const [key, { line, at }] of needed) {
      const entry = shown.get(key) ?? take(line.kind);
      shown.set(key, entry);
      put(entry, line, at);
      // What has the focus would lose it by moving: others make way.
      while (entry.element === focused && place !== null && place !== focused) {
        const next = place.nextSibling;
        place.remove();
        place = next;
      }
      if (entry.element === place) place = place.nextSibling;
      else list.insertBefore(entry.element, place);
    }
  }

  function put(entry, line, at) {
    if (entry.at !== at || entry.height !== lineHeight) {
      entry.at = at;
      entry.height = lineHeight;
      entry.element.style.transform = `translateY(${at * lineHeight}px)`;
    }
    entry.update(line, context, line.key === active);
  }

  function drawSoon() {
    if (frame !== 0) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }

  function resize() {
    const height = `${count() * lineHeight}px`;
    if (list.style.height !== height) list.style.height = height;
  }

  scroll.addEventListener('scroll', drawSoon, { passive: true });
  for (const moved of ['wheel', 'pointerdown']) {
    const stay = () => {
      isGoingToEnd = false;
    };
    scroll.addEventListener(moved, stay, { passive: true });
  }
  new ResizeObserver(() => {
    lineHeight = probe.offsetHeight || lineHeight;
    resize();
    drawSoon();
  }).observe(probe);
  new ResizeObserver(drawSoon).observe(scroll);

  function reveal(at) {
    const top = list.offsetTop + at * lineHeight;
    // The heading above the first of a group comes into sight with it.
    const above = lines[at - 1]?.kind === 'heading' ? lineHeight : 0;
    if (top - above < scroll.scrollTop) scroll.scrollTop = top - above;
    const bottom = top + lineHeight - scroll.clientHeight;
    if (bottom > scroll.scrollTop) scroll.scrollTop = bottom;
  }

  /** Makes a line the tab stop, brings it into sight and gives it the focus. */
  function focusLine(at) {
    active = lines[at].key;
    activeAt = at;
    reveal(at);
    draw();
    shown.get(active).stop.focus({ preventScroll: true });
  }

  list.addEventListener('focusin', (event) => {
    const entry = [...shown].find(([, { element }]) => element.contains(event.target));
    if (!entry || entry[0] === active) return;
    active = entry[0];
    activeAt = places.get(active);
    draw();
  });

  list.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const from = places.get(active);
    if (from === undefined || event.target !== shown.get(active)?.stop) return;
    isGoingToEnd = event.key === 'End' && pending > 0;
    if (isGoingToEnd) {
      event.preventDefault();
      scroll.scrollTop = scroll.scrollHeight;
      return;
    }
    const page = Math.max(1, Math.floor(scroll.clientHeight / lineHeight) - 1);
    const to = lineAfter(lines, from, event.key, page);
    if (to === null) return;
    event.preventDefault();
    focusLine(to);
  });

  return {
    element: list,
    /**
     * Shows other lines.
     * @param next lines, and how many more are `pending`
     * @param about given to each `update`
     * @param preferred key of the line that is the tab stop as long as nobody has moved it
     * @returns whether the focus was here and no line is left to have it
     */
    render(next, about, preferred) {
      const hadFocus = list.contains(document.activeElement);
      lines = next.lines;
      pending = next.pending;
      context = about;
      places = new Map();
      for (let at = 0; at < lines.length; at += 1) if (lines[at] !== null) places.set(lines[at].key, at);
      if (!places.has(active) || (!hadFocus && places.has(preferred))) {
        const near = hadFocus ? nearest(Math.min(activeAt, lines.length - 1)) : lines.findIndex(canStop);
        active = places.has(preferred) && !hadFocus ? preferred : (lines[near]?.key ?? null);
      }
      activeAt = places.get(active) ?? 0;
      resize();
      if (isGoingToEnd) scroll.scrollTop = scroll.scrollHeight;
      draw();
      if (isGoingToEnd && pending === 0) {
        isGoingToEnd = false;
        if (hadFocus) focusLine(lines.findLastIndex(canStop));
      }
      if (hadFocus && !list.contains(document.activeElement)) shown.get(active)?.stop.focus({ preventScroll: true });
      return hadFocus && active === null;
    },
    /** Gives the focus to a line by its key, or to the first. @returns whether there is one */
    focus(key = null) {
      const at = places.get(key) ?? lines.findIndex(canStop);
      if (at >= 0) focusLine(at);
      return at >= 0;
    },
    toTop() {
      scroll.scrollTop = 0;
    },
    /** What was made for a line in the document. */
    entryOf: (key) => shown.get(key),
  };

  function nearest(at) {
    for (let away = 0; away <= lines.length; away += 1) {
      if (canStop(lines[at + away])) return at + away;
      if (canStop(lines[at - away])) return at - away;
    }
    return -1;
  }
}
