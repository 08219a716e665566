/** Titles: from the first words of a conversation, and from what a model wrote when it was asked for one. */
import { wellFormed } from './text.ts';

const LONGEST = 60;
/** What stands around a title, first and last. */
const PAIRS = ['""', "''", '``', '**', '__', '«»', '»«', '“”', '„“', '„”', '‘’', '「」'];

/** The beginning of a text, cut at a word; null when there is no word in it. */
export function deriveTitle(text: string): string | null {
  const line = text.split('\n').find((one) => /[\p{L}\p{N}]/u.test(one));
  const words = line?.replaceAll(/\s+/g, ' ').trim();
  if (!words) return null;
  return shortened(words);
}

/**
 * A model's answer as a title: its first line with a word in it, without thoughts, quotes, Markdown and the word "Title";
 * null when nothing is left.
 */
export function cleanTitle(answer: string): string | null {
  const said = wellFormed(answer).replace(/<think(ing)?>[\s\S]*?(<\/think(ing)?>|$)/g, '\n');
  const line = said.split(/[\r\n\u2028\u2029]/).find((one) => /[\p{L}\p{N}]/u.test(one)) ?? '';
  let title = line.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
  // What surrounds a title may be wrapped more than once: **"Title: …"**
  for (let before = ''; before !== title; ) {
    before = title;
    title = title
      .replace(/^(#+|[-*>]) +/, '')
      .replace(/^(title|titel|titre|título)\s*:\s*/i, '')
      .replace(/[.。]$/, '')
      .trim();
    if (title.length > 1 && PAIRS.includes(`${title[0]}${title.at(-1)}`)) title = title.slice(1, -1).trim();
  }
  return /[\p{L}\p{N}]/u.test(title) ? shortened(title) : null;
}

function shortened(words: string): string {
  const characters = [...words];
  if (characters.length <= LONGEST) return words;
  const cut = characters.slice(0, LONGEST).join('');
  const space = cut.lastIndexOf(' ');
  return `${space > LONGEST / 2 ? cut.slice(0, space) : cut}…`;
}
