/** Tool calls: a card with the arguments, what it puts out while it runs, what it changed and how it ended. */
import { createCard } from './cards.js';
import { copyButton } from './copy.js';
import { h, icon, setText } from './dom.js';
import { duration } from './times.js';

/** Longest result that is shown at once, in characters. */
const MOST_SHOWN = 20_000;
/** Lines of a running tool's output that are shown under its closed card. */
const TAIL_LINES = 8;
/** Characters of an error that are shown under a closed card. */
const MOST_OF_ERROR = 300;

const WORDS = {
  denied: 'not allowed',
  failed: 'failed',
  done: 'done',
  asking: 'waits for your answer',
  running: 'running…',
  stopped: 'no result',
};
const ICONS = { denied: 'denied', failed: 'cross', done: 'check', asking: 'question' };

/** A line for the head of a card from the arguments of a call. */
export function previewOf(args) {
  if (args === null || typeof args !== 'object') return args === undefined ? '' : String(args);
  const values = Object.values(args).filter((value) => ['string', 'number', 'boolean'].includes(typeof value));
  return values.join(' · ').slice(0, 120);
}

/**
 * A tool call. `update({name, args, preview, output, result, is_error, denied, diff, duration_s}, running, asking)`, the last
 * for a call that waits for the person.
 */
export function createTool(key, opened) {
  let tool = {};
  const name = h('span.card-name');
  const preview = h('span.card-preview');
  const state = h('span.card-state');
  /** The body's own place for output: it grows without the card being made anew. */
  const output = h('pre.tool-output', { tabindex: '0' });
  const card = createCard('tool', key, opened, [icon('tool'), name, preview, state], (body) => {
    body.replaceChildren(
      ...section('Arguments', tool.args === undefined ? null : JSON.stringify(tool.args, null, 2)),
      ...changes(tool.diff),
      ...(isDone(tool)
        ? section(tool.is_error && !tool.denied ? 'Error' : 'Result', tool.result)
        : outputSoFar(output)),
    );
  });
  const tail = h('pre.tool-tail', { hidden: true, 'aria-hidden': 'true' });
  /** Why a call failed, in one line under its closed card. */
  const error = h('p.tool-error', { hidden: true, 'aria-hidden': 'true', dir: 'auto' });
  const element = h('div.tool-call', {}, card.element, tail, error);

  function grow(text) {
    const follows = output.scrollTop + output.clientHeight >= output.scrollHeight - 8;
    setText(output, text);
    if (follows) output.scrollTop = output.scrollHeight;
    setText(tail, text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n'));
  }

  return {
    element,
    update(next, running, asking) {
      const begins = !tool.output && next.output;
      tool = next;
      setText(name, tool.name);
      setText(preview, tool.preview ?? previewOf(tool.args));
      const done = isDone(tool);
      const status = statusOf(tool, running, asking);
      if (tool.output && !done) grow(tool.output);
      tail.hidden = done || !running || !tool.output;
      error.hidden = status !== 'failed' || !tool.result;
      if (!error.hidden) setText(error, tool.result.trim().split('\n', 1)[0].slice(0, MOST_OF_ERROR));
      if (card.element.dataset.status === status) {
        if (begins) card.changed();
        return;
      }
      card.element.dataset.status = status;
      const time = done && !tool.denied && tool.duration_s !== undefined ? ` · ${duration(tool.duration_s)}` : '';
      state.replaceChildren(...(ICONS[status] ? [icon(ICONS[status])] : []), h('span', {}, WORDS[status] + time));
      card.changed();
    },
  };
}

const isDone = (tool) => tool.result !== undefined && tool.result !== null;

function statusOf(tool, running, asking) {
  if (!isDone(tool)) return running ? (asking ? 'asking' : 'running') : 'stopped';
  // What the agent makes of a no counts for less than the no.
  if (tool.denied) return 'denied';
  return tool.is_error ? 'failed' : 'done';
}

const outputSoFar = (output) =>
  output.textContent === '' ? [] : [h('div.card-section', {}, h('span', {}, 'Output so far')), output];

/** A unified diff, its lines marked by what they are; the signs stay, colour alone says nothing. */
function changes(diff) {
  if (!diff) return [];
  const kinds = { '+': 'ins', '-': 'del' };
  const lines = diff
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      const isHead = line.startsWith('+++') || line.startsWith('---') || line.startsWith('@@');
      return h(isHead ? 'span.diff-head' : (kinds[line[0]] ?? 'span'), {}, `${line}\n`);
    });
  const head = h(
    'div.card-section',
    {},
    h('span', {}, 'Changes'),
    copyButton(() => diff),
  );
  return [head, h('pre.diff', { tabindex: '0' }, ...lines)];
}

function section(title, text) {
  if (text === null || text === undefined || text === '') return [];
  const pre = h('pre', { tabindex: '0' }, text.slice(0, MOST_SHOWN));
  const parts = [
    h(
      'div.card-section',
      {},
      h('span', {}, title),
      copyButton(() => text),
    ),
    pre,
  ];
  if (text.length > MOST_SHOWN) {
    const rest = h('button', { type: 'button' }, `Show all ${text.length.toLocaleString()} characters`);
    rest.addEventListener('click', () => {
      pre.textContent = text;
      rest.remove();
    });
    parts.push(rest);
  }
  return parts;
}
