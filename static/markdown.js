/**
 * Text that a model wrote, made into elements: Markdown, then sanitised by a list of what is allowed, then code made
 * readable. Nothing from a model ever becomes markup in another way.
 */
import { h, icon } from './dom.js';
import { DOMPurify, hljs, marked } from './vendor/index.js';

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
const MOST_COLOURED = 50_000;

/**
 * Renders Markdown.
 * @param coloured whether code is coloured; not while it still grows
 * @returns a fragment, safe to insert
 */
export function renderMarkdown(text, coloured = true) {
  const html = marked.parse(text, { gfm: true, breaks: false, async: false });
  const fragment = DOMPurify.sanitize(html, ALLOWED);
  for (const picture of fragment.querySelectorAll('img[data-address]')) picture.replaceWith(linkTo(picture));
  for (const code of fragment.querySelectorAll('pre > code')) dressCode(code, coloured);
  for (const table of fragment.querySelectorAll('table')) {
    const frame = h('div.table-frame', { tabindex: '0', role: 'group', 'aria-label': 'Table' });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
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
      copyButton(() => source),
    ),
    pre,
  );
}

/** A button that copies a text and says so. */
export function copyButton(text, label = 'Copy') {
  const button = h('button.copy', { type: 'button' }, icon('copy'), h('span', {}, label));
  button.addEventListener('click', async () => {
    const done = await copy(text());
    button.lastChild.textContent = done ? 'Copied' : 'Could not copy';
    setTimeout(() => {
      button.lastChild.textContent = label;
    }, 1600);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard on plain HTTP: the old way still works there.
    const area = h('textarea.offscreen', { readonly: true, 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/**
 * Markdown that grows: blocks that are complete are rendered once, only the last one again and again.
 * @returns the element, and `update(text)` with the whole text so far
 */
export function createGrowingMarkdown() {
  const element = h('div.markdown');
  const tail = h('div.tail');
  element.append(tail);
  let stable = 0;
  let shown = '';
  return {
    element,
    update(raw) {
      if (raw === shown) return;
      shown = raw;
      const text = raw.includes('\r') ? raw.replace(/\r\n?/g, '\n') : raw;
      const tokens = marked.lexer(text.slice(stable));
      const last = tokens.findLastIndex((token) => token.type !== 'space');
      let done = '';
      for (const token of tokens.slice(0, Math.max(0, last))) done += token.raw;
      // The lexer may rewrite white space; a part that is not found as it stands is not final yet.
      if (done.trim() !== '' && text.startsWith(done, stable)) {
        tail.before(renderMarkdown(done));
        stable += done.length;
      }
      tail.replaceChildren(renderMarkdown(text.slice(stable), false));
    },
  };
}
