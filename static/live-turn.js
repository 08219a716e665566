/** A turn that runs, or has ended and is not stored yet: only what changed of it is touched while words arrive. */
import { createNote, createReasoning, createTodos, endOf } from './cards.js';
import { h, setText } from './dom.js';
import { createGrowingMarkdown } from './growing-markdown.js';
import { createRequestCard } from './requests.js';
import { createTool } from './tool-card.js';

/**
 * @param opened keys of the cards that the person opened
 * @param answer answers an open question
 * @param answers what is being written as an answer, of storage.js: it outlives its card for as long as the question is open
 * @returns the element, and `update(run, requests, isConnected)`
 */
export function createLiveTurn(runId, opened, answer, answers) {
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
  /** Ids of the open questions. */
  let shownRequests = null;
  let shownEnd = null;

  function createPart(part, reasoningIndex) {
    switch (part.type) {
      case 'text':
        return createGrowingText();
      case 'input':
        return createInput(part.text);
      case 'reasoning': {
        const { element, update } = createReasoning(`${runId}/reasoning/${reasoningIndex}`, opened);
        return { element, update: (now, run, isLast) => update(now.text, isLast && run.end === null) };
      }
      default: {
        const { element, update } = createTool(`${runId}/tool/${part.tool_id}`, opened);
        return {
          element,
          update: (now, run, _isLast, asks) => update(run.tools[now.tool_id], run.end === null, asks),
        };
      }
    }
  }

  function updateParts(run, requests) {
    const ids = requests.map((request) => request.id).join();
    const same = run.parts === shownParts && run.tools === shownTools && run.end === shownEnd && ids === shownRequests;
    if (same) return;
    shownParts = run.parts;
    shownTools = run.tools;
    shownRequests = ids;
    const asking = new Set(requests.map((request) => request.params.tool_id));
    let reasoning = 0;
    for (const [at, part] of run.parts.entries()) {
      // A snapshot may cut the same text into other parts.
      if (views[at] && views[at].type !== part.type) for (const view of views.splice(at)) view.element.remove();
      if (!views[at]) {
        views[at] = { type: part.type, ...createPart(part, reasoning) };
        body.append(views[at].element);
      }
      updateView(views[at], part, run, at === run.parts.length - 1, part.type === 'tool' && asking.has(part.tool_id));
      if (part.type === 'reasoning') reasoning += 1;
    }
    for (const view of views.splice(run.parts.length)) view.element.remove();
  }

  function updateView(view, part, run, isLast, asks) {
    const seen = [part, run.tools[part.tool_id], isLast, run.end, asks];
    if (view.seen?.every((one, at) => one === seen[at])) return;
    view.seen = seen;
    view.update(part, run, isLast, asks);
  }

  function updateRequests(requests) {
    const ids = new Set(requests.map((request) => request.id));
    for (const [id, card] of cards) {
      if (ids.has(id)) continue;
      card.element.remove();
      cards.delete(id);
      answers.delete(id);
    }
    for (const request of requests) {
      const known = cards.get(request.id);
      if (known) {
        known.update(request);
        continue;
      }
      const card = createRequestCard(request, answer, answers);
      cards.set(request.id, card);
      questions.append(card.element);
    }
  }

  return {
    node,
    update(run, requests, isConnected) {
      updateParts(run, requests);
      todos.update(run.todos);
      updateRequests(run.end === null ? requests : []);
      working.hidden = run.end !== null;
      working.classList.toggle('unheard', !isConnected);
      setText(status, wordsFor(run, requests, isConnected));
      node.setAttribute('aria-busy', String(run.end === null));
      if (run.end !== shownEnd) {
        shownEnd = run.end;
        const end = endOf(run.end.status, run.end.error);
        note.replaceChildren(...(end ? [createNote(end)] : []));
      }
    },
  };
}

/** What a turn that runs is doing. That this page hears nothing says nothing about the turn. */
function wordsFor(run, requests, isConnected) {
  if (!isConnected)
    return 'Connection interrupted. The turn may go on; what became of it appears here when the page is back.';
  if (requests.length > 0) return 'Waiting for your answer';
  return run.status ?? 'Working…';
}

function createGrowingText() {
  const text = createGrowingMarkdown();
  return { element: text.element, update: (now) => text.update(now.text) };
}

/** What a person said to the turn while it ran. */
const createInput = (text) => ({
  element: h(
    'div.turn.user',
    { role: 'group', 'aria-label': 'You' },
    h('div.bubble', { dir: 'auto' }, h('div.bubble-text', {}, text)),
  ),
  update() {},
});
