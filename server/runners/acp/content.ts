/**
 * Content of the Agent Client Protocol as text: the blocks of a message, and what a tool call has produced. Takes whatever
 * an agent sends. Source: https://agentclientprotocol.com/protocol/v1/content and …/tool-calls.
 */
import { printable } from '../../workspace/output.ts';
import { listOf, type Raw, recordOf, stringOf } from './raw.ts';

/** Changes of a call that are shown, and characters of all their texts together. */
const MOST_CHANGES = 50;
const CHANGE_CHARACTERS = 4 * 1024 * 1024;

/** A file before and after. */
export interface FileChange {
  path: string;
  /** Null when there was none. */
  before: string | null;
  after: string;
}

/** What a call has produced so far; of an update it is always the whole. */
export interface CallContent {
  text: string;
  changes: FileChange[];
  /** Ids of terminals whose output is shown here. */
  terminals: string[];
}

/** A block as it stands in a message: what is no text is named. */
export function blockText(block: unknown): string {
  if (typeof block === 'string') return block;
  const { type, text, mimeType, data, uri, name, title, resource } = recordOf(block);
  switch (type) {
    case 'image':
    case 'audio':
      return `[${[type, stringOf(mimeType), bytesOf(data)].filter(Boolean).join(', ')}]`;
    case 'resource_link': {
      const label = stringOf(title) || stringOf(name) || stringOf(uri);
      return uri === undefined || label === uri ? label : `[${label}](${stringOf(uri)})`;
    }
    case 'resource':
      return resourceText(recordOf(resource));
    default:
      return stringOf(text);
  }
}

function resourceText({ uri, mimeType, text, blob }: Raw): string {
  if (typeof text === 'string') return text;
  return `[${['file', stringOf(uri), stringOf(mimeType), bytesOf(blob)].filter(Boolean).join(', ')}]`;
}

/** The size of what is written in base64. */
const bytesOf = (data: unknown): string =>
  typeof data === 'string' ? `${Math.floor((data.length * 3) / 4)} bytes` : '';

/** Reads `content` of a tool call. */
export function readContent(content: unknown): CallContent {
  const read: CallContent = { text: '', changes: [], terminals: [] };
  let left = CHANGE_CHARACTERS;
  const texts: string[] = [];
  for (const item of typeof content === 'string' ? [content] : listOf(content)) {
    const { type, content: block, path, oldText, newText, terminalId } = recordOf(item);
    if (type === 'diff') {
      const change = {
        path: stringOf(path),
        before: typeof oldText === 'string' ? oldText : null,
        after: stringOf(newText),
      };
      left -= change.after.length + (change.before?.length ?? 0);
      if (left >= 0 && read.changes.length < MOST_CHANGES) read.changes.push(change);
      else texts.push(`[Changes of ${change.path} are not shown.]`);
    } else if (type === 'terminal') {
      if (typeof terminalId === 'string') read.terminals.push(terminalId);
    } else texts.push(blockText(type === 'content' ? block : item));
  }
  read.text = unfenced(plain(texts.filter((text) => text !== '').join('\n')));
  return read;
}

/** As it can be shown anywhere: without colours and control characters. */
export const plain = (text: string): string => printable(Buffer.from(text.toWellFormed()));

/** The output of a command without the fence of Markdown that agents put around it. */
function unfenced(text: string): string {
  const open = /^(`{3,})[^`\n]*\n/.exec(text);
  if (!open) return text;
  const fence = open[1]!;
  const whole = text.trimEnd();
  if (!whole.endsWith(`\n${fence}`)) return text;
  const inner = whole.slice(open[0].length, -(fence.length + 1));
  return inner.includes(fence) ? text : inner;
}

/** `rawOutput` as text: agents name what a tool gave differently. Null where none of their names is there. */
export function rawOutputText(output: unknown): string | null {
  if (typeof output === 'string') return plain(output);
  const given = recordOf(output);
  let known = false;
  for (const name of ['error', 'aggregated_output', 'output', 'stdout', 'text', 'content', 'message', 'result']) {
    const value = given[name];
    const text = typeof value === 'string' ? value : readContent(value).text || stringOf(recordOf(value).message);
    if (text.trim() !== '') return plain(text);
    known ||= typeof value === 'string';
  }
  return known ? '' : null;
}
