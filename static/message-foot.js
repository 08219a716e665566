/**
 * The line under a message: when it was said, and what can be done with it. One stop for the Tab key; the arrow keys go
 * from button to button. What the buttons do is in message-actions.js, by their `data-act`.
 */
import { h, icon } from './dom.js';
import { clockTime, longTime } from './times.js';

const button = (act, symbol, label, isFirst = false) =>
  h(
    'button.foot-button',
    { type: 'button', 'data-act': act, 'aria-label': label, title: label, tabindex: isFirst ? '0' : '-1' },
    icon(symbol),
  );

function timeOf(row, now) {
  const datetime = new Date(row.timestamp * 1000).toISOString();
  return h('time', { datetime, title: longTime(row.timestamp) }, clockTime(row.timestamp, now));
}

const buttons = (...all) => h('div.foot-buttons', { role: 'toolbar', 'aria-label': 'This message' }, ...all);

/** Under a prompt. @param now epoch seconds */
export const promptFoot = (row, now) =>
  h(
    'footer.turn-foot',
    {},
    timeOf(row, now),
    buttons(
      button('copy', 'copy', 'Copy this message', true),
      button('edit', 'pencil', 'Edit and send again'),
      button('fork', 'fork', 'Fork from here'),
    ),
  );

/** Under an answer. */
export const answerFoot = (row, now) =>
  h(
    'footer.turn-foot',
    {},
    buttons(
      button('copy', 'copy', 'Copy this message', true),
      button('retry', 'again', 'Try again'),
      button('fork', 'fork', 'Fork from here'),
      button('rewind', 'rewind', 'Rewind to here'),
    ),
    timeOf(row, now),
    row.model ? h('span', {}, row.model) : null,
    tokensOf(row.usage),
  );

function tokensOf(usage) {
  if (!usage?.output_tokens) return null;
  const title = `${usage.input_tokens.toLocaleString()} tokens read, ${usage.output_tokens.toLocaleString()} written`;
  return h('span', { title }, `${usage.output_tokens.toLocaleString()} tokens`);
}

/** Goes with the arrow keys through the buttons of a line. For a `keydown` of anything around it. */
export function moveInFoot(event) {
  const bar = event.target.closest?.('.foot-buttons');
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!bar || !step) return;
  const all = [...bar.children].filter((one) => one.offsetParent !== null);
  const forward = getComputedStyle(bar).direction === 'rtl' ? -step : step;
  const next = all[(all.indexOf(event.target.closest('button')) + forward + all.length) % all.length];
  if (!next) return;
  event.preventDefault();
  for (const one of bar.children) one.tabIndex = one === next ? 0 : -1;
  next.focus();
}
