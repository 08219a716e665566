/**
 * Extractive summaries: the sentences of a text or a chat that say most of it, in their own words and order. Pure.
 *
 * A sentence scores by how often its words occur in the whole, per word, with a little more for what a person said and
 * for the beginning; one that repeats a chosen one is left out.
 */
import type { Message } from '../../core/terms.ts';

export interface SummaryLine {
  who: 'user' | 'assistant' | 'text';
  sentence: string;
}

export interface Summary {
  lines: SummaryLine[];
  /** Sentences that were weighed. */
  weighed: number;
  /** The whole was too long; only its newest part was weighed. */
  cut: boolean;
}

/** The tool's name; turns that used it are no part of a summary. */
export const SUMMARISE = 'summarise';

interface Sentence {
  who: SummaryLine['who'];
  text: string;
  words: string[];
}

/** Most characters that are weighed, so that a long chat does not hold the server up. */
const MAX_CHARACTERS = 100_000;
const MAX_SENTENCE = 240;

const STOP_WORDS = new Set(
  (
    'a about after again all also am an and any are as at be because been before being but by can could did do does ' +
    'for from get had has have he her here hers him his how i if in into is it its just like me more most my no not now of ' +
    'on one only or other our out over please same she should so some such than that the their them then there these ' +
    'they this those to too under up us very was we were what when where which while who why will with would you your'
  ).split(' '),
);

/** The words of a text that mean something, in lower case and in order. */
export function contentWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}'’]*/gu) ?? [];
  return words.filter((word) => word.length > 1 && !STOP_WORDS.has(word));
}

/**
 * Summarises a chat: what people and agents said, without tools, failed turns and commands.
 * @param most how many sentences
 */
export function summariseChat(messages: readonly Message[], most: number): Summary {
  const summaries = new Set(messages.filter(isSummary).map(({ run_id }) => run_id));
  const said = messages.filter(
    ({ role, status, content, run_id }) =>
      (role === 'user' || role === 'assistant') &&
      status !== 'error' &&
      !content.startsWith('/') &&
      !(run_id !== undefined && summaries.has(run_id)),
  );
  let room = MAX_CHARACTERS;
  let cut = false;
  const sentences: Sentence[] = [];
  for (const { role, content } of said.toReversed()) {
    if (room <= 0) {
      cut = true;
      break;
    }
    cut ||= content.length > room;
    sentences.unshift(...sentencesOf(content.slice(0, room), role === 'user' ? 'user' : 'assistant'));
    room -= content.length;
  }
  return pick(sentences, most, cut);
}

const isSummary = ({ tool_calls }: Message): boolean =>
  tool_calls?.some((call) => call.function.name === SUMMARISE) === true;

/** Summarises one text. */
export function summariseText(text: string, most: number): Summary {
  return pick(sentencesOf(text.slice(0, MAX_CHARACTERS), 'text'), most, text.length > MAX_CHARACTERS);
}

function sentencesOf(text: string, who: Sentence['who']): Sentence[] {
  return plain(text)
    .split(/(?<=[.!?…])\s+|(?<=[。！？])|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => /\p{L}/u.test(sentence))
    .map((sentence) => ({ who, text: shortened(sentence), words: contentWords(sentence) }));
}

/** Without the signs of Markdown, code blocks and tables, which make poor sentences. */
function plain(text: string): string {
  return text
    .split(/^(?:```|~~~).*$/m)
    .filter((_, index) => index % 2 === 0)
    .join('\n')
    .replace(/^[ \t]*\|.*$/gm, '')
    .replace(/^[ \t]*(?:#{1,6}|[-*+>]|\d{1,3}[.)])[ \t]+/gm, '')
    .replace(/[*_`]{1,3}/g, '');
}

function shortened(sentence: string): string {
  return sentence.length > MAX_SENTENCE ? `${sentence.slice(0, MAX_SENTENCE - 1)}…`.toWellFormed() : sentence;
}

function pick(sentences: Sentence[], most: number, cut: boolean): Summary {
  const counts = new Map<string, number>();
  for (const { words } of sentences) {
    for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const scored = sentences.map((sentence, index) => ({ sentence, index, score: score(sentence, index, counts) }));
  scored.sort((a, b) => b.score - a.score || a.index - b.index);
  const chosen: typeof scored = [];
  for (const candidate of scored) {
    if (chosen.length === most || candidate.score === 0) break;
    if (chosen.every(({ sentence }) => overlap(sentence.words, candidate.sentence.words) < 0.6)) chosen.push(candidate);
  }
  chosen.sort((a, b) => a.index - b.index);
  return {
    lines: chosen.map(({ sentence }) => ({ who: sentence.who, sentence: sentence.text })),
    weighed: sentences.length,
    cut,
  };
}

function score({ words, who }: Sentence, index: number, counts: Map<string, number>): number {
  if (words.length === 0) return 0;
  const sum = words.reduce((total, word) => total + Math.log2(1 + (counts.get(word) ?? 0)), 0);
  // The root in place of the count: a short sentence does not win by one good word alone.
  const density = sum / Math.sqrt(words.length) / (words.length > 30 ? 1.5 : 1);
  return density * (who === 'user' ? 1.2 : 1) * (index === 0 ? 1.3 : 1) * (words.length < 3 ? 0.5 : 1);
}

/** How alike two sentences are: words of both by words of either. */
function overlap(one: string[], other: string[]): number {
  const a = new Set(one);
  const b = new Set(other);
  const both = [...a].filter((word) => b.has(word)).length;
  return both / Math.max(1, a.size + b.size - both);
}
