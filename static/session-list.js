/** The side of the page with the list of conversations: new, search, what is shown, and the list itself. */
import { h, icon, setText } from './dom.js';
import { takeDrops } from './import-files.js';
import { createGrouping, layOut } from './list-layout.js';
import {
  createExpandLine,
  createHeadingLine,
  createHitLine,
  createPendingLine,
  createSessionLine,
} from './session-lines.js';
import { createVirtualList } from './virtual-list.js';

const SEARCH_MS = 150;

/**
 * @param tools where search and the like go
 * @param root the element of the list; it scrolls
 * @param side the element that takes dropped files
 * @param actions those of list-actions.js, `create()`, `more()`, and `lost()`: the line that had the focus was the
 * last
 * @returns `render(state)`, `focus()`, `focusSearch()`, `clearSearch()`
 */
export function createSessionList({ tools, root, side, actions }) {
  let state = null;
  let searchTimer = null;
  const search = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search conversations',
    maxlength: '200',
    oninput: () => {
      clearTimeout(searchTimer);
      searchTimer = setTimeout(() => actions.search(search.value.trim()), SEARCH_MS);
    },
  });
  function clearSearch() {
    if (search.value === '') return;
    clearTimeout(searchTimer);
    search.value = '';
    actions.search('');
  }
  const dot = h('i.dot', { 'aria-hidden': 'true', hidden: true });
  const viewName = h('span.view-name', { dir: 'auto' });
  const viewButton = h(
    'button.view',
    { type: 'button', 'aria-haspopup': 'menu', onclick: () => actions.listMenu({ at: viewButton, from: viewButton }) },
    h('span.offscreen', {}, 'Shown: '),
    dot,
    viewName,
    icon('chevron'),
  );
  tools.append(
    h('button.primary.new', { type: 'button', onclick: () => actions.create() }, icon('plus'), 'New conversation'),
    h('label.search', {}, icon('search'), search),
    viewButton,
  );
  const empty = h('p.list-empty', { hidden: true });
  const found = h('p.offscreen', { role: 'status' });
  root.append(found, empty);
  const lines = createVirtualList({
    scroll: root,
    label: 'Conversations',
    kinds: {
      heading: createHeadingLine,
      pending: createPendingLine,
      hit: createHitLine,
      expand: () => createExpandLine(actions.expand),
      session: () => createSessionLine({ onRename: actions.rename }),
    },
    onNeed: () => actions.more(),
  });
  takeDrops(side, (files) => actions.takeFiles(files));

  /** The conversation that an event is about, with the element of its line. */
  function lineOf(event) {
    const element = event.target.closest('.session');
    const id = element?.dataset.session;
    const session = state.list.sessions.find((one) => one.session_id === id);
    return session ? { session, line: lines.entryOf(id) } : null;
  }

  function openSessionMenu({ session, line }, at) {
    actions.sessionMenu(session, { at, from: line.stop }, line.rename);
  }

  root.addEventListener('click', (event) => {
    const its = event.target.closest('.session-more') ? lineOf(event) : null;
    if (its) openSessionMenu(its, its.line.more);
  });
  root.addEventListener('contextmenu', (event) => {
    const its = event.target.closest('input') ? null : lineOf(event);
    if (!its) return;
    event.preventDefault();
    // The key for it points at the element; a pointer at a place in it.
    const box = its.line.element.getBoundingClientRect();
    const isInside = event.clientY > box.top && event.clientY < box.bottom && event.pointerType !== '';
    openSessionMenu(its, isInside ? { x: event.clientX, y: event.clientY } : its.line.more);
  });
  root.addEventListener('keydown', (event) => {
    if (event.key === 'z' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      actions.undo();
      return;
    }
    const its = event.ctrlKey || event.metaKey || event.altKey ? null : lineOf(event);
    if (!its || its.session.flags.includes('foreign')) return;
    if (event.key === 'F2') its.line.rename();
    else if (event.key === 'Delete') void actions.remove(its.session);
    else return;
    event.preventDefault();
  });
  search.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'ArrowDown') {
      if (lines.focus()) event.preventDefault();
    } else if (event.key === 'Escape' && search.value !== '') {
      event.preventDefault();
      event.stopPropagation();
      clearSearch();
    }
  });

  let shown = {};
  let layout = { lines: [], pending: 0, total: 0 };

  function renderView({ view, projects }) {
    const project = projects.find((one) => one.project_id === view.project);
    dot.hidden = !project;
    dot.style.background = project?.color ?? '';
    setText(viewName, view.archived ? 'Archived' : (project?.name ?? 'All conversations'));
    viewButton.classList.toggle('narrowed', view.archived || project !== undefined);
  }

  function renderWords(list) {
    const isKnown = list.loaded >= list.wanted;
    const isNothing = layout.total === 0;
    empty.hidden = !isKnown || !isNothing || layout.lines.length > 0;
    setText(empty, wordsForNothing(list.view));
    const { q } = list.view;
    setText(found, q === '' || !isKnown || list.hits === null ? '' : countsOf(layout.total, list.hits.length));
  }

  return {
    render(next) {
      state = next;
      const { list, open } = next;
      const minute = Math.floor(Date.now() / 60_000);
      const openId = open?.sessionId ?? null;
      if (shown.list === list && shown.openId === openId && shown.minute === minute) return;
      const isOtherView = shown.list !== undefined && shown.list.view !== list.view;
      shown = { list, openId, minute };
      const now = Date.now() / 1000;
      layout = layOut(list, createGrouping(now));
      renderView(list);
      renderWords(list);
      const projects = new Map(list.projects.map((one) => [one.project_id, one]));
      const context = { openId, now, projects, q: list.view.q, seen: list.seen, total: layout.total };
      if (isOtherView) root.scrollTop = 0;
      if (lines.render(layout, context, openId)) actions.lost();
    },
    focus: () => lines.focus(state?.open?.sessionId),
    focusSearch: () => search.focus(),
    clearSearch,
  };
}

function wordsForNothing({ q, project, archived }) {
  if (q !== '') return 'Nothing matches.';
  if (archived) return 'Nothing is archived.';
  return project === null ? 'No conversations yet.' : 'No conversations in this project yet.';
}

const countsOf = (titles, messages) =>
  `${titles} ${titles === 1 ? 'title' : 'titles'}, ${messages} ${messages === 1 ? 'message' : 'messages'} found`;
