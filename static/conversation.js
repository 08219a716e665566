/**
 * The conversation on the screen: stored rows, the turn that runs, and how turns ended. Rows are made once and kept;
 * while words arrive only the running turn is touched. What is far from the screen costs no layout (conversation.css),
 * and of a long conversation only a piece is here (past-store.js).
 */
import { isMarker } from './cards.js';
import { displayItems } from './display-items.js';
import { h, icon, setText } from './dom.js';
import { createLiveTurn } from './live-turn.js';
import { listenForActions } from './message-actions.js';
import { shownRows } from './past-store.js';
import { countReasoning, promptView, rowView } from './row-view.js';
import { createScroller } from './scroller.js';
import { createTexts } from './storage.js';

const GONE = { deleted: 'This conversation was deleted.', missing: 'There is no conversation here.' };

/** The parts of an open conversation that decide which rows there are. */
const shapeOf = (open) => [open.rows, open.past, open.gone, open.runs.map((run) => run.id).join()];

/**
 * @param root where turns go
 * @param scroll the element that scrolls
 * @param actions `older() newer() around(id) latest() trim() reload()`, `answer(requestId, body)`, `create()`,
 *   `attached(sessionId, ids)`, and those of message-actions.js
 * @param welcome the element to show while there is nothing
 * @returns `render(open, isConnected)`, `follow()`, which goes to the end, and `showMessage(id)`, which goes to a message
 */
