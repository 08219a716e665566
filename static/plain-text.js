/**
 * Texts that are shown as they were written: those that would hold the page up as Markdown. Long ones show their
 * beginning first.
 */
import { h } from './dom.js';

/** Longer texts than this, in characters without pictures, are not read as Markdown. */
const MOST_MARKDOWN = 200_000;
/** The time that the parser takes grows with the square of the signs in one line. */
const MOST_SIGNS = 2_000;
/** Longest line without a picture that is laid out as a paragraph. */
const MOST_LINE = 60_000;
/** Quotes in quotes: each one is an element in an element. */
const DEEP_QUOTE = /^(?:[ \t]*>){24}/m;
const DEEP_LIST = /^ {120,}\S/m;
/** How much is shown at once. */
const MOST_SHOWN = 50_000;

const PICTURE = /data:image\/[a-z+]+;base64,[A-Za-z0-9+/=]+/g;

/** Whether a text is too long, too dense or too deep to be read as Markdown. */
export function isTooMuch(text) {
  if (text.length < MOST_SIGNS && !text.includes('>')) return false;
  const words = text.includes('data:image/') ? text.replace(PICTURE, '') : text;
  if (words.length > MOST_MARKDOWN || DEEP_QUOTE.test(words) || DEEP_LIST.test(words)) return true;
  if (words.length < MOST_SIGNS) return false;
  return words.split('\n').some((line) => line.length > MOST_LINE || signsIn(line) > MOST_SIGNS);
}

function signsIn(line) {
  if (line.length <= MOST_SIGNS) return 0;
  let signs = 0;
  for (let at = 0; at < line.length; at += 1) if ('*_~[]`<>&|\\!$('.includes(line[at])) signs += 1;
  return signs;
}

/** A fragment with a text as it was written, its rest behind a button when it is long. */
export function createPlainText(text) {
  const fragment = document.createDocumentFragment();
  const shown = h('div.plain', {}, text.slice(0, MOST_SHOWN));
  fragment.append(shown);
  if (text.length > MOST_SHOWN) {
    const rest = h('button', { type: 'button' }, `Show all ${text.length.toLocaleString()} characters`);
    rest.addEventListener('click', () => {
      shown.textContent = text;
      rest.remove();
    });
    fragment.append(rest);
  }
  return fragment;
}
