/**
 * What a person reads of a piece of Markdown: its words without the signs. A piece is cut anywhere, so what begins in it
 * may not end there; what cannot be told from words stays.
 */

const WORD = '[\\p{L}\\p{N}]';
/** More than a hit has room for, in characters: some texts have no words to cut them at. */
const MOST = 1000;
/** Code stands as it is; the words around it lose their signs. */
const CODE = /(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)/;
/** What stands in front of a line: a fence, a heading, a quote, a list, a task. */
const LINE_START = /^[ \t]*(?:(?:```|~~~)[^\n]*|#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)/gm;
/** The line below the head of a table, and one across the page. */
const RULE = /^(?=.*--)[ \t|:-]+$|^[ \t]*(?:\*[ \t]*){3,}$/gm;
const PICTURE_OR_LINK = /!?\[([^\][\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:[ \t]+"[^"\n]*")?(?:\)|$|(?=…))/g;
const PAIRS = [/(\*{1,3})(?=[^\s*])([^*\n]*[^\s*])\1/g, /(~~)(?=[^\s~])([^~\n]*[^\s~])\1/g];
const LOW_PAIR = new RegExp(`(?<!${WORD}|_)(_{1,3})(?=[^\\s_])([^\\n]*?[^\\s_])\\1(?!${WORD}|_)`, 'gu');
/** One half of a pair, whose other half was cut off. */
const OPENING = new RegExp(`(?<=^|[\\s(…])(?:\\*\\*|~~|\`)(?=${WORD})`, 'gu');
const CLOSING = new RegExp(`(?<=${WORD}[.,:;!?]?)(?:\\*\\*|~~|\`)(?=$|[\\s).,:;!?…])`, 'gu');

/** @param markdown a piece of a text that is shown as Markdown; one line comes back */
export function plainWords(markdown) {
  // Every third piece is code, behind the signs that it stood between.
  const pieces = markdown.slice(0, MOST).replace(LINE_START, '').replace(RULE, '').split(CODE);
  const words = pieces.map((piece, at) => (at % 3 === 0 ? withoutSigns(piece) : at % 3 === 1 ? '' : piece));
  return words.join('').replace(/\s+/g, ' ').trim();
}

function withoutSigns(text) {
  let plain = text.replace(PICTURE_OR_LINK, '$1');
  for (const pair of [...PAIRS, LOW_PAIR]) plain = plain.replace(pair, '$2');
  return plain
    .replace(OPENING, '')
    .replace(CLOSING, '')
    .replace(/\|/g, ' ')
    .replace(/\\([\\`*_{}[\]()#+\-.!~|<>])/g, '$1');
}
