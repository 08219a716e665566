/**
 * Markdown that grows while it is read. Blocks that are complete are rendered once; only the last one is rendered again,
 * and the longer that takes the less often, so that a long block never costs the page its frames. Code that grows is
 * only added to.
 */
import { h } from './dom.js';
import { blocksOf, renderMarkdown } from './markdown.js';
import { isTooMuch } from './plain-text.js';

/** Rendering may take one part in so many of the time. */
const SHARE = 12;
/** A block that renders faster than this, in milliseconds, is rendered with each frame. */
const CHEAP_MS = 2;
/** What a plain tail shows: its end, for that is what is new. */
const MOST_PLAIN = 20_000;

/** @returns the element, and `update(text)` with the whole text so far */
export function createGrowingMarkdown() {
  const element = h('div.markdown', { dir: 'auto' });
  const tail = h('div.tail');
  element.append(tail);
  /** Characters whose blocks are final. */
  let stable = 0;
  let shown = '';
  let latest = '';
  let readyAt = 0;
  let timer = null;
  /** The text node of the code that the tail is, while it is nothing but one block of code. */
  let code = null;

  function showTail(rest, last) {
    const isCode = last?.type === 'code' && last.codeBlockStyle !== 'indented';
    if (isCode && code?.lang === last.lang && last.text.startsWith(code.node.data)) {
      code.node.appendData(last.text.slice(code.node.data.length));
      return;
    }
    tail.replaceChildren(renderMarkdown(rest, false));
    const node = isCode ? tail.querySelector('pre > code')?.firstChild : null;
    // The renderer ends code with one line break, whatever it ended with; here what comes next follows the text itself.
    const isPlain = node?.data?.replace(/\n$/, '') === last?.text?.replace(/\n$/, '');
    code = node && isPlain ? { node, lang: last.lang } : null;
    if (code) node.data = last.text;
  }

  function showPlain(rest) {
    code = null;
    tail.replaceChildren(h('div.plain', {}, rest.slice(-MOST_PLAIN)));
  }

  function render(text) {
    const pending = text.slice(stable);
    const tokens = isTooMuch(pending) ? null : blocksOf(pending);
    if (tokens === null) return showPlain(pending);
    const last = tokens.findLastIndex((token) => token.type !== 'space');
    let done = '';
    for (const token of tokens.slice(0, Math.max(0, last))) done += token.raw;
    // The lexer may rewrite white space; a part that is not found as it stands is not final yet.
    if (done.trim() !== '' && text.startsWith(done, stable)) {
      tail.before(renderMarkdown(done));
      stable += done.length;
      code = null;
    }
    showTail(text.slice(stable), tokens[last]);
  }

  function flush() {
    timer = null;
    if (latest === shown) return;
    const before = performance.now();
    shown = latest;
    render(latest.includes('\r') ? latest.replace(/\r\n?/g, '\n') : latest);
    const now = performance.now();
    readyAt = now - before < CHEAP_MS ? now : now + (now - before) * SHARE;
  }

  return {
    element,
    update(text) {
      latest = text;
      if (timer !== null) return;
      const wait = readyAt - performance.now();
      if (wait <= 0) flush();
      else timer = setTimeout(flush, wait);
    },
  };
}
