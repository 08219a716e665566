/** How much of the model's context is used, as a ring, and what the conversation has cost so far behind it. */
import { h, setText } from './dom.js';

const RADIUS = 8;
const ROUND = 2 * Math.PI * RADIUS;
/** From this share on the ring warns: the model will soon be given a summary. */
const MUCH = 0.8;

function svg(name, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * The session's usage with what the running turn has told since.
 * @param usage of the session, or null
 * @param live of the running turn's last message, or null
 */
export function presentUsage(usage, live) {
  if (!live) return usage ?? {};
  const { context_used: used, context_length: length, context_estimated: estimated } = live;
  const context = used === undefined ? {} : { context_used: used, context_estimated: estimated ?? false };
  return { ...usage, ...context, ...(length === undefined ? {} : { context_length: length }) };
}

/** @returns the element, and `render(open)` */
export function createUsage() {
  const circle = { cx: 10, cy: 10, r: RADIUS, fill: 'none', 'stroke-width': 3 };
  const filled = svg('circle', { ...circle, class: 'ring-used', transform: 'rotate(-90 10 10)' });
  const ring = svg(
    'svg',
    { viewBox: '0 0 20 20', class: 'ring', 'aria-hidden': 'true' },
    svg('circle', { ...circle, class: 'ring-all' }),
    filled,
  );
  const share = h('span.usage-share');
  const summary = h('summary', {}, ring, share);
  const list = h('dl.usage-list');
  const element = h('details.usage', { hidden: true }, summary, h('div.usage-card', {}, list));
  // It is a small card over the page: it goes when the person goes elsewhere.
  document.addEventListener('pointerdown', (event) => {
    if (element.open && !element.contains(event.target)) element.open = false;
  });
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !element.open) return;
    event.stopPropagation();
    element.open = false;
    summary.focus();
  });
  let shown = '';

  return {
    element,
    render(open) {
      const live = open?.runs.find((run) => run.end === null)?.usage ?? null;
      const usage = presentUsage(open?.session?.usage ?? null, live);
      const key = JSON.stringify(usage);
      if (key === shown) return;
      shown = key;
      const { context_used: used, context_length: length } = usage;
      const part = used !== undefined && length ? Math.min(1, used / length) : null;
      element.hidden = !usage.input_tokens && !usage.output_tokens && used === undefined;
      ring.classList.toggle('unknown', part === null);
      element.classList.toggle('much', part !== null && part >= MUCH);
      filled.setAttribute('stroke-dasharray', `${(part ?? 0) * ROUND} ${ROUND}`);
      const percent = part === null ? null : `${Math.round(part * 100)} %`;
      setText(share, percent ?? '');
      summary.setAttribute('aria-label', percent ? `Usage: ${percent} of the context is used` : 'Usage');
      summary.title = percent ? `${percent} of the model's context is used` : 'What this conversation has used';
      list.replaceChildren(...linesOf(usage).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
    },
  };
}

function linesOf(usage) {
  const number = (value) => value.toLocaleString();
  const about = usage.context_estimated ? 'about ' : '';
  const context =
    usage.context_used === undefined
      ? null
      : `${about}${number(usage.context_used)}${usage.context_length ? ` of ${number(usage.context_length)}` : ''}`;
  return [
    ['Context', context],
    ['Tokens read', usage.input_tokens === undefined ? null : number(usage.input_tokens)],
    ['of these cached', usage.cached_tokens ? number(usage.cached_tokens) : null],
    ['Tokens written', usage.output_tokens === undefined ? null : number(usage.output_tokens)],
    ['of these reasoning', usage.reasoning_tokens ? number(usage.reasoning_tokens) : null],
    ['Cost', usage.cost_usd === undefined ? null : `$${usage.cost_usd.toFixed(usage.cost_usd < 1 ? 4 : 2)}`],
  ].filter(([, value]) => value !== null);
}
