/**
 * Formulas in Markdown: `$$…$$` and `\[…\]` on their own, `\(…\)` and `$$…$$` in a line, and code blocks of the language
 * `math`. A single dollar is money. The library that sets them is fetched when the first one is seen; until then, and
 * when it cannot read one, its source stands there.
 */
import { h } from './dom.js';

/** Classes of the code elements that formulas are until they are set; the sanitiser lets languages of code through. */
const INLINE = 'language-math-inline';
const DISPLAY = 'language-math';

/** A longer source than this is shown as it is. */
const MOST_SOURCE = 5_000;
/** Longest stretch in which the end of a formula is looked for. */
const MOST_AHEAD = 2_000;

const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/** Where the next formula in a line may begin. */
function startInLine(source) {
  const at = source.search(/\\\(|\\\[|\$\$/);
  return at < 0 ? undefined : at;
}

/** Where the next formula of its own may begin: only a line begins one, for a paragraph ends there. */
function startOfLine(source) {
  const found = /(^|\n) {0,3}(?:\$\$|\\\[)/.exec(source);
  return found ? found.index + found[1].length : undefined;
}

const inlineAt = new RegExp(
  String.raw`^(?:\\\(([^\n]{1,${MOST_AHEAD}}?)\\\)|\$\$([^\n$]{1,${MOST_AHEAD}}?)\$\$|\\\[([^\n]{1,${MOST_AHEAD}}?)\\\])`,
);
const displayAt = new RegExp(
  String.raw`^ {0,3}(?:\$\$([^$]{1,${MOST_AHEAD}}?)\$\$|\\\[([\s\S]{1,${MOST_AHEAD}}?)\\\])[ \t]*(?:\n|$)`,
);

/** For `marked.use`: formulas become code elements with a class of their own. */
export const formulaExtensions = [
  {
    name: 'formulaBlock',
    level: 'block',
    start: startOfLine,
    tokenizer(source) {
      const found = displayAt.exec(source);
      return found ? { type: 'formulaBlock', raw: found[0], text: (found[1] ?? found[2]).trim() } : undefined;
    },
    renderer: ({ text }) => `<pre><code class="${DISPLAY}">${escaped(text)}</code></pre>\n`,
  },
  {
    name: 'formula',
    level: 'inline',
    start: startInLine,
    tokenizer(source) {
      const found = inlineAt.exec(source);
      const text = found && (found[1] ?? found[2] ?? found[3]).trim();
      return text ? { type: 'formula', raw: found[0], text } : undefined;
    },
    renderer: ({ text }) => `<code class="${INLINE}">${escaped(text)}</code>`,
  },
];

/** The library, once it was asked for. */
let library = null;

async function load() {
  const { katex, STYLE } = await import('./vendor/maths.js');
  document.head.append(h('link', { rel: 'stylesheet', href: STYLE }));
  return katex;
}

/** Sets the formulas of a fragment; those of code that still grows are left for later. */
export function dressFormulas(fragment) {
  for (const code of fragment.querySelectorAll(`code.${DISPLAY}, code.${INLINE}`)) {
    const isDisplay = code.classList.contains(DISPLAY);
    const source = code.textContent;
    const place = h(`span.formula${isDisplay ? '.formula-display' : ''}`, {}, h('code', {}, source));
    (isDisplay ? code.parentElement : code).replaceWith(place);
    if (source.length <= MOST_SOURCE) void set(place, source, isDisplay);
  }
}

async function set(place, source, displayMode) {
  library ??= load();
  try {
    const katex = await library;
    const shown = h('span');
    // It builds elements, no markup; nothing in a formula may link, load or style (trust), or grow without end.
    katex.render(source, shown, {
      displayMode,
      throwOnError: true,
      trust: false,
      strict: false,
      maxExpand: 500,
      maxSize: 50,
    });
    place.replaceChildren(shown);
    place.classList.add('set');
  } catch (failure) {
    // A formula that cannot be read stays as it was written. A library that did not come is asked for again.
    if (failure?.name !== 'ParseError') library = null;
    place.title = 'This formula could not be set.';
  }
}
