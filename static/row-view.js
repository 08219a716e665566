/** A stored row as an element: a prompt, an answer with its reasoning and tools, or the note of a turn that died. */
import { createNote, createPlan, createReasoning, endOf, isMarker } from './cards.js';
import { h } from './dom.js';
import { renderMarkdown } from './markdown.js';
import { answerFoot, promptFoot } from './message-foot.js';
import { longTime } from './times.js';
import { createTool } from './tool-card.js';

/** Characters of a prompt that are shown at once. */
const MOST_OF_PROMPT = 6_000;

/**
 * What a person said.
 * @param timestamp epoch seconds; null while it is not stored
 * @param files an element with what came with it; null for nothing
 */
export function promptView(text, timestamp, files, foot = null) {
  const title = timestamp === null ? null : longTime(timestamp);
  const words = h('div.bubble-text', {}, text.slice(0, MOST_OF_PROMPT));
  const bubble = h('div.bubble', { dir: 'auto', title }, words);
  if (text.length > MOST_OF_PROMPT) {
    const rest = h('button', { type: 'button' }, `Show all ${text.length.toLocaleString()} characters`);
    rest.addEventListener('click', () => {
      words.textContent = text;
      rest.remove();
    });
    bubble.append(rest);
  }
  if (files) bubble.append(files);
  return h('article.turn.user', { 'aria-label': 'You' }, bubble, foot);
}

function parseArguments(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** How many pieces of reasoning of the run came before this row: they are what a folded card is known by. */
export function countReasoning(counts, row) {
  const before = counts.get(row.run_id) ?? 0;
  if (row.reasoning) counts.set(row.run_id, before + 1);
  return before;
}

/**
 * @param item of `displayItems`, of kind `row`
 * @param context `opened` (keys of opened cards), `reasoningIndex`, `hasMarker` (a marker of its run says how it ended),
 *   `prompt` (the row that it answers, if it is here), `files` (an element, or null), `now` (epoch seconds)
 */
export function rowView(item, context) {
  const { row } = item;
  const node = viewOf(item, context);
  node.dataset.row = row.id;
  if (row.run_id) node.dataset.run = row.run_id;
  if (row.status && row.status !== 'complete') node.dataset.status = row.status;
  return node;
}

function viewOf({ row, results, plan }, { opened, reasoningIndex, hasMarker, prompt, files, now }) {
  if (row.role === 'user') return promptView(row.content, row.timestamp, files, promptFoot(row, now));
  const turn = h('article.turn.assistant', { 'aria-label': 'Agent' });
  if (row.role === 'tool') {
    turn.append(toolView(`${row.run_id}/tool/${row.id}`, opened, row.name ?? 'tool', undefined, row));
    return turn;
  }
  if (isMarker(row)) {
    const text = row.content.replace(/^Response interrupted:?\s*/, '');
    turn.append(createNote({ kind: 'marker', title: 'Response interrupted', text }, helpFor(row, prompt)));
    return turn;
  }
  if (row.reasoning) {
    const reasoning = createReasoning(`${row.run_id}/reasoning/${reasoningIndex}`, opened);
    reasoning.update(row.reasoning, false);
    turn.append(reasoning.element);
  }
  if (row.content) turn.append(h('div.markdown', { dir: 'auto' }, renderMarkdown(row.content)));
  for (const [at, call] of (row.tool_calls ?? []).entries()) {
    const args = parseArguments(call.function.arguments);
    turn.append(toolView(`${row.run_id}/tool/${call.id}`, opened, call.function.name, args, results[at]));
  }
  if (plan) turn.append(createPlan(`${row.run_id}/plan`, opened, plan));
  const end = endOf(row.status, row.error);
  // One note for one thing: the marker says the same, and why. A failure says more than the marker does.
  if (end && (!hasMarker || end.kind === 'error')) turn.append(createNote(end, hasMarker ? [] : helpFor(row, prompt)));
  if (row.content && !row.tool_calls?.length) turn.append(answerFoot(row, now));
  return turn;
}

/** @param result the tool row, or null while there is none */
function toolView(key, opened, name, args, result) {
  const tool = createTool(key, opened);
  tool.update({
    name,
    args,
    result: result?.content,
    is_error: result?.is_error,
    denied: result?.denied,
    duration_s: result?.duration_s,
    diff: result?.diff,
  });
  if (result) tool.element.dataset.row = result.id;
  return tool.element;
}

/** What helps after a turn that did not simply end. */
function helpFor(row, prompt) {
  const edit = prompt ? [{ act: 'edit-prompt', label: 'Edit and send again' }] : [];
  if (row.error?.code === 'context_too_long') {
    return [{ act: 'compact', label: 'Summarise what is older and try again' }, ...edit];
  }
  return [{ act: 'retry', label: 'Try again' }, ...edit];
}
