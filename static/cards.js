/** Parts of a turn that fold: cards and reasoning; the to-do list; and the notes that say how a turn ended. */
import { h, icon, setText } from './dom.js';

/**
 * A card that folds. What was opened stays open when the card is made anew.
 * @param opened keys of the cards that the person opened
 * @param fill makes the body, when it is first seen
 */
export function createCard(kind, key, opened, summary, fill) {
  const body = h('div.card-body');
  const card = h(`details.card.${kind}`, {}, h('summary', {}, ...summary), body);
  let filled = false;
  const show = () => {
    if (!card.open) return;
    filled = true;
    fill(body);
  };
  card.open = opened.has(key);
  show();
  // Whoever opened it. Its `toggle` event comes later: until then an open card would be empty, and one that is made anew closed.
  new MutationObserver(() => {
    if (card.open) opened.add(key);
    else opened.delete(key);
    if (!filled) show();
  }).observe(card, { attributeFilter: ['open'] });
  return {
    element: card,
    /** What it shows has changed. */
    changed() {
      filled = false;
      show();
    },
  };
}

/** The reasoning of a message. `update(text, thinking)`. */
export function createReasoning(key, opened) {
  let text = '';
  const label = h('span.card-name', {}, 'Reasoning');
  const preview = h('span.card-preview');
  const content = h('div.reasoning-text');
  const card = createCard('reasoning', key, opened, [icon('thought'), label, preview], (body) => {
    body.replaceChildren(content);
    content.textContent = text;
  });
  return {
    element: card.element,
    update(next, thinking) {
      setText(label, thinking ? 'Thinking…' : 'Reasoning');
      if (next === text) return;
      text = next;
      setText(preview, text.slice(0, 120));
      if (card.element.open) setText(content, text);
      else card.changed();
    },
  };
}

/** A to-do list of the agent. `update(todos)`. */
export function createTodos() {
  const element = h('ul.todos', { hidden: true, 'aria-label': 'What the agent plans' });
  const words = { completed: 'done', in_progress: 'in progress', pending: 'to do' };
  let shown = null;
  return {
    element,
    update(todos) {
      if (todos === shown) return;
      shown = todos;
      element.hidden = !todos?.length;
      element.replaceChildren(
        ...(todos ?? []).map((todo) =>
          h(
            'li',
            { 'data-status': todo.status },
            h('span.todo-mark', {}, todo.status === 'completed' ? icon('check') : null),
            todo.content,
            h('span.offscreen', {}, ` (${words[todo.status] ?? todo.status})`),
          ),
        ),
      );
    },
  };
}

/** The plan of a turn that is over, as the agent left it. */
export function createPlan(key, opened, todos) {
  const done = todos.filter(({ status }) => status === 'completed').length;
  const label = h('span.card-name', {}, 'Plan');
  const count = h('span.card-preview', {}, `${done} of ${todos.length} done`);
  return createCard('plan', key, opened, [icon('list'), label, count], (body) => {
    const list = createTodos();
    list.update(todos);
    body.replaceChildren(list.element);
  }).element;
}

/** Whether a row is the marker of a turn that died. */
export const isMarker = (row) => row.error?.code === 'interrupted' && row.id.endsWith('.m');

/**
 * How a turn ended, in words; null when it simply ended.
 * @param status of a row, or of `message.complete`
 */
export function endOf(status, error) {
  if (status === 'interrupted') {
    const sentence = error?.message ?? 'It was stopped before it finished. What had been said until then is kept.';
    return sentence.startsWith('Response interrupted')
      ? { kind: 'interrupted', title: 'Response interrupted', text: sentence.replace(/^Response interrupted:?\s*/, '') }
      : { kind: 'interrupted', title: 'Response interrupted', text: sentence };
  }
  if (status === 'partial') {
    return {
      kind: 'partial',
      title: 'Recovered',
      text: 'This is what had been received when the turn ended early.',
    };
  }
  if (status === 'error') {
    return { kind: 'error', title: 'This turn failed', text: error?.message ?? 'The server did not say why.' };
  }
  return null;
}

/**
 * The note under a turn that did not simply end.
 * @param actions what helps: `{act, label}` each, done by message-actions.js; only the last turn shows them
 */
export function createNote({ kind, title, text }, actions = []) {
  const symbol = { interrupted: 'pause', partial: 'check', error: 'alert', marker: 'alert' }[kind];
  return h(
    `div.note.note-${kind}`,
    {},
    icon(symbol),
    h('p', {}, h('strong', {}, `${title}${text ? ': ' : ''}`), text),
    actions.length === 0
      ? null
      : h(
          'div.note-actions',
          {},
          ...actions.map(({ act, label }) => h('button', { type: 'button', 'data-act': act }, label)),
        ),
  );
}
