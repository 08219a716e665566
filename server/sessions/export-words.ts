/** Words that exports for people share, and the name of the file that they come in. */
import type { Message } from '../core/terms.ts';

const NAMES: Record<string, string> = { user: 'You', assistant: 'Assistant', tool: 'Tool', system: 'System' };

/** What a message tells a person; a row of another program may lack any of it. */
export interface Readable {
  /** Who said it; of a tool its name too. */
  who: string;
  when: string;
  text: string;
  reasoning: string;
  calls: { name: string; args: string }[];
  attachments: string[];
}

export function readable(message: Message): Readable {
  const { role, name, content, reasoning, tool_calls = [], attachments = [] } = message;
  const who = NAMES[role] ?? role;
  return {
    who: role === 'tool' && name ? `${who} ${name}` : who,
    when: timeText(message.timestamp),
    text: content,
    reasoning: reasoning ?? '',
    calls: tool_calls.flatMap((call) =>
      call.function?.name ? [{ name: call.function.name, args: String(call.function.arguments ?? '') }] : [],
    ),
    attachments,
  };
}

/** Last second that a Date of four-digit years has. */
const LATEST = 253_402_300_799;

/** A moment for a person, in UTC. @param seconds since the epoch */
export function timeText(seconds: number): string {
  if (!(seconds >= 0 && seconds <= LATEST)) return 'at an unknown time';
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Longest name of a file, in characters without its ending: short enough for every file system also in UTF-8. */
const MAX_NAME = 60;

/** The name of a download: the title without what a file system or a header would take for something else. */
export function fileName(title: string | null, extension: string): string {
  const plain = (title ?? '')
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .replaceAll(/[/\\:*?"<>|%;=]+/g, '-')
    .replaceAll(/^[\s.-]+|[\s.-]+$/g, '');
  const short = [...plain].slice(0, MAX_NAME).join('').trim();
  return `${short || 'session'}.${extension}`;
}

/** `Content-Disposition` of what may be shown in place. */
export const inline = (name: string): string => attachment(name).replace(/^attachment/, 'inline');

/** `Content-Disposition` of a download, with the name in both forms of RFC 6266 (the second one by RFC 8187). */
export function attachment(name: string): string {
  const ascii = name
    .normalize('NFKD')
    .replaceAll(/[^\x20-\x7e]/g, '')
    .replaceAll(/["\\]/g, '');
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
