/**
 * The conversation on the screen: stored rows, the turn that runs, and how turns ended. Rows are made once and kept;
 * while words arrive only the running turn is touched. Owns the scrolling.
 */
import { createNote, createReasoning, createTodos, endOf, isMarker } from './cards.js';
import { h, icon, setText } from './dom.js';
import { copyButton, createGrowingMarkdown, renderMarkdown } from './markdown.js';
import { createRequestCard } from './requests.js';
import { displayItems } from './store.js';
import { longTime, shortTime } from './times.js';
import { createTool } from './tool-card.js';

/** Nearer to the end than this, in pixels, the conversation follows what arrives. */
const NEAR_PX = 80;

const GONE = { deleted: 'This conversation was deleted.', missing: 'There is no conversation here.' };

/**
 * @param root where turns go
 * @param scroll the element that scrolls
 * @param actions `older()`, `again(text)`, `answer(requestId, body)`, `create()`, `attached(sessionId, ids)`
 * @param welcome the element to show while there is nothing
 * @returns `render(open)` and `follow()`, which goes to the end
 */
export function createConversation({ root, scroll, actions, welcome }) {
  const older = h('button.older', { type: 'button', hidden: true, onclick: loadOlder }, 'Show earlier messages');
  const turns = h('div.turns');
  const goneText = h('p');
  const gone = h(
    'div.gone',
    { hidden: true },
    goneText,
    h('button', { type: 'button', onclick: () => actions.create() }, 'New conversation'),
  );
  const loading = h('p.loading', { hidden: true }, 'Loading…');
  const jump = h('button.jump', { type: 'button', hidden: true, onclick: () => follow() }, icon('down'), 'Latest');
  root.append(older, gone, loading, turns, welcome);
  scroll.after(h('div.jump-place', {}, jump));

  /** Nodes on the screen by the key of their item. */
  let nodes = new Map();
  let opened = new Set();
  let shown = null;
  let following = true;

  const nearEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_PX;
  const toEnd = () => {
    scroll.scrollTop = scroll.scrollHeight;
  };
  scroll.addEventListener(
    'scroll',
    () => {
      following = nearEnd();
      jump.hidden = following;
    },
    { passive: true },
  );
  // Pictures that arrive and boxes that unfold must not push the end out of sight.
  new ResizeObserver(() => following && toEnd()).observe(turns);
  new ResizeObserver(() => following && toEnd()).observe(scroll);

  function follow() {
    following = true;
    jump.hidden = true;
    toEnd();
  }

  async function loadOlder() {
    older.disabled = true;
    const height = scroll.scrollHeight;
    const top = scroll.scrollTop;
    await actions.older();
    older.disabled = false;
    requestAnimationFrame(() => {
      scroll.scrollTop = top + scroll.scrollHeight - height;
    });
  }

  /** The prompt that a row answers, for sending it again. */
  const again = (open, runId) => {
    const prompt = runId && open.rows.find((row) => row.run_id === runId && row.role === 'user')?.content;
    return prompt ? () => actions.again(prompt) : null;
  };

  function nodeOf(open, item, counts, marked) {
    const known = nodes.get(item.key);
    if (item.kind === 'prompt') return known ?? { node: userTurn(item.text, null), parts: [] };
    if (item.kind === 'row') {
      const hasMarker = marked.has(item.row.run_id);
      const parts = [item.row, ...item.results, hasMarker];
      const first = countReasoning(counts, item.row);
      if (known?.parts?.length === parts.length && known.parts.every((part, at) => part === parts[at])) return known;
      const files = item.row.attachments?.length ? actions.attached(open.sessionId, item.row.attachments) : null;
      return { node: rowNode(item, opened, first, again(open, item.row.run_id), hasMarker, files), parts };
    }
    const turn = known ?? createLiveTurn(item.run.id, opened, actions.answer);
    turn.update(item.run, item.requests, again(open, item.run.id));
    return turn;
  }

  function reconcile(open) {
    const next = new Map();
    const counts = new Map();
    const marked = new Set(open.rows.filter(isMarker).map((row) => row.run_id));
    let place = turns.firstChild;
    for (const item of displayItems(open)) {
      const entry = nodeOf(open, item, counts, marked);
      next.set(item.key, entry);
      if (entry.node === place) place = place.nextSibling;
      else turns.insertBefore(entry.node, place);
    }
    const kept = new Set([...next.values()].map((entry) => entry.node));
    for (const child of [...turns.children]) if (!kept.has(child)) child.remove();
    nodes = next;
  }

  return {
    follow,
    render(open) {
      if (open === shown) return;
      const another = open?.sessionId !== shown?.sessionId;
      shown = open;
      if (another) {
        nodes = new Map();
        opened = new Set();
        turns.replaceChildren();
        following = true;
      }
      const stay = following;
      if (open && open.gone === null) reconcile(open);
      else {
        turns.replaceChildren();
        nodes = new Map();
      }
      older.hidden = !open?.hasOlder || open.gone !== null;
      gone.hidden = !open?.gone;
      setText(goneText, GONE[open?.gone] ?? open?.gone ?? '');
      loading.hidden = !open || open.gone !== null || open.loaded > 0 || nodes.size > 0;
      welcome.hidden = open !== null && (open.gone !== null || open.loaded === 0 || nodes.size > 0);
      if (stay) follow();
    },
  };
}

