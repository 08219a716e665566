/** The lines of the list of conversations: a group's name, a conversation, a message that was found, and others. */
import { h, iconButton, setText } from './dom.js';
import { markWords } from './list-layout.js';
import { activityOf } from './list-store.js';
import { plainWords } from './snippet.js';
import { longTime, shortTime } from './times.js';
import { isUnread } from './unread.js';

const BADGES = { running: 'running', waiting: 'needs you', queued: 'queued', unknown: 'unclear' };

/** What a conversation without a title is called. */
export const titleOf = (session) => session?.title || 'New conversation';

/** The name of a group. */
export function createHeadingLine() {
  const name = h('h2');
  return { element: h('li.line.group', {}, name), stop: null, update: ({ title }) => setText(name, title) };
}

/** In place of a conversation that is not loaded yet. */
export const createPendingLine = () => ({
  element: h('li.line.pending', { 'aria-hidden': 'true' }, h('span')),
  stop: null,
  update() {},
});

/** @param onToggle shows all titles that match, or some of them and the messages */
export function createExpandLine(onToggle) {
  const button = h('button.expand', { type: 'button', onclick: onToggle });
  return {
    element: h('li.line', {}, button),
    stop: button,
    update({ total, isCut }, _context, isStop) {
      setText(button, isCut ? `Show all ${total} titles` : 'Show fewer titles, and messages');
      button.tabIndex = isStop ? 0 : -1;
    },
  };
}

/** A message that was found: leads to it. */
export function createHitLine() {
  const title = h('span.session-title', { dir: 'auto' });
  const time = h('time');
  const snippet = h('span.hit-snippet', { dir: 'auto' });
  const link = h('a.hit', {}, h('span.hit-head', {}, title, time), snippet);
  let shown = null;
  let words = null;
  return {
    element: h('li.line.two', {}, link),
    stop: link,
    update({ hit }, { now, q }, isStop) {
      link.tabIndex = isStop ? 0 : -1;
      if (hit === shown && q === words) return;
      shown = hit;
      words = q;
      link.href = `#/s/${hit.session_id}/${encodeURIComponent(hit.message_id)}`;
      setText(title, titleOf(hit));
      setText(time, shortTime(hit.timestamp, now));
      // What a person wrote is shown as it stands in the conversation too.
      const text = hit.role === 'user' ? hit.snippet : plainWords(hit.snippet);
      const pieces = markWords(text, q).map(({ text, isMarked }) => (isMarked ? h('mark', {}, text) : text));
      snippet.replaceChildren(`${hit.role === 'user' ? 'You' : 'Agent'}: `, ...pieces);
    },
  };
}

/**
 * A conversation: opens, says how it stands, is renamed in its place.
 * @param onRename gets the id and the new title, null for none
 */
export function createSessionLine({ onRename }) {
  const dot = h('i.dot', { 'aria-hidden': 'true', hidden: true });
  const title = h('span.session-title', { dir: 'auto' });
  const project = h('span.offscreen');
  const unread = h('span.unread', { hidden: true }, h('span.offscreen', {}, 'unread'));
  const badge = h('span.badge', { hidden: true });
  const time = h('time');
  const link = h('a.session-link', {}, dot, title, project, h('span.session-meta', {}, unread, badge, time));
  const more = iconButton('more', 'What to do with this conversation', { 'aria-haspopup': 'menu' });
  more.classList.add('session-more');
  const element = h('li.line.session', {}, link, more);
  let session = null;
  let shown = {};
  /** Ends a rename that goes on; the title is kept as typed, or as it was. */
  let endRename = (_save) => {};
  // A long title is cut, and the whole time is rarely wanted: both are made when somebody points at them.
  link.addEventListener('pointerenter', () => {
    link.title = `${titleOf(session)}\n${longTime(activityOf(session))}`;
  });

  function update(line, context, isStop) {
    if (shown.line === line && shown.context === context && shown.isStop === isStop) return;
    shown = { line, context, isStop };
    link.tabIndex = isStop ? 0 : -1;
    more.tabIndex = isStop ? 0 : -1;
    session = line.session;
    const id = session.session_id;
    if (element.dataset.session !== id) {
      endRename(false);
      element.dataset.session = id;
      link.href = `#/s/${id}`;
      link.removeAttribute('title');
    }
    element.setAttribute('aria-posinset', line.place);
    element.setAttribute('aria-setsize', context.total);
    setText(title, titleOf(session));
    element.classList.toggle('untitled', !session.title);
    if (context.openId === id) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    showProject(context.projects.get(session.project_id));
    const word = BADGES[session.status];
    badge.hidden = word === undefined;
    time.hidden = word !== undefined;
    badge.dataset.status = session.status;
    setText(badge, word ?? '');
    const isNew = context.openId !== id && isUnread(context.seen, session);
    unread.hidden = !isNew;
    element.classList.toggle('is-unread', isNew);
    setText(time, shortTime(activityOf(session), context.now));
  }

  function showProject(its) {
    dot.hidden = its === undefined;
    dot.style.background = its?.color ?? '';
    setText(project, its ? `, project ${its.name}` : '');
  }

  function rename() {
    if (element.classList.contains('renaming')) return;
    const { session_id: id, title: old } = session;
    const input = h('input.rename', { value: old ?? '', maxlength: '500', 'aria-label': 'Title', dir: 'auto' });
    endRename = (save) => {
      endRename = () => {};
      const typed = input.value.trim();
      element.classList.remove('renaming');
      input.remove();
      if (save && typed !== (old ?? '')) void onRename(id, typed === '' ? null : typed);
    };
    input.addEventListener('keydown', (event) => {
      event.stopPropagation();
      if (event.isComposing || (event.key !== 'Enter' && event.key !== 'Escape')) return;
      event.preventDefault();
      endRename(event.key === 'Enter');
      link.focus({ preventScroll: true });
    });
    input.addEventListener('blur', () => endRename(true));
    element.classList.add('renaming');
    element.prepend(input);
    input.focus({ preventScroll: true });
    input.select();
  }

  return { element, stop: link, update, rename, more };
}
