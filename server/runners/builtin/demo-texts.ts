/** The fixed words of the demonstrations. */

export const DEMO_LIST = [
  'Demonstrations of what an agent can send:',
  [
    '| Say | You see |',
    '|---|---|',
    '| `/demo text` | Markdown: a heading, a list, a table, code |',
    '| `/demo tools` | a to-do list and tool calls: two side by side, one that fails |',
    '| `/demo reasoning` | thinking before the answer |',
    '| `/demo approval` | a question before something is done |',
    '| `/demo error` | a turn that fails half way |',
    '| `/demo slow` | ten seconds of slow words, to be interrupted |',
    '| `/demo long` | about 2,000 words as fast as they go |',
  ].join('\n'),
].join('\n\n');

export const DEMO_TEXT = `# A heading

This is a paragraph with **bold**, *italic* and \`code\`, and a [link](https://example.com).

- a list
- of three
  - with one below
- points

1. first
2. second

| Unit | Symbol | Value |
|---|:---:|---:|
| kilo | k | 1,000 |
| mega | M | 1,000,000 |

\`\`\`ts
function greet(name: string): string {
  return \`Hello, \${name}!\`;
}
\`\`\`

> A quotation, and then the end. Umlauts and signs: äöü, 日本語, 🙂.
`;

export const DEMO_REASONING =
  'A farmer has 17 sheep and all but 9 run away. It is tempting to subtract 9 from 17. ' +
  'But "all but 9" says how many stay. So 9 are left.';
export const DEMO_REASONING_ANSWER =
  '**9** sheep are left. (This is a demonstration with fixed words; I am no language model and did not think.)';

export const DEMO_ERROR_TEXT = 'This answer begins well, but in the middle of the sentence its provider';
export const DEMO_ERROR_MESSAGE =
  'This is a demonstration of an error: the provider failed in the middle of the answer.';

export const DEMO_SLOW =
  'This answer comes slowly on purpose, one word after the other, so that there is time to press stop, to close ' +
  'the page, or to open it on another device and see it go on there.';

const SENTENCES = [
  'A stream of words is written down before it is shown.',
  'Each event has a number, and no number is left out.',
  'A reader that comes back says what it has and gets the rest.',
  'A slow reader delays nobody else.',
  'When the process dies, the words that were written are still there.',
  'Two devices see the same text in the same order.',
];

/** About 2,000 words in numbered paragraphs. */
export function longText(): string {
  const paragraphs: string[] = ['## About two thousand words'];
  let words = 4;
  for (let number = 1; words < 2000; number++) {
    const sentences = SENTENCES.map((_, index) => SENTENCES[(index + number) % SENTENCES.length]!);
    const paragraph = `**${number}.** ${sentences.join(' ')}`;
    paragraphs.push(paragraph);
    words += paragraph.split(' ').length;
  }
  return paragraphs.join('\n\n');
}