/** How many pieces of reasoning of the run came before this row. */
function countReasoning(counts, row) {
  const before = counts.get(row.run_id) ?? 0;
  if (row.reasoning) counts.set(row.run_id, before + 1);
  return before;
}

/** @param files links to what came with it; null for nothing */
function userTurn(text, timestamp, files = null) {
  return h(
    'article.turn.user',
    { 'aria-label': 'You' },
    h('div.bubble', { dir: 'auto', title: timestamp === null ? null : longTime(timestamp) }, text, files),
  );
}

function parseArguments(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * @param hasMarker a marker of its run says how it ended
 * @param files links to what came with it; null for nothing
 */
function rowNode({ row, results }, opened, reasoningIndex, again, hasMarker, files) {
  if (row.role === 'user') return withRow(userTurn(row.content, row.timestamp, files), row);
  const turn = h('article.turn.assistant', { 'aria-label': 'Agent' });
  if (row.role === 'tool') {
    const tool = createTool(`${row.run_id}/tool/${row.id}`, opened);
    tool.update({
      name: row.name ?? 'tool',
      result: row.content,
      is_error: row.is_error,
      duration_s: row.duration_s,
      diff: row.diff,
    });
    turn.append(tool.element);
    return withRow(turn, row);
  }
  if (isMarker(row)) {
    const text = row.content.replace(/^Response interrupted:?\s*/, '');
    turn.append(createNote({ kind: 'marker', title: 'Response interrupted', text }, again));
    return withRow(turn, row);
  }
  if (row.reasoning) {
    const reasoning = createReasoning(`${row.run_id}/reasoning/${reasoningIndex}`, opened);
    reasoning.update(row.reasoning, false);
    turn.append(reasoning.element);
  }
  if (row.content) {
    const body = h('div.markdown', { dir: 'auto' });
    body.append(renderMarkdown(row.content));
    turn.append(body);
  }
  for (const [at, call] of (row.tool_calls ?? []).entries()) {
    const result = results[at];
    const tool = createTool(`${row.run_id}/tool/${call.id}`, opened);
    tool.update({
      name: call.function.name,
      args: parseArguments(call.function.arguments),
      result: result?.content,
      is_error: result?.is_error,
      duration_s: result?.duration_s,
      diff: result?.diff,
    });
    turn.append(tool.element);
  }
  const end = endOf(row.status, row.error);
  // One note for one thing: the marker says the same, and why. A failure says more than the marker does.
  if (end && (!hasMarker || end.kind === 'error')) turn.append(createNote(end, hasMarker ? null : again));
  if (row.content && !row.tool_calls?.length) turn.append(footOf(row));
  return withRow(turn, row);
}

function withRow(node, row) {
  node.dataset.row = row.id;
  if (row.status && row.status !== 'complete') node.dataset.status = row.status;
  return node;
}

function footOf(row) {
  const at = h('time', { datetime: new Date(row.timestamp * 1000).toISOString(), title: longTime(row.timestamp) });
  at.textContent = shortTime(row.timestamp, Date.now() / 1000);
  if (at.textContent === 'now' || at.textContent.endsWith('ago')) {
    at.textContent = new Date(row.timestamp * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  }
  return h(
    'footer.turn-foot',
    {},
    at,
    row.model ? h('span', {}, row.model) : null,
    copyButton(() => row.content),
  );
}

/** A turn that runs, or has ended and is not stored yet. */
function createLiveTurn(runId, opened, answer) {
  const body = h('div.live-parts');
  const todos = createTodos();
  const questions = h('div.questions', { 'aria-live': 'polite' });
  const status = h('span');
  const working = h('p.working', {}, h('span.dots', { 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), status);
  const note = h('div');
  const node = h(
    'article.turn.assistant.live',
    { 'aria-label': 'Agent', 'data-run': runId },
    body,
    todos.element,
    questions,
    working,
    note,
  );
  const views = [];
  const cards = new Map();
  let shownParts = null;
  let shownTools = null;
  let shownEnd = null;

  function createPart(part, reasoningIndex) {
    if (part.type === 'text') {
      const text = createGrowingMarkdown();
      text.element.dir = 'auto';
      return { element: text.element, update: (now) => text.update(now.text) };
    }
    if (part.type === 'reasoning') {
      const reasoning = createReasoning(`${runId}/reasoning/${reasoningIndex}`, opened);
      return {
        element: reasoning.element,
        update: (now, run, isLast) => reasoning.update(now.text, isLast && run.end === null),
      };
    }
    const tool = createTool(`${runId}/tool/${part.tool_id}`, opened);
    return { element: tool.element, update: (now, run) => tool.update(run.tools[now.tool_id], run.end === null) };
  }

  function updateParts(run) {
    const same = run.parts === shownParts && run.tools === shownTools && run.end === shownEnd;
    if (same) return;
    shownParts = run.parts;
    shownTools = run.tools;
    let reasoning = 0;
    for (const [at, part] of run.parts.entries()) {
      // A snapshot may cut the same text into other parts.
      if (views[at] && views[at].type !== part.type) for (const view of views.splice(at)) view.element.remove();
      if (!views[at]) {
        views[at] = { type: part.type, ...createPart(part, reasoning) };
        body.append(views[at].element);
      }
      views[at].update(part, run, at === run.parts.length - 1);
      if (part.type === 'reasoning') reasoning += 1;
    }
    for (const view of views.splice(run.parts.length)) view.element.remove();
  }

  function updateRequests(requests) {
    const ids = new Set(requests.map((request) => request.id));
    for (const [id, card] of cards) {
      if (ids.has(id)) continue;
      card.remove();
      cards.delete(id);
    }
    for (const request of requests) {
      if (cards.has(request.id)) continue;
      const card = createRequestCard(request, answer);
      cards.set(request.id, card);
      questions.append(card);
    }
  }

  return {
    node,
    update(run, requests, again) {
      updateParts(run);
      todos.update(run.todos);
      updateRequests(run.end === null ? requests : []);
      working.hidden = run.end !== null;
      setText(status, requests.length ? 'Waiting for your answer' : (run.status ?? 'Working…'));
      node.setAttribute('aria-busy', String(run.end === null));
      if (run.end !== shownEnd) {
        shownEnd = run.end;
        const end = endOf(run.end.status, run.end.error);
        note.replaceChildren(...(end ? [createNote(end, again)] : []));
      }
    },
  };
}
