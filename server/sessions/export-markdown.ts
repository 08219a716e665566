/** A session as Markdown, to be read: what was said as it is, what tools were given and gave in fenced blocks. */
import type { DocumentSession } from '../core/session-document.ts';
import type { Message } from '../core/terms.ts';
import { readable, timeText } from './export-words.ts';

export function toMarkdown(session: DocumentSession, messages: readonly Message[]): string {
  const facts = [`Begun ${timeText(session.created_at)}`, session.model && `Model ${session.model}`].filter(Boolean);
  const blocks = [`# ${oneLine(session.title ?? 'Untitled')}`, facts.join(' · ')];
  for (const message of messages) blocks.push(...blocksOf(message));
  return `${blocks.filter(Boolean).join('\n\n')}\n`;
}

function blocksOf(message: Message): string[] {
  const { who, when, text, reasoning, calls, attachments } = readable(message);
  const blocks = [`## ${oneLine(who)} · ${when}`];
  if (reasoning.trim()) blocks.push(quoted(reasoning));
  if (message.role === 'tool') blocks.push(fenced(text));
  else if (text.trim()) blocks.push(text.trim());
  for (const { name, args } of calls) blocks.push(`Calls ${inline(name)}:`, fenced(args));
  if (attachments.length) blocks.push(`Attachments: ${attachments.map(inline).join(', ')}`);
  return blocks;
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

const quoted = (text: string): string =>
  text
    .trim()
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');

/** A run of backticks longer than any in the text. */
const ticks = (text: string, least: number): string =>
  '`'.repeat(Math.max(least, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));

function fenced(text: string): string {
  const fence = ticks(text, 3);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}

function inline(text: string): string {
  const fence = ticks(text, 1);
  return `${fence} ${oneLine(text)} ${fence}`;
}
