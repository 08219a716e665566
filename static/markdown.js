/**
 * Text that a model wrote, made into elements: Markdown, then sanitised by a list of what is allowed, then code made
 * readable. Nothing from a model ever becomes markup in another way.
 */
import { copyButton } from './copy.js';
import { h } from './dom.js';
import { dressFormulas, formulaExtensions } from './formulas.js';
import { createPlainText, isTooMuch } from './plain-text.js';
import { DOMPurify, hljs, marked } from './vendor/index.js';

marked.use({ gfm: true, breaks: false, async: false, extensions: formulaExtensions });

const ALLOWED = {
  ALLOWED_TAGS:
    'a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var'.split(
      ' ',
    ),
  ALLOWED_ATTR: ['href', 'src', 'alt', 'title', 'align', 'colspan', 'rowspan', 'start', 'type', 'checked', 'class'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  // These hold no address; without this they would have to look like one.
  ADD_URI_SAFE_ATTR: ['align', 'colspan', 'rowspan', 'start', 'type', 'checked'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|tel:|data:image\/)/i,
  RETURN_DOM_FRAGMENT: true,
};

const LINK = /^(?:https?:|mailto:|tel:)/i;
/** The pictures that are shown: their bytes stand in the text. One from elsewhere would tell its host what is read here. */
const IMAGE = /^data:image\/(?:png|jpe?g|gif|webp|avif)[;,]/i;
const REMOTE = /^https?:/i;
const OUTWARD = { target: '_blank', rel: 'noopener noreferrer' };

DOMPurify.addHook('uponSanitizeAttribute', (node, data) => {
  // A class could dress text up as a part of this page; only the language of code is one.
  if (data.attrName === 'class') {
    data.keepAttr = node.nodeName === 'CODE' && /^language-[\w+#.-]+$/.test(data.attrValue);
  }
});

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A') {
    if (!LINK.test(node.getAttribute('href') ?? '')) node.removeAttribute('href');
    else {
      for (const [name, value] of Object.entries(OUTWARD)) node.setAttribute(name, value);
    }
  } else if (node.nodeName === 'IMG') {
    const address = node.getAttribute('src') ?? '';
    if (IMAGE.test(address)) return;
    // Already here, so that no document ever holds a picture that it could load.
    node.removeAttribute('src');
    if (REMOTE.test(address)) node.setAttribute('data-address', address);
  } else if (node.nodeName === 'INPUT') {
    if (node.getAttribute('type') === 'checkbox') node.setAttribute('disabled', '');
    else node.remove();
  }
});

/** Above this many characters code is shown plain: colouring it would hold the page up. */
const MOST_COLOURED = 30_000;

/**
 * Renders Markdown. A text that would hold the page up, or that the parser cannot read, is shown as it was written.
 * @param done whether the text is complete: code is coloured and formulas are set only then
 * @returns a fragment, safe to insert
 */
export function renderMarkdown(text, done = true) {
  const html = isTooMuch(text) ? null : parsed(text);
  if (html === null) return createPlainText(text);
  const fragment = DOMPurify.sanitize(html, ALLOWED);
  for (const picture of fragment.querySelectorAll('img[data-address]')) picture.replaceWith(linkTo(picture));
  if (done) dressFormulas(fragment);
  for (const code of fragment.querySelectorAll('pre > code')) dressCode(code, done);
  for (const table of fragment.querySelectorAll('table')) {
    const frame = h('div.table-frame', { tabindex: '0', role: 'group', 'aria-label': 'Table' });
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const box of fragment.querySelectorAll('li > input, li > p > input')) nameTask(box);
  return fragment;
}

/** The markup of a text; null when it is nested too deeply for the parser. */
const parsed = (text) => unlessTooDeep(() => marked.parse(text));

/** The tokens of a text's blocks; null when it is nested too deeply for the parser. */
export const blocksOf = (text) => unlessTooDeep(() => marked.lexer(text));

function unlessTooDeep(work) {
  try {
    return work();
  } catch (failure) {
    // The parser adds words of its own to what it throws, but leaves its kind.
    if (failure instanceof RangeError) return null;
    throw failure;
  }
}

/** Says what a box of a task list is for, to those who cannot see where it stands. */
function nameTask(box) {
  box.setAttribute('aria-label', box.closest('li').textContent.trim().split('\n', 1)[0].slice(0, 200) || 'task');
}

/** What stands for a picture from elsewhere: its description, as a link that only a person follows. */
function linkTo(picture) {
  const address = picture.dataset.address;
  const words = picture.getAttribute('alt')?.trim() || address;
  return picture.closest('a[href]') ? words : h('a', { href: address, ...OUTWARD }, words);
}

function dressCode(code, coloured) {
  const language = /language-([\w+#.-]+)/.exec(code.className)?.[1] ?? '';
  const source = code.textContent;
  if (coloured && hljs.getLanguage(language) && source.length < MOST_COLOURED) {
    // The highlighter escapes what it is given: its output is spans around text.
    code.innerHTML = hljs.highlight(source, { language, ignoreIllegals: true }).value;
  }
  const pre = code.parentElement;
  pre.tabIndex = 0;
  const frame = h('div.code');
  pre.replaceWith(frame);
  frame.append(
    h(
      'div.code-head',
      {},
      h('span', {}, language || 'text'),
      copyButton(() => code.textContent),
    ),
    pre,
  );
}