export function createConversation({ root, scroll, actions, welcome }) {
  const older = h('button.older', { type: 'button', hidden: true, onclick: () => load('start') }, '');
  const newer = h('button.older', { type: 'button', hidden: true, onclick: () => load('end') }, '');
  const turns = h('div.turns');
  const goneText = h('p');
  const gone = h(
    'div.gone',
    { hidden: true },
    goneText,
    h('button', { type: 'button', onclick: () => actions.create() }, 'New conversation'),
  );
  const loading = h('p.loading', { hidden: true }, 'Loading…');
  const troubleText = h('p');
  const trouble = h(
    'div.gone.trouble',
    { hidden: true, role: 'alert' },
    troubleText,
    h('button', { type: 'button', onclick: () => actions.reload() }, 'Try again'),
  );
  const jump = h('button.jump', { type: 'button', hidden: true, onclick: latest }, icon('down'), 'Latest');
  root.append(older, gone, loading, trouble, turns, newer, welcome);
  scroll.after(h('div.jump-place', {}, jump));

  /** Nodes on the screen by the key of their item. */
  let nodes = new Map();
  let opened = new Set();
  const answers = createTexts('answer');
  let shown = null;
  let shownConnected = true;
  /** The message that is to be shown as soon as it is here: `{id, sessionId, asked}`. */
  let marking = null;
  /** What is being loaded, and what could not be: `start` or `end`. */
  const busy = new Set();
  const failed = new Set();

  const scroller = createScroller({
    scroll,
    content: turns,
    onNear: (side) => !failed.has(side) && load(side),
    onFollow: (following) => {
      jump.hidden = following || !shown || shown.gone !== null;
    },
  });
  listenForActions({ turns, open: () => shown, actions });

  function latest() {
    if (shown?.past) actions.latest();
    scroller.setAway(false);
    scroller.follow();
  }

  /** Loads what is before or behind the rows that are here. */
  async function load(side) {
    if (!shown || busy.has(side) || shown.gone !== null) return;
    const { hasOlder, hasNewer } = shownRows(shown);
    if (!(side === 'start' ? hasOlder : hasNewer)) return;
    busy.add(side);
    failed.delete(side);
    renderEdges();
    const done = await (side === 'start' ? actions.older() : actions.newer());
    busy.delete(side);
    if (!done) failed.add(side);
    renderEdges();
    // Short messages may not have filled the screen.
    if (done) requestAnimationFrame(() => requestAnimationFrame(scroller.look));
  }

  function renderEdges() {
    const { hasOlder, hasNewer } = shown ? shownRows(shown) : { hasOlder: false, hasNewer: false };
    const words = (side, name) =>
      failed.has(side)
        ? `${name} messages could not be loaded. Try again`
        : busy.has(side)
          ? 'Loading…'
          : `Show ${name.toLowerCase()} messages`;
    older.hidden = !hasOlder || shown.gone !== null;
    newer.hidden = !hasNewer || shown.gone !== null;
    setText(older, words('start', 'Earlier'));
    setText(newer, words('end', 'Later'));
  }

  function nodeOf(open, item, context) {
    const known = nodes.get(item.key);
    if (item.kind === 'live') {
      const turn = known?.update ? known : createLiveTurn(item.run.id, opened, actions.answer, answers);
      turn.update(item.run, item.requests, context.isConnected);
      return turn;
    }
    if (item.kind === 'prompt') {
      if (known) return known;
      const files = item.attachments.length ? actions.attached(open.sessionId, item.attachments) : null;
      return { node: promptView(item.text, null, files), parts: [] };
    }
    const { row, results, plan } = item;
    const hasMarker = context.marked.has(row.run_id);
    const reasoningIndex = countReasoning(context.reasoning, row);
    const parts = [row, ...results, hasMarker, plan];
    if (known?.parts?.length === parts.length && known.parts.every((part, at) => part === parts[at])) return known;
    const files = row.attachments?.length ? actions.attached(open.sessionId, row.attachments) : null;
    const prompt = context.prompts.get(row.run_id);
    const view = { opened, reasoningIndex, hasMarker, prompt, files, now: context.now };
    return { node: rowView(item, view), parts };
  }

  function contextOf(open, isConnected) {
    const { rows } = shownRows(open);
    const prompts = new Map();
    for (const row of rows) if (row.role === 'user' && !prompts.has(row.run_id)) prompts.set(row.run_id, row);
    const marked = new Set(rows.filter(isMarker).map((row) => row.run_id));
    return { prompts, marked, reasoning: new Map(), isConnected, now: Date.now() / 1000 };
  }

  function reconcile(open, isConnected) {
    const next = new Map();
    const context = contextOf(open, isConnected);
    let place = turns.firstChild;
    for (const item of displayItems(open)) {
      const entry = nodeOf(open, item, context);
      next.set(item.key, entry);
      if (entry.node === place) place = place.nextSibling;
      else turns.insertBefore(entry.node, place);
    }
    const kept = new Set([...next.values()].map((entry) => entry.node));
    for (const child of [...turns.children]) if (!kept.has(child)) child.remove();
    nodes = next;
  }

  /** Only what runs has changed. */
  function updateLive(open, isConnected) {
    for (const item of displayItems({ ...open, rows: [] })) {
      if (item.kind === 'live') nodes.get(item.key)?.update(item.run, item.requests, isConnected);
    }
    if (scroller.isFollowing()) scroller.follow();
  }

  function clear() {
    turns.replaceChildren();
    nodes = new Map();
  }

  function renderAround(open) {
    renderEdges();
    gone.hidden = !open?.gone;
    setText(goneText, GONE[open?.gone] ?? open?.gone ?? '');
    const isEmpty = nodes.size === 0;
    const hasTrouble = Boolean(open?.trouble) && isEmpty && open.gone === null;
    trouble.hidden = !hasTrouble;
    setText(troubleText, hasTrouble ? `The messages could not be loaded: ${open.trouble}` : '');
    loading.hidden = !open || open.gone !== null || open.loaded > 0 || !isEmpty || hasTrouble;
    welcome.hidden = open !== null && (open.gone !== null || open.loaded === 0 || !isEmpty);
    turns.classList.toggle('past', Boolean(open?.past));
    turns.classList.toggle('read-only', open?.session?.flags?.includes('foreign') ?? false);
    jump.hidden = scroller.isFollowing() || !open || open.gone !== null;
  }

  /** Shows the message that was asked for, and asks for its rows when they are not here. */
  function showMarked() {
    if (marking === null || !shown || shown.loaded === 0) return;
    const node = turns.querySelector(`[data-row="${CSS.escape(marking.id)}"]`);
    if (!node && !marking.asked) {
      marking.asked = true;
      const isAtEnd = shown.rows.some((row) => row.id === marking.id);
      if (shown.past && isAtEnd) actions.latest();
      else void actions.around(marking.id);
    }
    if (!node) return;
    marking = null;
    for (const one of turns.querySelectorAll('.marked')) one.classList.remove('marked');
    node.classList.add('marked');
    const card = node.matches('.tool-call') ? node.querySelector('details') : null;
    if (card) card.open = true;
    scroller.hold();
    node.tabIndex = -1;
    node.focus({ preventScroll: true });
    const center = () => node.isConnected && node.scrollIntoView({ block: 'center' });
    center();
    // Rows that come into sight only now may have another height than was thought.
    requestAnimationFrame(() => requestAnimationFrame(center));
  }

  return {
    follow: latest,
    showMessage(id) {
      marking = { id, asked: false };
      showMarked();
    },
    render(open, isConnected) {
      if (open === shown && isConnected === shownConnected) return;
      const another = open?.sessionId !== shown?.sessionId;
      const before = shown;
      shown = open;
      shownConnected = isConnected;
      if (another) {
        clear();
        opened = new Set();
        if (marking?.asked) marking = null;
        busy.clear();
        failed.clear();
        scroller.begin();
      }
      scroller.setAway(Boolean(open?.past));
      const same = !another && before && open && shapeOf(open).every((part, at) => part === shapeOf(before)[at]);
      if (!open || open.gone !== null) clear();
      else if (same) updateLive(open, isConnected);
      else scroller.keep(() => reconcile(open, isConnected));
      renderAround(open);
      showMarked();
      if (scroller.isFollowing() && document.getSelection().isCollapsed) actions.trim();
    },
  };
}
